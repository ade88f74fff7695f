// Attacks the chat template engine, whose templates come from model files: known killers, and
// random templates from a grammar. A template renders or throws an Error, and allocates no more
// memory in total than its budget of work allows.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "prism/error.h"
#include "prism/llm/chat_template.h"
#include "support/attack_rounds.h"
#include "support/template_grammar.h"

namespace {

// Bytes allocated since the program began, freed or not.
std::atomic<uint64_t> allocated_bytes = 0;

void* counted_allocation(size_t bytes) {
  allocated_bytes += bytes;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return counted_allocation(bytes); }
void* operator new[](size_t bytes) { return counted_allocation(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace prism::llm {
namespace {

// Memory for one unit of work: buffers grow by doubling, and a rendering is charged apart from the
// parsing.
constexpr uint64_t kBytesForWork = 6;
constexpr uint64_t kFixedBytes = 1 << 20;

// Renders and returns the error's message, or an empty text. Fails if it takes more memory than
// `work` allows.
std::string complaint(const std::string& text, uint64_t work, const std::string& variables = "{}") {
  ChatOptions options;
  options.limits.work = work;
  const uint64_t before = allocated_bytes;
  std::string message;
  try {
    ChatTemplate(text, options.limits).render_json(variables, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    message = error.what();
  }
  EXPECT_LE(allocated_bytes - before, kBytesForWork * work + kFixedBytes) << text.substr(0, 1000);
  return message;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// n.v after `times` rounds of n.v = `next`, then `use`.
std::string grown(const std::string& start, int times, const std::string& next,
                  const std::string& use) {
  return "{% set n = namespace(v=" + start + ") %}{% for i in range(" + std::to_string(times) +
         ") %}{% set n.v = " + next + " %}{% endfor %}" + use;
}

struct Killer {
  const char* name;
  std::string text;
};

std::string name_of(const testing::TestParamInfo<Killer>& killer) { return killer.param.name; }
void PrintTo(const Killer& killer, std::ostream* out) { *out << killer.name; }

class KillerTemplate : public testing::TestWithParam<Killer> {};

// Each of these once crashed, hung or took gigabytes, or would if one charge were missing.
TEST_P(KillerTemplate, IsStopped) { EXPECT_NE(complaint(GetParam().text, 1 << 24), ""); }

const std::string kShared = "[n.v, n.v]";
const std::string kTwoShared =
    "{% set n = namespace(v=[], w=[]) %}{% for i in range(40) %}{% set n.v = [n.v, n.v] %}"
    "{% set n.w = [n.w, n.w] %}{% endfor %}";
const std::string kForever = "{% for i in range(99999) %}{% for j in range(99999) %}";
const std::string kEnd = "{% endfor %}{% endfor %}";

INSTANTIATE_TEST_SUITE_P(
    Values, KillerTemplate,
    testing::Values(
        Killer{"print_shared", grown("[]", 40, kShared, "{{ n.v }}")},
        Killer{"json_shared", grown("[]", 40, kShared, "{{ n.v | tojson(indent=4) }}")},
        Killer{"string_shared", grown("[]", 40, kShared, "{{ n.v | string | length }}")},
        Killer{"concatenate_shared", grown("[]", 40, kShared, "{{ n.v ~ 'a' }}")},
        Killer{"undefined_named_by_shared", grown("[]", 40, kShared, "{{ {}[n.v] }}")},
        Killer{"join_shared", grown("[]", 40, kShared, "{{ n.v | join }}")},
        Killer{"equal_shared", kTwoShared + "{{ n.v == n.w }}"},
        Killer{"less_shared", kTwoShared + "{{ n.v < n.w }}"},
        Killer{"less_nested",
               grown("[1]", 90, "[n.v]",
                     "{{ n.v < n.v[:] }}" + kForever + "{{ n.v < [n.v[0]] }}" + kEnd)},
        Killer{"sort_shared", kTwoShared + "{{ [n.v, n.w] | sort }}"},
        Killer{"unique_shared", kTwoShared + "{{ [n.v, n.w] | unique }}"},
        Killer{"maximum_shared", kTwoShared + "{{ [n.v, n.w] | max }}"},
        Killer{"in_shared", kTwoShared + "{{ n.v in [n.w] }}"},
        Killer{"index_shared", kTwoShared + "{{ [n.w].index(n.v) }}"},
        Killer{"print_deep", grown("[]", 20000, "[n.v]", "{{ n.v }}")},
        Killer{"json_deep", grown("[]", 20000, "[n.v]", "{{ n.v | tojson }}")},
        Killer{"equal_deep",
               "{% set n = namespace(v=[], w=[]) %}{% for i in range(9000) %}"
               "{% set n.v = [n.v] %}{% set n.w = [n.w] %}{% endfor %}"
               "{{ n.v == n.w }}"},
        Killer{"nested_keys", grown("1", 9000, "{n.v: 1}", "{{ n.v == n.v }}")},
        Killer{"starts_with_deep", grown("'a'", 9000, "[n.v]", "{{ 'a'.startswith(n.v) }}")},
        Killer{"namespace_in_itself", "{% set n = namespace() %}{% set n.n = [n, n] %}{{ n }}"},
        Killer{"map_of_map", grown("'a'", 9000, "[n.v]",
                                   "{{ n.v | map(" + repeated("'map', ", 9000) + "'upper') }}")}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Work, KillerTemplate,
    testing::Values(
        Killer{"loops", kForever + kEnd},
        Killer{"trim", "{% set s = ' ' * 100000 %}" + kForever + "{% set t = s | trim %}" + kEnd},
        Killer{"trim_characters",
               "{% set s = 'a' * 100000 %}" + kForever + "{% set t = s.strip(s) %}" + kEnd},
        Killer{"int", "{% set s = '1' * 100000 %}" + kForever + "{% set t = s | int %}" + kEnd},
        Killer{"float", "{% set s = '1' * 100000 %}" + kForever + "{% set t = s | float %}" + kEnd},
        Killer{"equal_texts", "{% set s = 'a' * 100000 %}{% set t = 'a' * 100000 %}" + kForever +
                                  "{% set u = s == t %}" + kEnd},
        Killer{"find", "{% set s = 'a' * 100000 %}{% set t = 'a' * 50000 ~ 'b' %}" + kForever +
                           "{% set u = t in s %}" + kEnd},
        Killer{"rfind", "{% set s = 'a' * 100000 %}{% set t = 'b' ~ 'a' * 50000 %}" + kForever +
                            "{% set u = s.rfind(t) %}" + kEnd},
        Killer{"replace", "{{ ('a' * 10000) | replace('a', 'b' * 100000) }}"},
        Killer{"join", "{{ range(99999) | join('b' * 100000) }}"},
        Killer{"split",
               "{% set s = 'a ' * 100000 %}" + kForever + "{% set t = s.split() %}" + kEnd},
        Killer{"split_before_blanks", "{% set s = 'a ' * 100000 ~ ' ' * 1000000 %}" + kForever +
                                          "{% set t = s.split() %}" + kEnd},
        Killer{"characters", "{% set s = 'a' * 1000000 %}{{ s | list }}"},
        Killer{"slices", "{% set s = 'a' * 100000 %}" + kForever + "{% set t = s[1:2] %}" + kEnd},
        Killer{"multiply", "{{ 'a' * 1000000000000 }}"},
        Killer{"multiply_nothing", "{{ '' * 9223372036854775807 }}"},
        Killer{"double_text", grown("'ab'", 99, "n.v ~ n.v", "")},
        Killer{"double_list", grown("[1]", 99, "n.v + n.v", "")},
        Killer{"indent", "{{ ('a\\n' * 100000) | indent(1000) }}"},
        Killer{"json_indent", "{{ range(99999) | list | tojson(indent=100) }}"},
        Killer{"json_separators",
               "{% set s = 'a' * 100000 %}"
               "{{ range(9999) | list | tojson(separators=(s, s)) }}"},
        Killer{"format",
               "{% set s = 'a' * 100000 %}{% set l = [s, s, s, s, s, s, s, s] %}"
               "{% set l = l + l + l + l %}{{ ('%s' * 256) % (l + l + l + l + l + l) }}"
               "{{ ('%s' * 192) % (l + l + l + l + l + l) }}"},
        Killer{"format_same", "{% set s = 'a' * 100000 %}{{ ('{0}' * 1000).format(s) }}"},
        Killer{"dates", "{{ strftime_now('%c' * 1000000) }}"},
        Killer{"range", "{{ range(1000000000) }}"},
        Killer{"namespaces", kForever + "{% set x = namespace(a=1) %}" + kEnd},
        Killer{"copy_mapping",
               "{% set n = namespace(v={}) %}{% for i in range(99999) %}"
               "{% set n.v = dict(n.v, a=n.v) %}{% endfor %}"},
        Killer{"recursive_macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
        Killer{"macro_twice",
               "{% macro m(i) %}{% if i %}{{ m(i - 1) }}{{ m(i - 1) }}{% endif %}"
               "{% endmacro %}{{ m(100) }}"},
        Killer{"long_message", "{{ raise_exception('a' * 10000000) }}"}),
    name_of);

std::string many_arguments() {
  std::string parameters, arguments;
  for (int i = 0; i < 9000; ++i) {
    parameters += "a" + std::to_string(i) + ", ";
    arguments += "a" + std::to_string(i) + "=1, ";
  }
  return "{% macro m(" + parameters + ") %}{% endmacro %}{{ m(" + arguments + ") }}";
}

std::string many_names() {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += "{% set a" + std::to_string(i) + " = 1 %}";
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, KillerTemplate,
    testing::Values(Killer{"macro_arguments", many_arguments()}, Killer{"names", many_names()},
                    Killer{"parentheses", "{{ " + repeated("(", 5000)},
                    Killer{"lists", "{{ " + repeated("[", 5000)},
                    Killer{"sums", "{{ 1" + repeated(" + 1", 5000) + " }}"},
                    Killer{"filters", "{{ 1" + repeated(" | abs", 5000) + " }}"},
                    Killer{"attributes", "{{ a" + repeated(".a", 5000) + " }}"},
                    Killer{"signs", "{{ " + repeated("-", 5000) + "1 }}"},
                    Killer{"negations", "{{ " + repeated("not ", 5000) + "1 }}"},
                    Killer{"blocks", repeated("{% if 1 %}", 5000)},
                    Killer{"long_list", "{{ [" + repeated("1,", 100000) + "] }}"},
                    Killer{"long_text", repeated("{{ a }}", 100000)}),
    name_of);

// Depth is no work: values of any depth are freed, also those that functions hold.
TEST(TemplateAttack, DeepValuesAreFreed) {
  for (const char* next : {"[n.v]", "{'k': n.v}", "[[n.v].count]", "namespace(v=n.v)"}) {
    const std::string text = grown("[]", 99999, next, "done");
    EXPECT_EQ(ChatTemplate(text).render_json("{}", {.limits = {.work = uint64_t{1} << 32}}), "done")
        << next;
  }
}

// A hundred uses of a text of 10,000 bytes exceed a budget that a hundred rounds of a loop do not.
TEST(TemplateAttack, LookingAtATextIsWork) {
  const auto used = [](const std::string& expression) {
    return complaint(
        "{% set s = 'a' * 10000 %}{% set t = 'a' * 10000 %}{% for i in range(100) %}"
        "{% set x = " +
            expression + " %}{% endfor %}",
        1000000);
  };
  EXPECT_EQ(used("i"), "");
  for (const char* expression : {"s | trim",
                                 "s.strip('a')",
                                 "s | int",
                                 "s | float",
                                 "s == t",
                                 "s != t",
                                 "s < t",
                                 "'b' in s",
                                 "s | length",
                                 "s | upper",
                                 "s | title",
                                 "s.isalpha()",
                                 "s.find('b')",
                                 "s.rfind('b')",
                                 "s.count('b')",
                                 "s.split('b')",
                                 "s.splitlines()",
                                 "s[1:2]",
                                 "s[0]",
                                 "s | replace('b', '')",
                                 "s | e",
                                 "s | indent",
                                 "s ~ ''",
                                 "s + ''",
                                 "s is lower",
                                 "s is in t",
                                 "s.startswith(t)",
                                 "s.removesuffix(t)",
                                 "s | list",
                                 "s | reverse",
                                 "s | first",
                                 "[s, t] | sort",
                                 "[s, t] | unique",
                                 "[s, t] | max",
                                 "s | tojson",
                                 "'%s' % s",
                                 "'{}'.format(s)",
                                 "{'k': 1}[s]",
                                 "{s: 1}[t]",
                                 "s in [t]",
                                 "[t].index(s)",
                                 "[s] | join",
                                 "(s ~ i) is eq(t ~ i)",
                                 "[s] | string",
                                 "s.join(['', ''])"})
    EXPECT_NE(used(expression), "") << expression;
}

TEST(TemplateAttack, JsonIsCounted) {
  std::string keys;
  for (int i = 0; i < 20000; ++i) keys += (i ? ", \"" : "\"") + std::to_string(i) + "\": 1";
  EXPECT_NE(complaint("", 1 << 24, "{\"x\": {" + keys + "}}"), "");
  EXPECT_NE(complaint("", 1 << 24, "{\"x\": [" + repeated("[], ", 500000) + "1]}"), "");
  EXPECT_NE(complaint("", 1 << 24, repeated("{\"x\": [", 100000)), "");
}

TEST(TemplateAttack, RandomTemplates) {
  const std::string variables =
      R"({"messages": [{"role": "user", "content": "Hi <b> ü"}], "tools": {"k": [1, 2.5, null]}})";
  std::mt19937 random(1);
  int64_t rendered = 0;
  const int64_t rounds = test::attack_rounds(1000);
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<uint8_t> choices(1 + random() % 200);
    for (uint8_t& choice : choices) choice = static_cast<uint8_t>(random());
    const std::string text = test::TemplateGrammar(choices).text();
    rendered += complaint(text, 1 << 18, variables).empty() ? 1 : 0;
    if (HasFailure()) FAIL() << "round " << round << ": " << text;
  }
  EXPECT_GT(rendered, rounds / 20) << "the grammar writes too few valid templates";
}

}  // namespace
}  // namespace prism::llm
