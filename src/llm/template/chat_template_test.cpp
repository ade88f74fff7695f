// Tests templates piece by piece against Jinja, and the limits that stop hostile ones.
#include "prism/llm/chat_template.h"

#include <gtest/gtest.h>

#include <map>

#include "prism/error.h"

namespace prism::llm {
namespace {

std::string render(const std::string& text, const std::string& variables = "{}") {
  return ChatTemplate(text).render_json(variables);
}

// The message of the error, or an empty text.
std::string complaint(const std::string& text, const std::string& variables = "{}") {
  // A sixteenth of the usual limit, so that the test is fast under sanitizers.
  ChatOptions options;
  options.limits.work = uint64_t{1} << 24;
  try {
    ChatTemplate(text).render_json(variables, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

// Each pair was checked with jinja2 3.1.
TEST(Template, Expressions) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"-7 % 3", "2"},
      {"7 / 2", "3.5"},
      {"8 / 2", "4.0"},
      {"2 ** 10", "1024"},
      {"'a' ~ 1 ~ none", "a1None"},
      {"'a' + 'b'", "ab"},
      {"'ab' * 3", "ababab"},
      {"[1] + [2, 'x']", "[1, 2, 'x']"},
      {"{'a': 1, 'b': [true, none]}", "{'a': 1, 'b': [True, None]}"},
      {"1 < 2 < 3", "True"},
      {"1 < 2 > 3", "False"},
      {"1 == 1.0", "True"},
      {"'a' in 'cat'", "True"},
      {"'x' not in ['a', 'b']", "True"},
      {"'k' in {'k': 1}", "True"},
      {"not true or true and false", "False"},
      {"'yes' if 1 else 'no'", "yes"},
      {"'yes' if 0", ""},
      {"missing", ""},
      {"missing is defined", "False"},
      {"missing is not defined", "True"},
      {"missing or 'x'", "x"},
      {"'abcdef'[1:4]", "bcd"},
      {"'abcdef'[::-1]", "fedcba"},
      {"'abcdef'[-2:]", "ef"},
      {"'äöü'[1]", "ö"},
      {"[1, 2, 3][-1]", "3"},
      {"[1, 2, 3][:-1]", "[1, 2]"},
      {"[1, 2, 3][5]", ""},
      {"{'a': {'b': 5}}.a.b", "5"},
      {"{'items': 5}['items']", "5"},
      {"{'x': 1}.get('y', 'none')", "none"},
      {"{'x': 1}.get('y')", "None"},
      {"{'x': 1}.items()|list|tojson", R"([["x", 1]])"},
      {"'  a b '.strip()", "a b"},
      {"'xxaxx'.strip('x')", "a"},
      {"'a,b,c'.split(',')", "['a', 'b', 'c']"},
      {"'a,b,c'.split(',', 1)", "['a', 'b,c']"},
      {"' a  b '.split()", "['a', 'b']"},
      {"'a</think>b</think>c'.split('</think>')[-1]", "c"},
      {"'a-b-c'.rsplit('-', 1)", "['a-b', 'c']"},
      {"' a b '.rsplit(none, 1)", "[' a', 'b']"},
      {"' a b '.split(none, 1)", "['a', 'b ']"},
      {"'aXbX'.rfind('X') ~ 'aXbX'.find('bX') ~ 'a'.rfind('ab')", "32-1"},
      {"[1, [2]] < [1, [3]] and [1] < [1, 2] and not [2] < [1, 2]", "True"},
      {"'abc'.startswith(('x', 'a'))", "True"},
      {"'abc'.upper() ~ 'ÄB'.lower()", "ABCäb"},
      {"'hello world'.title()", "Hello World"},
      {"'hello'.replace('l', 'L')", "heLLo"},
      {"', '.join(['a', 'b'])", "a, b"},
      {"'{} is {x}'.format(1, x=2)", "1 is 2"},
      {"'%s=%d' % ('a', 3)", "a=3"},
      {"'a\\n\\t\\u00e4\\'\"'", "a\n\tä'\""},
      {"1.5e3", "1500.0"},
      {"1_000", "1000"},
      {"-2|abs", "2"},
      {"5 is odd and 4 is even and 9 is divisibleby 3", "True"},
      {"'a' is string and 1 is number and {} is mapping and [] is iterable", "True"},
      {"1 is eq 1 and 2 is gt 1", "True"},
      {"none is none and true is true and false is false", "True"},
      {"range(5) | list", "[0, 1, 2, 3, 4]"},
      {"range(5, 1, -2) | list", "[5, 3]"},
      {"dict(a=1)", "{'a': 1}"},
  };
  for (const auto& [expression, expected] : cases)
    EXPECT_EQ(render("{{ " + expression + " }}"), expected) << expression;
}

TEST(Template, Filters) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"' a '|trim", "a"},
      {"'äöü'|length", "3"},
      {"[3, 1, 2]|sort", "[1, 2, 3]"},
      {"['b', 'A', 'c']|sort", "['A', 'b', 'c']"},
      {"[3, 1, 2]|sort(reverse=true)|join('-')", "3-2-1"},
      {"[1, 2, 1]|unique|list", "[1, 2]"},
      {"{'b': 1, 'a': 2}|dictsort|tojson", R"([["a", 2], ["b", 1]])"},
      {"{'b': 1}|items|list|tojson", R"([["b", 1]])"},
      {"x|default('d')", "d"},
      {"''|default('d', true)", "d"},
      {"[1, 2]|first + [1, 2]|last", "3"},
      {"[1, 2, 3]|reverse|list", "[3, 2, 1]"},
      {"[{'n': 1}, {'n': 2}]|map(attribute='n')|list", "[1, 2]"},
      {"['a', 'b']|map('upper')|join", "AB"},
      {"[1, 2, 3, 4]|select('even')|list", "[2, 4]"},
      {"[1, 2, 3, 4]|reject('even')|list", "[1, 3]"},
      {"[{'r': 'a'}, {'r': 'b'}]|selectattr('r', 'equalto', 'b')|list", "[{'r': 'b'}]"},
      {"[{'r': 'a'}, {'q': 'b'}]|rejectattr('r')|list", "[{'q': 'b'}]"},
      {"'12'|int + '3.7'|int + 'x'|int(5)", "20"},
      {"'1.5'|float", "1.5"},
      {"3|string + '!'", "3!"},
      {"'a\nb\n\nc'|indent(2)", "a\n  b\n\n  c"},
      {"'a\nb'|indent(2, true)", "  a\n  b"},
      {"[1, 2]|sum", "3"},
      {"[1, 5, 2]|max", "5"},
      {"2.6|round", "3.0"},
      {"'<a&\"b\">'|e", "&lt;a&amp;&#34;b&#34;&gt;"},
      {"'<b>'|safe", "<b>"},
      {"'hELLO'|capitalize", "Hello"},
      {"'abc'|replace('b', 'x')|upper", "AXC"},
      {"{'a': [1, 2.5, true, none, 'x\"ä\\n']}|tojson", R"({"a": [1, 2.5, true, null, "x\"ä\n"]})"},
      {"{'b': {}, 'a': []}|tojson(sort_keys=true)", R"({"a": [], "b": {}})"},
      {"{'a': [1, {}], 'b': 'ä'}|tojson(indent=2)",
       "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"ä\"\n}"},
      {"['ä']|tojson(ensure_ascii=true)", "[\"\\u00e4\"]"},
      {"[1,2]|tojson(separators=(',', ':'))", "[1,2]"},
  };
  for (const auto& [expression, expected] : cases)
    EXPECT_EQ(render("{{ " + expression + " }}"), expected) << expression;
}

TEST(Template, Statements) {
  EXPECT_EQ(render("{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.last }},{% endfor %}"),
            "1False,2False,3True,");
  EXPECT_EQ(render("{% for x in [] %}a{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}"), "a=1");
  EXPECT_EQ(render("{% for x in [1, 2, 3, 4] if x is even %}{{ x }}{{ loop.length }}{% endfor %}"),
            "2242");
  EXPECT_EQ(render("{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}"
                   "{% if x == 3 %}{% break %}{% endif %}{% endfor %}"),
            "13");
  EXPECT_EQ(
      render("{% for x in [1,2,3] %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}"),
      "<1>2 1<2>3 2<3> ");
  EXPECT_EQ(render("{% set x = 1 %}{% for y in [1] %}{% set x = 2 %}{% endfor %}{{ x }}"), "1");
  EXPECT_EQ(render("{% set n = namespace(x=1) %}{% for y in [1, 2] %}{% set n.x = n.x + y %}"
                   "{% endfor %}{{ n.x }}"),
            "4");
  EXPECT_EQ(render("{% set a, b = 1, 2 %}{{ a + b }}"), "3");
  EXPECT_EQ(render("{% set t %}x{{ 1 }}{% endset %}{{ t }}"), "x1");
  EXPECT_EQ(render("{% set t | upper %}x{% endset %}{{ t }}"), "X");
  EXPECT_EQ(render("{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}"), "b");
  EXPECT_EQ(
      render("{% macro m(a, b='x') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}"),
      "<1x><12>");
  EXPECT_EQ(render("{% macro m(a) %}({{ caller() }}{{ a }}){% endmacro %}"
                   "{% call m(2) %}in{% endcall %}"),
            "(in2)");
  EXPECT_EQ(render("{% filter upper %}a{{ 'b' }}{% endfilter %}"), "AB");
  EXPECT_EQ(render("{% with x = 2 %}{{ x }}{% endwith %}{{ x }}"), "2");
  EXPECT_EQ(render("{% generation %}a{% endgeneration %}"), "a");
  EXPECT_EQ(render("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
  EXPECT_EQ(render("a{# no {{ x }} #}b"), "ab");
  EXPECT_EQ(render("{{ {'a': {'b': 1}} }}"), "{'a': {'b': 1}}");
}

TEST(Template, WhiteSpace) {
  EXPECT_EQ(render("a\n{% if 1 %}\nb\n{% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(render("a\n   {% if 1 %}\n  b\n   {% endif %}\nc"), "a\n  b\nc");
  EXPECT_EQ(render("a   {% if 1 %}b{% endif %}   c"), "a   b   c");
  EXPECT_EQ(render("a  {%- if 1 -%}  \n b  {%- endif -%}  c"), "abc");
  EXPECT_EQ(render("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(render("a\n  {{ 1 }}\nb"), "a\n  1\nb");
  EXPECT_EQ(render("a\n  {%+ if 1 %}b{% endif +%}\nc"), "a\n  b\nc");
  EXPECT_EQ(render("a\n  {# x #}\nb"), "a\nb");
  EXPECT_EQ(render("{% if 1 %}\n  {% if 1 %}\nx{% endif %}{% endif %}"), "x");
  EXPECT_EQ(render("x\n"), "x");
  EXPECT_EQ(render("x\n\n"), "x\n");
  EXPECT_EQ(render("{% set x = '}}' %}{{ x ~ '%}' }}"), "}}%}");
}

TEST(Template, MessagesAndOptions) {
  const std::string text =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m.content }}"
      "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments.x }}{% endif %}]{% endfor %}"
      "{% if tools %}{{ tools | length }}{% endif %}{{ extra_name }}"
      "{% if add_generation_prompt %}>{% endif %}";
  const std::vector<ChatMessage> messages = {
      {.role = "user", .content = "hi"},
      {.role = "assistant",
       .content = "",
       .tool_calls = R"([{"function": {"name": "f", "arguments": "{\"x\": 5}"}}])"}};
  EXPECT_EQ(render_chat(text, messages,
                        {.bos_token = "<s>", .tools = "[1, 2]", .extra = R"({"extra_name": "E"})"}),
            "<s>[user:hi][assistant:5]2E>");
  EXPECT_EQ(render_chat(text, {}, {.add_generation_prompt = false}), "");
  const std::string names = "{{ xml_tools }} {{ python_tools }}";  // those of SmolLM3
  EXPECT_EQ(render_chat(names, messages, {.tools = "[1]"}), "[1] ");
  EXPECT_EQ(render_chat(names, messages, {}), " ");
  EXPECT_EQ(render_chat(names, messages, {.tools = "[1]", .extra = R"({"python_tools": [2]})"}),
            " [2]");
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 10;
  now.tm_mday = 5;
  EXPECT_EQ(render_chat("{{ strftime_now('%d %b %Y') }}", {}, {.now = now}), "05 Nov 2026");
}

TEST(Template, TellsWhatIsWrongAndWhere) {
  const std::map<std::string, std::string> cases = {
      {"{{ raise_exception('no system role') }}", "no system role"},
      {"a\n{{ 1 + 'x' }}", "line 2"},
      {"a\n\n{% if %}", "line 3"},
      {"{% for x in y %}", "endfor"},
      {"{% nonsense %}", "nonsense"},
      {"{{ x", "not closed"},
      {"{# x", "not closed"},
      {"{{ 'x }}", "not closed"},
      {"{{ x|nonsense }}", "nonsense"},
      {"{{ 1 is nonsense }}", "nonsense"},
      {"{{ x.y }}", "not defined"},
      {"{{ x() }}", "cannot be called"},
      {"{{ 1 // 0 }}", "division by zero"},
      {"{{ 9223372036854775807 + 1 }}", "too large"},
      {"{% set x = {} %}{% set x.y = 1 %}", "not a namespace"},
      {"{{ [1] < 2 }}", "no order"},
      {"{{ {[1]: 2} }}", "cannot be a key"},
      {"{% break %}", "outside of a loop"},
      {"{{ namespace() | tojson }}", "JSON"},
      {"{{ 1 }} {{ ] }}", "instead of a value"},
  };
  for (const auto& [text, part] : cases)
    EXPECT_NE(complaint(text).find(part), std::string::npos) << text << ": " << complaint(text);
  EXPECT_NE(complaint("x", "[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(complaint("x", "{").find("variables"), std::string::npos);
}

TEST(Template, HostileOnesAreStopped) {
  const std::string many(5000, '(');
  std::string chain = "{{ 1";
  for (int i = 0; i < 5000; ++i) chain += " + 1";
  for (const std::string& text : std::vector<std::string>{
           "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}"
           "{% endfor %}",
           "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% "
           "endfor %}",
           "{{ 'a' * 1000000000000 }}",
           "{{ range(1000000000) }}",
           "{% for i in range(9999) %}{% for j in range(9999) %}aaaaaaaaaaaaaaaa{% endfor %}{% "
           "endfor %}",
           "{{ " + many,
           chain + " }}",
           "{% set n = namespace() %}{% set n.n = [n] %}{{ n }}",
           "{{ 'x'|indent(1000000) ~ ('y' * 33554432) ~ ('y' * 33554432) }}",
           "{{ strftime_now('%Q') }}",
           "{{ strftime_now('%') }}",
       }) {
    EXPECT_NE(complaint(text), "") << text.substr(0, 60);
  }
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "{% if 1 %}";
  EXPECT_NE(complaint(deep), "");
  EXPECT_NE(complaint("{{ x }}", "{\"x\": " + std::string(200, '[') + std::string(200, ']') + "}"),
            "");
}

}  // namespace
}  // namespace prism::llm
