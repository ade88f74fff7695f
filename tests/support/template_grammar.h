// Writes random chat templates: bytes choose the productions of a grammar. Used by the fuzzer and
// by the attack.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace prism::test {

class TemplateGrammar {
 public:
  // When the bytes are used up, the first production of each rule is taken, which ends it.
  explicit TemplateGrammar(std::span<const uint8_t> choices) : choices_(choices) {}

  std::string text() {
    std::string out =
        "{% set n = namespace(s='ab', l=[1], d={'k': 1}) %}{% macro m(a, b=2) %}{{ a }}{{ b }}"
        "{% if caller %}{{ caller(a) }}{% endif %}{% endmacro %}";
    while (next_ < choices_.size() && out.size() < kLongest) out += statement();
    return out;
  }

 private:
  static constexpr size_t kLongest = 20000;
  static constexpr int kDeepest = 12;

  unsigned choose(unsigned count) {
    if (next_ >= choices_.size() || depth_ > kDeepest) return 0;
    return choices_[next_++] % count;
  }
  template <size_t Count>
  std::string pick(const std::array<std::string_view, Count>& from) {
    return std::string(from[choose(Count)]);
  }
  std::string block() {
    std::string out;
    for (unsigned i = choose(4); i > 0; --i) out += statement();
    return out;
  }

  std::string statement() {
    const Deeper deeper(this);
    switch (choose(20)) {
      case 0:
        return pick(std::array<std::string_view, 5>{"a", "\n  b", "<|x|>", "\xc3\xa4", "\xff{"});
      case 1:
      case 2:
      case 3:
        return "{{ " + expression() + " }}";
      case 4:
        return "{% if " + expression() + " %}" + block() + "{% elif " + expression() + " %}" +
               block() + "{% else %}" + block() + "{% endif %}";
      case 5:
        return "{% for " + pick(kTargets) + " in " + expression() + " %}" + block() +
               "{% endfor %}";
      case 6:
        return "{% for a in " + expression() + " if " + expression() + " %}" + block() + "{% if " +
               expression() + " %}{% " + pick(kJumps) + " %}{% endif %}{% else %}" + block() +
               "{% endfor %}";
      case 7:
        return "{% set " + pick(kTargets) + " = " + expression() + " %}";
      case 8:
        return "{% set n." + pick(kFields) + " = " + expression() + " %}";
      case 9:
        return "{% set a | " + filter() + " %}" + block() + "{% endset %}";
      case 10:
        return "{% macro " + pick(kNames) + "(a, b=" + expression() + ") %}" + block() +
               "{% endmacro %}";
      case 11:
        return "{% call(x) m(" + expression() + ") %}" + block() + "{% endcall %}";
      case 12:
        return "{% filter " + filter() + " %}" + block() + "{% endfilter %}";
      case 13:
        return "{% with a = " + expression() + ", b = " + expression() + " %}" + block() +
               "{% endwith %}";
      case 14:
        return "{%- generation -%} " + block() + "{% endgeneration %}";
      case 15:
        return "{% do " + expression() + " %}";
      case 16:
        return pick(std::array<std::string_view, 3>{"{# c #}", "{% raw %}{{ x }}{% endraw %}",
                                                    "{%- set a = 1 +%}\n"});
      case 17:
        // Values that grow: doubled lists and texts, deep nesting, mappings in mappings.
        return "{% for i in range(" + pick(kCounts) + ") %}{% set n." + pick(kFields) + " = " +
               pick(kGrowth) + " %}{% endfor %}";
      case 18:
        return "{% for i in range(" + pick(kCounts) + ") %}" + statement() + "{% endfor %}";
      default:
        return "{{ n." + pick(kFields) + " | " + filter() + " }}";
    }
  }

  std::string expression() {
    const Deeper deeper(this);
    switch (choose(24)) {
      case 0:
        return pick(kLiterals);
      case 1:
      case 2:
      case 3:
        return pick(kNames);
      case 4:
        return "n." + pick(kFields);
      case 5:
        return "[" + expression() + ", " + expression() + "]";
      case 6:
        return "{" + expression() + ": " + expression() + ", 'k': " + expression() + "}";
      case 7:
        return "(" + expression() + ")." + pick(kFields);
      case 8:
        return "(" + expression() + ")[" + expression() + "]";
      case 9:
        return "(" + expression() + ")[" + expression() + ":" + expression() + ":" +
               pick(kLiterals) + "]";
      case 10:
      case 11:
        return "(" + expression() + ")." + method();
      case 12:
      case 13:
      case 14:
        return "(" + expression() + ") | " + filter();
      case 15:
        return "(" + expression() + ") is " + pick(kTests) + "(" + expression() + ")";
      case 16:
        return pick(std::array<std::string_view, 3>{"-", "+", "not "}) + "(" + expression() + ")";
      case 17:
      case 18:
        return "(" + expression() + ") " + pick(kOperators) + " (" + expression() + ")";
      case 19:
        return "(" + expression() + " if " + expression() + " else " + expression() + ")";
      case 20:
        return pick(kFunctions) + "(" + expression() + ")";
      case 21:
        return "m(" + expression() + ", b=" + expression() + ")";
      case 22:
        return "(" + expression() + " " + pick(kOperators) + " " + expression() + " " +
               pick(kOperators) + " " + expression() + ")";
      default:
        return "'" + pick(kCounts) + "' * " + pick(kCounts);
    }
  }

  std::string filter() {
    const std::string name = pick(kFilters);
    switch (choose(6)) {
      case 0:
        return name;
      case 1:
        return name + "(" + expression() + ")";
      case 2:
        return name + "(" + expression() + ", " + expression() + ", " + expression() + ")";
      case 3:
        return name + "(attribute=" + expression() + ")";
      case 4:
        return name + "('" + pick(kFilters) + "', " + expression() + ")";
      default:
        return name + "(indent=" + pick(kLiterals) +
               ", sort_keys=true, ensure_ascii=true, separators=(" + expression() + ", " +
               expression() + "))";
    }
  }

  std::string method() {
    const std::string name = pick(kMethods);
    switch (choose(3)) {
      case 0:
        return name + "()";
      case 1:
        return name + "(" + expression() + ")";
      default:
        return name + "(" + expression() + ", " + expression() + ")";
    }
  }

  class Deeper {
   public:
    explicit Deeper(TemplateGrammar* grammar) : grammar_(grammar) { ++grammar_->depth_; }
    Deeper(const Deeper&) = delete;
    ~Deeper() { --grammar_->depth_; }

   private:
    TemplateGrammar* grammar_;
  };

  using Words = std::string_view;
  static constexpr std::array<Words, 8> kNames = {"a",    "b",        "x",     "m",
                                                  "loop", "messages", "tools", "n"};
  static constexpr std::array<Words, 4> kTargets = {"a", "b", "a, b", "x"};
  static constexpr std::array<Words, 9> kFields = {"s",     "l",    "d",     "k",       "role",
                                                   "items", "copy", "index", "nextitem"};
  static constexpr std::array<Words, 2> kJumps = {"break", "continue"};
  static constexpr std::array<Words, 6> kCounts = {"1", "3", "40", "200", "3000", "99999"};
  static constexpr std::array<Words, 12> kGrowth = {"[n.s, n.s]",   "n.s ~ n.s",
                                                    "n.l + n.l",    "[n.l]",
                                                    "[n.d, n.d]",   "{'k': n.d, 'j': n.d}",
                                                    "[[n.l].copy]", "n.s | upper ~ n.s",
                                                    "[n, n.l]",     "(n.s, n.l) | list",
                                                    "n.s | tojson", "n.l | map('list') | list"};
  static constexpr std::array<Words, 21> kLiterals = {"1",
                                                      "0",
                                                      "-1",
                                                      "9223372036854775807",
                                                      "2.5",
                                                      "1e308",
                                                      "true",
                                                      "none",
                                                      "''",
                                                      "'ab'",
                                                      "'  a b\\n'",
                                                      "'%s %d %.3f %x'",
                                                      "'{} {0} {k}'",
                                                      "'a.b'",
                                                      "'\\u00e4\\U0001f600'",
                                                      "'\\xff'",
                                                      "[]",
                                                      "{}",
                                                      "(1,)",
                                                      "'k'",
                                                      "\"it's\""};
  static constexpr std::array<Words, 27> kOperators = {
      "+",  "-",      "*",   "/",  "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=",
      "in", "not in", "and", "or", "+",  "~", "==", "<", "in", "*",  "%", "+",  "=="};
  static constexpr std::array<Words, 6> kFunctions = {"range", "namespace",    "dict",
                                                      "m",     "strftime_now", "raise_exception"};
  static constexpr std::array<Words, 25> kTests = {
      "defined", "undefined", "none",        "boolean", "true",     "false",    "integer",
      "float",   "number",    "string",      "mapping", "sequence", "iterable", "callable",
      "eq",      "ne",        "lt",          "gt",      "le",       "ge",       "sameas",
      "in",      "odd",       "divisibleby", "lower"};
  static constexpr std::array<Words, 40> kFilters = {
      "upper",   "lower",      "title",      "capitalize", "length",   "count",  "default",
      "d",       "join",       "first",      "last",       "reverse",  "map",    "select",
      "reject",  "selectattr", "rejectattr", "sort",       "dictsort", "unique", "min",
      "max",     "sum",        "int",        "float",      "abs",      "round",  "indent",
      "replace", "tojson",     "items",      "escape",     "e",        "format", "safe",
      "string",  "list",       "trim",       "attr",       "nonsense"};
  static constexpr std::array<Words, 34> kMethods = {
      "strip",      "lstrip",   "rstrip",  "split",        "rsplit",       "splitlines",
      "startswith", "endswith", "upper",   "lower",        "title",        "replace",
      "join",       "find",     "rfind",   "count",        "format",       "isdigit",
      "isalpha",    "isalnum",  "isspace", "removeprefix", "removesuffix", "capitalize",
      "isupper",    "islower",  "index",   "get",          "items",        "keys",
      "values",     "copy",     "cycle",   "nonsense"};

  std::span<const uint8_t> choices_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace prism::test
