// Evaluates the expressions of templates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "llm/template/template_runtime.h"
#include "prism/error.h"

namespace prism::llm::jinja {
namespace {

using Kind = Value::Kind;

// Adds the line to a message that has none.
[[noreturn]] void fail_at(int line, const Error& error) {
  const std::string message = error.what();
  const std::string_view start = "chat template: ";
  if (!message.starts_with(start) || message.starts_with("chat template: line ")) throw error;
  fail(fmt::format("line {}: {}", line, message.substr(start.size())));
}

}  // namespace

Runtime::Deeper::Deeper(Runtime* runtime) : runtime_(runtime) {
  runtime->budget_->charge(kStep);
  if (runtime->depth_ >= runtime->limits_.depth)
    fail(fmt::format("calls and expressions are nested deeper than {}", runtime->limits_.depth));
  ++runtime->depth_;
}

Value Runtime::eval(const Expression& expression) {
  const Deeper deeper(this);
  using Node = Expression::Kind;
  try {
    switch (expression.kind) {
      case Node::literal:
        return expression.value;
      case Node::name:
        return eval_name(expression.text);
      case Node::list: {
        List items;
        budget_->charge(expression.parts.size(), sizeof(Value));
        for (const ExpressionPtr& part : expression.parts) items.push_back(eval(*part));
        return list(std::move(items));
      }
      case Node::dict: {
        Dict dict;
        budget_->charge(kContentsBytes);
        for (size_t i = 0; i < expression.parts.size(); i += 2) {
          Value key = eval(*expression.parts[i]);
          dict.set(*budget_, std::move(key), eval(*expression.parts[i + 1]));
        }
        return Value::dict(std::move(dict));
      }
      case Node::attribute:
        return attribute(eval(*expression.parts[0]), expression.text);
      case Node::subscript: {
        const Value of = eval(*expression.parts[0]);
        return item(of, eval(*expression.parts[1]));
      }
      case Node::slice:
        return eval_slice(expression);
      case Node::call:
        return eval_call(expression);
      case Node::filter: {
        const Value input = eval(*expression.parts[0]);
        return filter(expression.text, input, eval_arguments(expression));
      }
      case Node::test: {
        const Value of = eval(*expression.parts[0]);
        return Value::boolean(test(expression.text, of, eval_arguments(expression)));
      }
      case Node::unary: {
        const Value of = eval(*expression.parts[0]);
        if (expression.text == "not") return Value::boolean(!of.truthy());
        if (!of.is_number()) fail(fmt::format("{} of {}", expression.text, of.kind_name()));
        if (expression.text == "+") return of;
        return arithmetic("-", Value::integer(0), of);
      }
      case Node::binary:
        return eval_binary(expression);
      case Node::compare:
        return eval_compare(expression);
      case Node::conditional:
        if (eval(*expression.parts[1]).truthy()) return eval(*expression.parts[0]);
        return expression.parts[2] ? eval(*expression.parts[2]) : Value();
    }
  } catch (const Error& error) {
    fail_at(expression.line, error);
  }
  return {};
}

Value Runtime::eval_name(const std::string& name) {
  if (const Value* found = find_name(scope_, name)) return *found;
  return undefined(name);
}

Value Runtime::eval_binary(const Expression& expression) {
  Value left = eval(*expression.parts[0]);
  if (expression.text == "and") return left.truthy() ? eval(*expression.parts[1]) : left;
  if (expression.text == "or") return left.truthy() ? left : eval(*expression.parts[1]);
  const Value right = eval(*expression.parts[1]);
  if (expression.text == "~") {
    TextBuilder out(budget_);
    append_text(left, &out);
    append_text(right, &out);
    return string(&out);
  }
  return arithmetic(expression.text, left, right);
}

Value Runtime::eval_compare(const Expression& expression) {
  Value left = eval(*expression.parts[0]);
  for (size_t i = 0; i < expression.words.size(); ++i) {
    const std::string& sign = expression.words[i];
    Value right = eval(*expression.parts[i + 1]);
    const bool holds = sign == "=="   ? equal(*budget_, left, right)
                       : sign == "!=" ? !equal(*budget_, left, right)
                       : sign == "<"  ? less(*budget_, left, right)
                       : sign == ">"  ? less(*budget_, right, left)
                       : sign == "<=" ? !less(*budget_, right, left)
                       : sign == ">=" ? !less(*budget_, left, right)
                       : sign == "in" ? contains(right, left)
                                      : !contains(right, left);
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

bool Runtime::contains(const Value& container, const Value& value) {
  switch (container.kind()) {
    case Kind::string:
      if (!value.is(Kind::string))
        fail(fmt::format("\"in\" needs a string to search in a string, found {}",
                         value.kind_name()));
      return find(*budget_, container.as_string(), value.as_string()) != std::string::npos;
    case Kind::list:
      return std::ranges::any_of(container.as_list(),
                                 [&](const Value& item) { return equal(*budget_, item, value); });
    case Kind::dict:
    case Kind::space:
      return container.as_dict().find(*budget_, value) != nullptr;
    case Kind::undefined:
      return false;
    default:
      fail(fmt::format("\"in\" does not apply to {}", container.kind_name()));
  }
}

Value Runtime::arithmetic(const std::string& sign, const Value& left, const Value& right) {
  if (sign == "+" && left.is(Kind::string) && right.is(Kind::string)) {
    TextBuilder out(budget_);
    (out += left.as_string()) += right.as_string();
    return string(&out);
  }
  if (sign == "+" && left.is(Kind::list) && right.is(Kind::list)) {
    budget_->charge(left.as_list().size() + right.as_list().size(), sizeof(Value));
    List items = left.as_list();
    items.insert(items.end(), right.as_list().begin(), right.as_list().end());
    return list(std::move(items));
  }
  if (sign == "%" && left.is(Kind::string)) {
    Arguments arguments;
    if (right.is(Kind::list)) budget_->charge(right.as_list().size(), sizeof(Value));
    arguments.given = right.is(Kind::list) ? right.as_list() : List{right};
    return filter("format", left, arguments);
  }
  if (sign == "*" && left.is(Kind::string) && right.is_integral()) {
    const std::string& part = left.as_string();
    const auto times = static_cast<size_t>(std::max<int64_t>(right.as_integer(), 0));
    budget_->charge(times, part.size() + 1);
    std::string text;
    text.reserve(times * part.size());
    for (size_t i = 0; i < times; ++i) text += part;
    return string(std::move(text));
  }
  if (!left.is_number() || !right.is_number())
    fail(fmt::format("{} {} {}", left.description(), sign, right.description()));
  if (left.is_integral() && right.is_integral() && sign != "/") {
    const int64_t a = left.as_integer(), b = right.as_integer();
    int64_t out = 0;
    bool overflow = false;
    if (sign == "+") {
      overflow = __builtin_add_overflow(a, b, &out);
    } else if (sign == "-") {
      overflow = __builtin_sub_overflow(a, b, &out);
    } else if (sign == "*") {
      overflow = __builtin_mul_overflow(a, b, &out);
    } else if (sign == "//" || sign == "%") {
      if (b == 0) fail("division by zero");
      if (b == -1) {  // the smallest integer has no negation
        overflow = sign == "//" && __builtin_sub_overflow(int64_t{0}, a, &out);
      } else {
        // Rounds down, as in Python.
        const bool down = a % b != 0 && (a < 0) != (b < 0);
        out = sign == "//" ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
      }
    } else if (sign == "**") {
      if (b < 0) return Value::number(std::pow(left.as_number(), right.as_number()));
      out = 1;
      for (int64_t i = 0; i < b && !overflow && !(a >= -1 && a <= 1 && i > 1); ++i)
        overflow = __builtin_mul_overflow(out, a, &out);
      if (a == -1 && b > 0) out = b % 2 ? -1 : 1;
    }
    if (overflow) fail(fmt::format("{} {} {} is too large", a, sign, b));
    return Value::integer(out);
  }
  const double a = left.as_number(), b = right.as_number();
  if ((sign == "/" || sign == "//" || sign == "%") && b == 0) fail("division by zero");
  if (sign == "+") return Value::number(a + b);
  if (sign == "-") return Value::number(a - b);
  if (sign == "*") return Value::number(a * b);
  if (sign == "/") return Value::number(a / b);
  if (sign == "//") return Value::number(std::floor(a / b));
  if (sign == "%") return Value::number(a - b * std::floor(a / b));
  return Value::number(std::pow(a, b));
}

Value Runtime::attribute(const Value& of, const std::string& name) {
  switch (of.kind()) {
    case Kind::undefined:
      fail(fmt::format("{} has no {}", of.description(), name));
    case Kind::space:
    case Kind::dict:
      // Methods come first, as in Python: {"items": ...}.items is the method.
      if (of.is(Kind::space) || !has_method(of, name))
        if (const Value* found = of.as_dict().find(*budget_, name)) return *found;
      break;
    default:
      break;
  }
  if (!has_method(of, name)) return undefined(name);
  budget_->charge(2 * kContentsBytes);
  return Value::function(name, [this, of, name](const Arguments& arguments) {
    return call_method(*this, of, name, arguments);
  });
}

Value Runtime::item(const Value& of, const Value& key) {
  if (of.is(Kind::undefined)) fail(fmt::format("{} has no items", of.description()));
  if (of.is(Kind::dict) || of.is(Kind::space)) {
    if (const Value* found = of.as_dict().find(*budget_, key)) return *found;
  } else if (key.is_integral() && of.is(Kind::list)) {
    const auto size = static_cast<int64_t>(of.as_list().size());
    const int64_t at = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
    if (at >= 0 && at < size) return of.as_list()[static_cast<size_t>(at)];
  } else if (key.is_integral() && of.is(Kind::string)) {
    const std::vector<size_t> starts = character_starts(*budget_, of.as_string());
    const auto size = static_cast<int64_t>(starts.size()) - 1;
    const int64_t at = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
    if (at >= 0 && at < size) {
      const size_t start = starts[static_cast<size_t>(at)];
      return string(of.as_string().substr(start, starts[static_cast<size_t>(at) + 1] - start));
    }
  } else if (key.is(Kind::string)) {
    return attribute(of, key.as_string());
  }
  return undefined(to_text(*budget_, key));
}

Value Runtime::path(const Value& of, const Value& dotted) {
  if (!dotted.is(Kind::string)) return item(of, dotted);
  Value value = of;
  std::string_view rest = dotted.as_string();
  while (true) {
    const size_t dot = rest.find('.');
    budget_->charge(kStep + kContentsBytes + rest.substr(0, dot).size());
    const std::string name(rest.substr(0, dot));
    const bool digits = !name.empty() && name.size() < 10 &&
                        std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (value.is(Kind::undefined)) return value;
    value = item(value, digits ? Value::integer(std::stoi(name)) : Value::string(name));
    if (dot == rest.npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

Value Runtime::eval_slice(const Expression& expression) {
  const Value of = eval(*expression.parts[0]);
  if (!of.is(Kind::string) && !of.is(Kind::list))
    fail(fmt::format("{} cannot be sliced", of.kind_name()));
  std::vector<size_t> starts;
  if (of.is(Kind::string)) starts = character_starts(*budget_, of.as_string());
  const auto size =
      static_cast<int64_t>(of.is(Kind::string) ? starts.size() - 1 : of.as_list().size());
  const auto bound = [&](size_t i, int64_t otherwise) {
    const Value value = expression.parts[i] ? eval(*expression.parts[i]) : Value::none();
    if (value.is(Kind::none)) return otherwise;
    if (!value.is_integral())
      fail(fmt::format("a slice bound must be an integer, found {}", value.kind_name()));
    return value.as_integer();
  };
  const int64_t step = bound(3, 1);
  if (step == 0) fail("the step of a slice is 0");
  // Python's rules: negative indices count from the end; then clamp to the range.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto place = [&](size_t i, int64_t otherwise) {
    int64_t at = bound(i, INT64_MIN);
    if (at == INT64_MIN) return otherwise;
    if (at < 0) at += size;
    return std::clamp(at, low, high);
  };
  const int64_t start = place(1, step > 0 ? 0 : size - 1), stop = place(2, step > 0 ? size : -1);
  TextBuilder text(budget_);
  List items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    const auto i = static_cast<size_t>(at);
    if (of.is(Kind::string)) {
      text += std::string_view(of.as_string()).substr(starts[i], starts[i + 1] - starts[i]);
    } else {
      budget_->charge(sizeof(Value));
      items.push_back(of.as_list()[i]);
    }
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return of.is(Kind::string) ? string(&text) : list(std::move(items));
}

Arguments Runtime::eval_arguments(const Expression& expression) {
  Arguments arguments;
  budget_->charge(expression.parts.size(), sizeof(Value));
  for (size_t i = 1; i < expression.parts.size(); ++i)
    arguments.given.push_back(eval(*expression.parts[i]));
  for (const auto& [name, part] : expression.named) {
    budget_->charge(sizeof(arguments.named[0]) + name.size());
    arguments.named.emplace_back(name, eval(*part));
  }
  return arguments;
}

Value Runtime::eval_call(const Expression& expression) {
  const Value function = eval(*expression.parts[0]);
  if (!function.is(Kind::function)) {
    fail(fmt::format("{} cannot be called", function.description()));
  }
  return function.as_function()(eval_arguments(expression));
}

Value Runtime::filter(const std::string& name, const Value& input, const Arguments& arguments) {
  const Deeper deeper(this);  // map() applies filters too
  return apply_filter(*this, name, input, arguments);
}

bool Runtime::test(const std::string& name, const Value& of, const Arguments& arguments) {
  const Deeper deeper(this);
  return apply_test(*this, name, of, arguments);
}

List Runtime::iterate(const Value& value) {
  List items;
  switch (value.kind()) {
    case Kind::list:
      budget_->charge(value.as_list().size(), sizeof(Value));
      return value.as_list();
    case Kind::dict:
      budget_->charge(value.as_dict().items.size(), sizeof(Value));
      for (const auto& each : value.as_dict().items) items.push_back(each.first);
      return items;
    case Kind::string: {
      const std::vector<size_t> starts = character_starts(*budget_, value.as_string());
      budget_->charge(starts.size(), sizeof(Value) + kContentsBytes);
      for (size_t i = 0; i + 1 < starts.size(); ++i)
        items.push_back(
            Value::string(value.as_string().substr(starts[i], starts[i + 1] - starts[i])));
      return items;
    }
    case Kind::undefined:
      return items;
    default:
      fail(fmt::format("{} cannot be iterated", value.kind_name()));
  }
}

}  // namespace prism::llm::jinja
