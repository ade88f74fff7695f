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

constexpr int64_t kLongestRange = 100000;

Value range(Runtime& runtime, const Arguments& arguments) {
  std::vector<int64_t> bounds;
  for (const Value& value : arguments.given) {
    if (!value.is_integral())
      fail(fmt::format("range() needs integers, found {}", value.kind_name()));
    bounds.push_back(value.as_integer());
  }
  if (bounds.empty() || bounds.size() > 3) fail("range() takes one to three integers");
  const int64_t start = bounds.size() > 1 ? bounds[0] : 0;
  const int64_t stop = bounds.size() > 1 ? bounds[1] : bounds[0];
  const int64_t step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) fail("the step of range() is 0");
  List items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (items.size() >= kLongestRange)
      fail(fmt::format("range() exceeds {} integers", kLongestRange));
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return runtime.list(std::move(items));
}

Value time_text(Runtime& runtime, const Arguments& arguments) {
  const Value format = arguments.get(0, "format");
  if (!format.is(Value::Kind::string)) fail("strftime_now() needs a format string");
  std::string out;
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
    std::array<char, 128> buffer;
    out.append(buffer.data(),
               std::strftime(buffer.data(), buffer.size(), one.c_str(), &runtime.now()));
  }
  return runtime.string(std::move(out));
}

}  // namespace

void Runtime::Scope::set(const std::string& name, Value value) {
  for (auto& each : names)
    if (each.first == name) return void(each.second = std::move(value));
  names.emplace_back(name, std::move(value));
}

Runtime::Runtime(const TemplateLimits& limits, const Dict& variables, const std::tm* now)
    : limits_(limits), now_(*now) {
  Scope* globals = new_scope(nullptr);
  const auto add = [&](const char* name, Callable call) {
    globals->set(name, Value::function(name, std::move(call)));
  };
  add("range", [this](const Arguments& arguments) { return range(*this, arguments); });
  add("namespace", [this](const Arguments& arguments) { return make_namespace(arguments); });
  add("dict", [](const Arguments& arguments) {
    Dict out;
    const Value first = arguments.get(0, "");
    if (first.is(Value::Kind::dict)) out = first.as_dict();
    for (const auto& [key, value] : arguments.named) out.set(Value::string(key), value);
    return Value::dict(std::move(out));
  });
  add("raise_exception",
      [](const Arguments& arguments) -> Value { fail(to_text(arguments.get(0, "message"))); });
  add("strftime_now", [this](const Arguments& arguments) { return time_text(*this, arguments); });
  scope_ = new_scope(globals);
  for (const auto& [key, value] : variables.items) scope_->set(key.as_string(), value);
}

Runtime::~Runtime() {
  for (const Value& space : spaces_) space.as_space().items.clear();
}

std::string Runtime::render(const Block& template_body) {
  run(template_body);
  return std::move(output_);
}

void Runtime::charge(size_t amount) {
  if ((work_ += amount) > limits_.work)
    fail(fmt::format("the work exceeds {} steps and bytes", limits_.work));
}

Value Runtime::string(std::string text) {
  charge(text.size());
  return Value::string(std::move(text));
}

Value Runtime::list(List items) {
  charge(items.size() * sizeof(Value));
  return Value::list(std::move(items));
}

Runtime::Scope* Runtime::new_scope(Scope* parent) {
  charge(kScope);
  scopes_.emplace_back();
  scopes_.back().parent = parent;
  return &scopes_.back();
}

void Runtime::write(std::string_view text) {
  charge(text.size());
  if (out_->size() + text.size() > limits_.output_bytes)
    fail(fmt::format("the output exceeds {} bytes", limits_.output_bytes));
  *out_ += text;
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
      write(to_text(eval(*statement.value)));
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
      scope_->set(statement.targets[0],
                  string(through_filters(statement.value.get(), capture(statement.body))));
      return Flow::onward;
    case Kind::macro:
      scope_->set(statement.text, make_macro(statement, statement.text));
      return Flow::onward;
    case Kind::call: {
      Scope* scope = new_scope(scope_);
      scope->set("caller", make_macro(statement, "caller"));
      Scope* outer = std::exchange(scope_, scope);
      const Value text = eval(*statement.value);
      scope_ = outer;
      write(to_text(text));
      return Flow::onward;
    }
    case Kind::filter:
      write(through_filters(statement.value.get(), capture(statement.body)));
      return Flow::onward;
    case Kind::scope: {
      Scope* scope = new_scope(scope_);
      for (size_t i = 0; i < statement.targets.size(); ++i)
        scope->set(statement.targets[i], eval(*statement.values[i]));
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
      if (eval(*statement.condition).truthy()) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  const auto count = static_cast<int64_t>(items.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    Dict loop;
    const auto put = [&](const char* name, Value value) {
      loop.items.emplace_back(Value::string(name), std::move(value));
    };
    put("index", Value::integer(i + 1));
    put("index0", Value::integer(i));
    put("first", Value::boolean(i == 0));
    put("last", Value::boolean(i + 1 == count));
    put("length", Value::integer(count));
    put("revindex", Value::integer(count - i));
    put("revindex0", Value::integer(count - i - 1));
    if (i > 0) put("previtem", items[at - 1]);
    if (i + 1 < count) put("nextitem", items[at + 1]);
    put("cycle", Value::function("cycle", [i](const Arguments& arguments) {
          if (arguments.given.empty()) fail("loop.cycle() needs arguments");
          return arguments.given[static_cast<size_t>(i) % arguments.given.size()];
        }));
    charge(loop.items.size() * 2 * sizeof(Value));
    scope->names.clear();
    scope->set("loop", Value::dict(std::move(loop)));
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
  space.as_space().set(Value::string(statement.text), value);
}

void Runtime::assign(const std::vector<std::string>& targets, const Value& value) {
  if (targets.empty()) return;
  if (targets.size() == 1) return scope_->set(targets[0], value);
  const List items = iterate(value);
  if (items.size() != targets.size())
    fail(fmt::format("{} values cannot be assigned to {} names", items.size(), targets.size()));
  for (size_t i = 0; i < targets.size(); ++i) scope_->set(targets[i], items[i]);
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

std::string Runtime::through_filters(const Expression* filters, std::string text) {
  if (!filters) return text;
  // The innermost filter has no input expression: it gets the text.
  std::vector<const Expression*> chain;
  for (const Expression* each = filters; each; each = each->parts[0].get()) {
    if (each->kind != Expression::Kind::filter) fail("only filters apply to a block");
    chain.push_back(each);
  }
  Value value = string(std::move(text));
  for (auto each = chain.rbegin(); each != chain.rend(); ++each)
    value = filter((*each)->text, value, eval_arguments(**each));
  return to_text(value);
}

Value Runtime::make_macro(const Statement& statement, std::string name) {
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
    for (const Scope* each = outer; each; each = each->parent) {
      const auto caller =
          std::ranges::find(each->names, "caller", &std::pair<std::string, Value>::first);
      if (caller == each->names.end()) continue;
      if (name != "caller") scope->set("caller", caller->second);
      break;
    }
    const size_t first_default = targets.size() - statement.values.size();
    for (size_t i = 0; i < targets.size(); ++i) {
      Value value = arguments.get(i, targets[i]);
      if (value.is(Value::Kind::undefined) && i >= first_default)
        value = eval(*statement.values[i - first_default]);
      scope->set(targets[i], std::move(value));
    }
    std::string text = capture(statement.body);
    scope->names.clear();
    scope_ = outer;
    return string(std::move(text));
  });
}

Value Runtime::make_namespace(const Arguments& arguments) {
  Dict items;
  for (const Value& given : arguments.given)
    if (given.is(Value::Kind::dict)) items = given.as_dict();
  for (const auto& [key, value] : arguments.named) items.set(Value::string(key), value);
  charge(kScope);
  spaces_.push_back(Value::space(std::move(items)));
  return spaces_.back();
}

}  // namespace prism::llm::jinja
