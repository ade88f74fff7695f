// Implements the tests of templates, which follow "is".
#include <fmt/format.h>

#include <algorithm>

#include "llm/template/template_runtime.h"

namespace prism::llm::jinja {

using Kind = Value::Kind;

bool apply_test(Runtime& runtime, const std::string& name, const Value& of,
                const Arguments& arguments) {
  const Value other = arguments.get(runtime.budget(), 0, "other");
  if (name == "defined") return !of.is(Kind::undefined);
  if (name == "undefined") return of.is(Kind::undefined);
  if (name == "none") return of.is(Kind::none);
  if (name == "boolean") return of.is(Kind::boolean);
  if (name == "true") return of.is(Kind::boolean) && of.truthy();
  if (name == "false") return of.is(Kind::boolean) && !of.truthy();
  if (name == "integer") return of.is(Kind::integer);
  if (name == "float") return of.is(Kind::number);
  if (name == "number") return of.is_number();
  if (name == "string") return of.is(Kind::string);
  if (name == "mapping") return of.is(Kind::dict);
  if (name == "sequence" || name == "iterable") {
    // An undefined value is iterable and empty.
    return of.is(Kind::string) || of.is(Kind::list) || of.is(Kind::dict) || of.is(Kind::undefined);
  }
  if (name == "callable") return of.is(Kind::function);
  if (name == "eq" || name == "equalto" || name == "==") return equal(runtime.budget(), of, other);
  if (name == "ne" || name == "!=") return !equal(runtime.budget(), of, other);
  if (name == "lt" || name == "lessthan" || name == "<") return less(runtime.budget(), of, other);
  if (name == "gt" || name == "greaterthan" || name == ">")
    return less(runtime.budget(), other, of);
  if (name == "le" || name == "<=") return !less(runtime.budget(), other, of);
  if (name == "ge" || name == ">=") return !less(runtime.budget(), of, other);
  if (name == "sameas") return of.kind() == other.kind() && equal(runtime.budget(), of, other);
  if (name == "in") {
    for (const Value& item : runtime.iterate(other))
      if (equal(runtime.budget(), item, of)) return true;
    return other.is(Kind::string) && of.is(Kind::string) &&
           find(runtime.budget(), other.as_string(), of.as_string()) != std::string::npos;
  }
  if (name == "odd" || name == "even" || name == "divisibleby") {
    if (!of.is_integral())
      fail(fmt::format("is {} needs an integer, found {}", name, of.kind_name()));
    const int64_t by = name == "divisibleby" && other.is_integral() ? other.as_integer() : 2;
    if (by == 0) fail("is divisibleby 0");
    return (by == -1 || of.as_integer() % by == 0) != (name == "odd");
  }
  if (name == "lower" || name == "upper") {
    const std::string text = to_text(runtime.budget(), of);
    const auto is_other = [&](char c) {
      return name == "lower" ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
    };
    return std::ranges::none_of(text, is_other);
  }
  fail(fmt::format("the test \"is {}\" is not supported", name));
}

}  // namespace prism::llm::jinja
