// Runs the statements of templates.
#include "llm/template/template_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "prism/error.h"

namespace prism::llm::jinja {
namespace {

// The cost of a scope besides the bytes it creates.
constexpr size_t kScope = 512;

// The cost of printing one part of a date.
constexpr size_t kConversion = 256;

constexpr int64_t kLongestRange = 100000;

// The names in a loop's variable "loop".
struct LoopNames {
  Value index = Value::string("index"), index0 = Value::string("index0"),
        first = Value::string("first"), last = Value::string("last"),
        length = Value::string("length"), revindex = Value::string("revindex"),
        revindex0 = Value::string("revindex0"), previtem = Value::string("previtem"),
        nextitem = Value::string("nextitem"), cycle = Value::string("cycle");
};

const LoopNames& loop_names() {
  static const LoopNames names;
  return names;
}

// The cost of one round of a loop: the mapping "loop" with its items and function.
constexpr size_t kLoop = sizeof(LoopNames) * 2 + 2 * kContentsBytes;

Value range(Runtime& runtime, const Arguments& arguments) {
  std::vector<int64_t> bounds;
  if (arguments.given.empty() || arguments.given.size() > 3)
    fail("range() takes one to three integers");
  for (const Value& value : arguments.given) {
    if (!value.is_integral())
      fail(fmt::format("range() needs integers, found {}", value.kind_name()));
    bounds.push_back(value.as_integer());
  }
  const int64_t start = bounds.size() > 1 ? bounds[0] : 0;
  const int64_t stop = bounds.size() > 1 ? bounds[1] : bounds[0];
  const int64_t step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) fail("the step of range() is 0");
  List items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (items.size() >= kLongestRange)
      fail(fmt::format("range() exceeds {} integers", kLongestRange));
    runtime.budget().charge(sizeof(Value));
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return runtime.list(std::move(items));
}

Value time_text(Runtime& runtime, const Arguments& arguments) {
  const Value format = arguments.get(runtime.budget(), 0, "format");
  if (!format.is(Value::Kind::string)) fail("strftime_now() needs a format string");
  TextBuilder out(&runtime.budget());
  const std::string& text = format.as_string();
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    // One conversion at a time, and only those that C defines.
    std::string one = "%";
    if (at + 1 < text.size() && text[at + 1] == '-') one += text[++at];
    if (++at >= text.size() ||
        std::string_view("aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyYzZ%").find(text[at]) == text.npos)
      fail(fmt::format("strftime_now(): unknown conversion in \"{}\"", text));
    one += text[at];
    runtime.budget().charge(kConversion);
    std::array<char, 128> buffer;
    out +=
        {buffer.data(), std::strftime(buffer.data(), buffer.size(), one.c_str(), &runtime.now())};
  }
  return runtime.string(&out);
}

}  // namespace

Value* Runtime::Scope::find(Budget& budget, std::string_view name) {
  budget.charge(1);
  for (auto& each : names)
    if (same(budget, each.first, name)) return &each.second;
  return nullptr;
}

void Runtime::Scope::set(Budget& budget, std::string_view name, Value value) {
  if (Value* found = find(budget, name)) {
    *found = std::move(value);
    return;
  }
  budget.charge(sizeof(names[0]) + name.size());
  names.emplace_back(name, std::move(value));
}

Runtime::Runtime(Budget* budget, const TemplateLimits& limits, const Dict& variables,
                 const std::tm* now)
    : limits_(limits), now_(*now), budget_(budget) {
  scope_ = new_scope(nullptr);
  const auto add = [&](const char* name, Callable call) {
    set(name, Value::function(name, std::move(call)));
  };
  add("range", [this](const Arguments& arguments) { return range(*this, arguments); });
  add("namespace", [this](const Arguments& arguments) { return make_namespace(arguments); });
  add("dict", [this](const Arguments& arguments) { return Value::dict(make_dict(arguments)); });
  add("raise_exception", [this](const Arguments& arguments) -> Value {
    fail(to_text(*budget_, arguments.get(*budget_, 0, "message")));
  });
  add("strftime_now", [this](const Arguments& arguments) { return time_text(*this, arguments); });
  scope_ = new_scope(scope_);
  for (const auto& [key, value] : variables.items) set(key.as_string(), value);
}

Runtime::~Runtime() {
  for (const Value& space : spaces_) space.as_space().items.clear();
}

std::string Runtime::render(const Block& template_body) {
  run(template_body);
  return std::move(output_);
}

Value Runtime::string(std::string text) {
  budget_->charge(kContentsBytes);
  return Value::string(std::move(text));
}

Value Runtime::list(List items) {
  budget_->charge(kContentsBytes);
  return Value::list(std::move(items));
}

Value Runtime::undefined(std::string_view name) {
  budget_->charge(kContentsBytes + name.size());
  return Value::undefined(std::string(name));
}

Runtime::Scope* Runtime::new_scope(Scope* parent) {
  budget_->charge(kScope);
  scopes_.emplace_back();
  scopes_.back().parent = parent;
  return &scopes_.back();
}

void Runtime::set(std::string_view name, Value value) {
  scope_->set(*budget_, name, std::move(value));
}

Value* Runtime::find_name(Scope* scope, std::string_view name) {
  for (; scope; scope = scope->parent)
    if (Value* found = scope->find(*budget_, name)) return found;
  return nullptr;
}

void Runtime::write(std::string_view text) {
  budget_->charge(text.size());
  if (text.size() > limits_.output_bytes || out_->size() > limits_.output_bytes - text.size())
    fail(fmt::format("the output exceeds {} bytes", limits_.output_bytes));
  *out_ += text;
}

void Runtime::write(const Value& value) {
  if (value.is(Value::Kind::string)) return write(value.as_string());
  write(to_text(*budget_, value));
}

Runtime::Flow Runtime::run(const Block& block) {
  for (const auto& statement : block)
    if (const Flow flow = run(*statement); flow != Flow::onward) return flow;
  return Flow::onward;
}

Runtime::Flow Runtime::run(const Statement& statement) {
  const Deeper deeper(this);
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::text:
      write(statement.text);
      return Flow::onward;
    case Kind::output:
      write(eval(*statement.value));
      return Flow::onward;
    case Kind::choice:
      for (const auto& [condition, body] : statement.branches)
        if (!condition || eval(*condition).truthy()) return run(body);
      return Flow::onward;
    case Kind::loop:
      return run_loop(statement);
    case Kind::set:
      run_set(statement);
      return Flow::onward;
    case Kind::set_block:
      set(statement.targets[0], through_filters(statement.value.get(), capture(statement.body)));
      return Flow::onward;
    case Kind::macro:
      set(statement.text, make_macro(statement, statement.text));
      return Flow::onward;
    case Kind::call: {
      Scope* scope = new_scope(scope_);
      scope->set(*budget_, "caller", make_macro(statement, "caller"));
      Scope* outer = std::exchange(scope_, scope);
      const Value text = eval(*statement.value);
      scope_ = outer;
      write(text);
      return Flow::onward;
    }
    case Kind::filter:
      write(through_filters(statement.value.get(), capture(statement.body)));
      return Flow::onward;
    case Kind::scope: {
      Scope* scope = new_scope(scope_);
      for (size_t i = 0; i < statement.targets.size(); ++i)
        scope->set(*budget_, statement.targets[i], eval(*statement.values[i]));
      Scope* outer = std::exchange(scope_, scope);
      const Flow flow = run(statement.body);
      scope_ = outer;
      return flow;
    }
    case Kind::plain:
      return run(statement.body);
    case Kind::leave:
      return Flow::leave;
    case Kind::next:
      return Flow::next;
  }
  return Flow::onward;
}

Runtime::Flow Runtime::run_loop(const Statement& statement) {
  List items = iterate(eval(*statement.value));
  Scope* outer = scope_;
  Scope* scope = new_scope(outer);
  scope_ = scope;
  if (statement.condition) {
    List kept;
    for (Value& item : items) {
      assign(statement.targets, item);
      if (!eval(*statement.condition).truthy()) continue;
      budget_->charge(sizeof(Value));
      kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  const LoopNames& names = loop_names();
  const auto count = static_cast<int64_t>(items.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    budget_->charge(kLoop);
    Dict loop;
    const auto put = [&](const Value& name, Value value) {
      loop.items.emplace_back(name, std::move(value));
    };
    put(names.index, Value::integer(i + 1));
    put(names.index0, Value::integer(i));
    put(names.first, Value::boolean(i == 0));
    put(names.last, Value::boolean(i + 1 == count));
    put(names.length, Value::integer(count));
    put(names.revindex, Value::integer(count - i));
    put(names.revindex0, Value::integer(count - i - 1));
    if (i > 0) put(names.previtem, items[at - 1]);
    if (i + 1 < count) put(names.nextitem, items[at + 1]);
    put(names.cycle, Value::function("cycle", [i](const Arguments& arguments) {
          if (arguments.given.empty()) fail("loop.cycle() needs arguments");
          return arguments.given[static_cast<size_t>(i) % arguments.given.size()];
        }));
    scope->names.clear();
    scope->set(*budget_, "loop", Value::dict(std::move(loop)));
    assign(statement.targets, items[at]);
    if (run(statement.body) == Flow::leave) break;
  }
  scope->names.clear();
  scope_ = outer;
  return count == 0 ? run(statement.otherwise) : Flow::onward;
}

void Runtime::run_set(const Statement& statement) {
  const Value value = eval(*statement.value);
  if (statement.text.empty()) return assign(statement.targets, value);
  const Value space = eval_name(statement.targets[0]);
  if (!space.is(Value::Kind::space)) {
    fail(fmt::format("line {}: set {}.{}: {} is {}, not a namespace", statement.line,
                     statement.targets[0], statement.text, statement.targets[0],
                     space.kind_name()));
  }
  budget_->charge(kContentsBytes + statement.text.size());
  space.as_space().set(*budget_, Value::string(statement.text), value);
}

void Runtime::assign(const std::vector<std::string>& targets, const Value& value) {
  if (targets.empty()) return;
  if (targets.size() == 1) return set(targets[0], value);
  const List items = iterate(value);
  if (items.size() != targets.size())
    fail(fmt::format("{} values cannot be assigned to {} names", items.size(), targets.size()));
  for (size_t i = 0; i < targets.size(); ++i) set(targets[i], items[i]);
}

std::string Runtime::capture(const Block& block) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  try {
    run(block);
  } catch (...) {
    out_ = outer;
    throw;
  }
  out_ = outer;
  return text;
}

Value Runtime::through_filters(const Expression* filters, std::string text) {
  // The innermost filter has no input expression: it gets the text.
  std::vector<const Expression*> chain;
  for (const Expression* each = filters; each; each = each->parts[0].get()) {
    if (each->kind != Expression::Kind::filter) fail("only filters apply to a block");
    chain.push_back(each);
  }
  Value value = string(std::move(text));
  for (auto each = chain.rbegin(); each != chain.rend(); ++each)
    value = filter((*each)->text, value, eval_arguments(**each));
  return chain.empty() || value.is(Value::Kind::string) ? value : string(to_text(*budget_, value));
}

Value Runtime::make_macro(const Statement& statement, std::string name) {
  budget_->charge(kContentsBytes + 2 * name.size());
  Scope* made_in = scope_;
  return Value::function(name, [this, &statement, made_in, name](const Arguments& arguments) {
    const Deeper deeper(this);
    const std::vector<std::string>& targets = statement.targets;
    if (arguments.given.size() > targets.size())
      fail(fmt::format("macro {} takes {} arguments, found {}", name, targets.size(),
                       arguments.given.size()));
    Scope* scope = new_scope(made_in);
    Scope* outer = std::exchange(scope_, scope);
    // A macro may be called from a {% call %} block of its caller.
    if (name != "caller")
      if (const Value* caller = find_name(outer, "caller")) set("caller", *caller);
    const size_t first_default = targets.size() - statement.values.size();
    for (size_t i = 0; i < targets.size(); ++i) {
      Value value = arguments.get(*budget_, i, targets[i]);
      if (value.is(Value::Kind::undefined) && i >= first_default)
        value = eval(*statement.values[i - first_default]);
      set(targets[i], std::move(value));
    }
    std::string text = capture(statement.body);
    scope->names.clear();
    scope_ = outer;
    return string(std::move(text));
  });
}

Dict Runtime::make_dict(const Arguments& arguments) {
  budget_->charge(kContentsBytes);
  Dict out;
  if (!arguments.given.empty() && arguments.given[0].is(Value::Kind::dict)) {
    budget_->charge(arguments.given[0].as_dict().items.size(), sizeof(out.items[0]));
    out = arguments.given[0].as_dict();
  }
  for (const auto& [key, value] : arguments.named) {
    budget_->charge(kContentsBytes + key.size());
    out.set(*budget_, Value::string(key), value);
  }
  return out;
}

Value Runtime::make_namespace(const Arguments& arguments) {
  budget_->charge(sizeof(Value));
  spaces_.push_back(Value::space(make_dict(arguments)));
  return spaces_.back();
}

}  // namespace prism::llm::jinja
