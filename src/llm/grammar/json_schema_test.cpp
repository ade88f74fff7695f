// Tests grammars made from JSON schemas: texts they must accept and reject.
#include "llm/grammar/json_schema.h"

#include <gtest/gtest.h>

#include <random>

#include "llm/grammar/number_grammar.h"
#include "llm/grammar/regex_grammar.h"
#include "prism/error.h"
#include "prism/llm/grammar.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

void expect(std::string_view schema, const std::vector<std::string>& right,
            const std::vector<std::string>& wrong) {
  const std::string text = json_schema_to_grammar(schema);
  const Grammar grammar = Grammar::parse(text);
  for (const std::string& each : right)
    EXPECT_TRUE(grammar.matches(each)) << schema << "\n" << text << each;
  for (const std::string& each : wrong)
    EXPECT_FALSE(grammar.matches(each)) << schema << "\n" << text << each;
}

std::string error_of(std::string_view schema, ErrorCode code) {
  try {
    Grammar::from_json_schema(schema);
    ADD_FAILURE() << schema;
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
}

TEST(JsonSchema, PlainTypes) {
  expect("true", {"1", "\"a\"", "{\"a\": [1, 2.5e3, null]}", "[]", "{}", "-0.5"},
         {"", "{", "[1,]", "01", "{a: 1}", "nul"});
  expect(R"({"type": "string"})", {R"("")", R"("a\n\u00e9\"é")"}, {"a", "\"\n\"", R"("\q")"});
  expect(R"({"type": "boolean"})", {"true", "false"}, {"null", "True"});
  expect(R"({"type": "null"})", {"null"}, {"0"});
  expect(R"({"type": "integer"})", {"0", "-12", "123456"}, {"1.5", "00", "1e3"});
  expect(R"({"type": "number"})", {"0", "-1.25", "3e10"}, {".5", "1."});
  expect(R"({"type": ["integer", "null"]})", {"3", "null"}, {"\"3\""});
}

TEST(JsonSchema, ObjectsKeepOrderAndRequirements) {
  constexpr const char* kSchema = R"({"type": "object", "properties": {
    "a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
    "required": ["b"]})";
  expect(kSchema,
         {R"({"b": 1})", R"({"a": 1, "b": 2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
         {"{}", R"({"a": 1})", R"({"c": 1, "b": 2})", R"({"b": 1, "b": 2})", R"({"b": 1,})",
          R"({"b": 1, "d": 2})", R"({"b": "1"})"});
  expect(R"({"properties": {"a": {}, "b": {}}})",
         {"{}", R"({"a": 1})", R"({"b": []})", R"({"a": 1, "b": 2})"}, {R"({, "b": 2})"});
  expect(R"({"type": "object"})", {"{}", R"({"x": {"y": 1}})"}, {"[]"});
  expect(R"({"type": "object", "properties": {}})", {"{}"}, {R"({"x": 1})"});
  expect(R"({"required": ["x"]})", {R"({"x": 1})"}, {"{}"});
}

TEST(JsonSchema, AdditionalPropertiesHaveOtherNames) {
  expect(R"({"properties": {"ab": {"type": "integer"}, "a\"é": {"type": "null"}},
             "additionalProperties": {"type": "string"}})",
         {R"({"ab": 1, "x": "y"})", R"({"x": "y", "z": "w"})", R"({"a": "y"})", R"({"abc": "y"})",
          R"({"": "y"})", "{}", R"({"a\"é": null})"},
         {R"({"ab": "x"})", R"({"x": 1})", R"({"x": "y", "ab": 1})", R"({"a\"é": "x"})"});
  expect(R"({"properties": {"a": {}}, "additionalProperties": false})", {R"({"a": 1})"},
         {R"({"b": 1})"});
}

TEST(JsonSchema, Arrays) {
  expect(R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
         {"[1]", "[1, 2, 3]"}, {"[]", "[1, 2, 3, 4]", "[\"a\"]"});
  expect(R"({"items": {"type": "null"}, "maxItems": 0})", {"[]"}, {"[null]"});
  expect(R"({"type": "array", "minItems": 2})", {"[1, \"a\"]", "[1,2,3]"}, {"[1]"});
  expect(R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})", {"[1, \"a\"]"},
         {"[1]", "[\"a\", 1]", "[1, \"a\", 2]"});
  expect(R"({"prefixItems": [{"type": "integer"}], "items": {"type": "null"}, "maxItems": 3})",
         {"[1]", "[1, null, null]"}, {"[1, null, null, null]", "[1, 1]"});
  for (const char* no_list : {"false", "1", "\"a\"", "{}"})
    error_of(std::string(R"({"prefixItems": )") + no_list + "}", ErrorCode::kInvalidArgument);
}

TEST(JsonSchema, ValuesAndAlternatives) {
  expect(R"({"enum": ["a\"b", 1, null, {"x": [1]}]})", {R"("a\"b")", "1", "null", R"({"x":[1]})"},
         {"\"a\"", "2"});
  expect(R"({"const": "é\n"})", {R"("é\n")"}, {R"("e\n")"});
  expect(R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]})",
         {"17", R"("ab")"}, {R"("abc")", "null"});
  expect(R"({"type": "object", "properties": {"a": {}, "b": {}},
             "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})",
         {R"({"a": 1})", R"({"b": 1})"}, {"{}"});
  expect(R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                       {"$ref": "#/$defs/more"}],
             "$defs": {"more": {"properties": {"b": {"type": "null"}}, "required": ["b"]}}})",
         {R"({"a": 1, "b": null})"}, {R"({"a": 1})", R"({"b": null})"});
}

TEST(JsonSchema, ReferencesMayContainThemselves) {
  expect(R"({"$ref": "#/definitions/node", "definitions": {"node": {"type": "object",
             "properties": {"next": {"anyOf": [{"$ref": "#/definitions/node"}, {"type": "null"}]}},
             "required": ["next"]}}})",
         {R"({"next": null})", R"({"next": {"next": {"next": null}}})"},
         {"null", R"({"next": {}})"});
  expect(R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[], [[]]]"}, {"[1]"});
  error_of(R"({"$ref": "#/nowhere"})", ErrorCode::kInvalidArgument);
  error_of(R"({"$ref": "#"})", ErrorCode::kInvalidArgument);
  error_of(R"({"$ref": "https://example.com/a"})", ErrorCode::kNotSupported);
}

TEST(JsonSchema, Strings) {
  expect(R"({"minLength": 2, "maxLength": 3})", {R"("ab")", R"("日本é")"}, {R"("a")", R"("abcd")"});
  expect(R"({"format": "date"})", {R"("2024-02-29")"}, {R"("2024-13-01")", R"("24-01-01")"});
  expect(R"({"format": "time"})", {R"("23:59:59Z")", R"("00:00:00.5+02:00")"}, {R"("24:00:00Z")"});
  expect(R"({"format": "date-time"})", {R"("2024-02-29T10:00:00Z")"}, {R"("2024-02-29")"});
  expect(R"({"format": "uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"}, {R"("123e4567")"});
  expect(R"({"format": "ipv4"})", {R"("192.168.0.255")"}, {R"("192.168.0.256")"});
  expect(R"({"format": "email"})", {R"("a.b@example.org")"}, {R"("a.b")"});
  expect(R"({"type": "integer", "format": "date"})", {"1"}, {R"("2024-02-29")"});
}

TEST(JsonSchema, Patterns) {
  expect(R"({"pattern": "^[A-Z]{2}-\\d+(?:a|b)?$"})", {R"("AB-12a")", R"("XY-0")"},
         {R"("A-1")", R"("AB-")", R"("AB-1c")"});
  expect(R"({"pattern": "^\"\\\\$"})", {R"("\"\\")"}, {R"("x")"});
  expect(R"({"pattern": "cat"})", {R"("cat")", R"("a cat!")"}, {R"("dog")"});
  expect(R"({"pattern": "^a|b$"})", {R"("ax")", R"("xb")"}, {R"("xa")", R"("bx")"});
  expect(R"({"pattern": "^[^a-z\\s]*$"})", {R"("ABC1")", R"("")", R"("\"")"},
         {R"("a")", R"("A B")"});
  for (const char* wrong : {"(?=a)", "(a)\\1", "\\bword", "a(?!b)", "\\p{L}"})
    EXPECT_THROW(regex_to_grammar(wrong, "char"), Error) << wrong;
  for (const char* wrong : {"(a", "a)", "[a", "a{2", "*a", "a{x}", "\\"})
    EXPECT_THROW(regex_to_grammar(wrong, "char"), Error) << wrong;
}

TEST(JsonSchema, RangesOfIntegersAreExact) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const int64_t scale = int64_t{1} << (random() % 44);
    const auto any = [&] { return static_cast<int64_t>(random() % (2 * uint64_t(scale))) - scale; };
    std::optional<int64_t> low = any(), high = any();
    if (*low > *high) std::swap(low, high);
    if (random() % 4 == 0) low.reset();
    if (random() % 4 == 0) high.reset();
    const Grammar grammar = Grammar::parse("root ::= " + integer_grammar(low, high));
    std::vector<int64_t> values = {0, 1, -1, 9, 10, -10, 99, 100, any(), any(), any()};
    for (const auto& limit : {low, high})
      if (limit)
        for (const int64_t step : {-11, -10, -9, -1, 0, 1, 9, 10, 11})
          values.push_back(*limit + step);
    for (const int64_t value : values) {
      const bool expected = (!low || value >= *low) && (!high || value <= *high);
      ASSERT_EQ(grammar.matches(std::to_string(value)), expected)
          << value << " in " << (low ? std::to_string(*low) : "-") << " to "
          << (high ? std::to_string(*high) : "-");
    }
    EXPECT_FALSE(grammar.matches("007"));
    EXPECT_FALSE(grammar.matches("-0"));
  }
}

TEST(JsonSchema, RangesOfNumbers) {
  expect(R"({"type": "integer", "minimum": 0, "exclusiveMaximum": 11})", {"0", "10"}, {"11", "-1"});
  expect(R"({"type": "integer", "minimum": 0.5})", {"1", "12345"}, {"0"});
  expect(R"({"type": "number", "minimum": 0, "maximum": 1})", {"0", "0.25", "1", "1.0"},
         {"1.5", "-0.5", "2"});
  expect(R"({"type": "number", "minimum": -2})", {"-2", "-1.99", "-0.5", "7.25"}, {"-2.01", "-3"});
  expect(R"({"type": "number", "minimum": 0.5})", {"0.5", "0.75", "1", "12.5", "3.0"},
         {"0.49", "0", "-1", "00.5"});
  expect(R"({"type": "number", "exclusiveMinimum": 0})", {"0.01", "1", "7.5"}, {"0", "0.0", "-1"});
  expect(R"({"type": "number", "minimum": 0, "exclusiveMinimum": true})", {"0.5"}, {"0", "-0.5"});
  expect(R"({"type": "number", "exclusiveMinimum": -0.5, "exclusiveMaximum": 1})",
         {"-0.49", "-0.1", "0", "0.999", "0.0"}, {"-0.5", "-0.50", "1", "1.0", "-1"});
  error_of(R"({"type": "number", "exclusiveMinimum": 1, "maximum": 1})",
           ErrorCode::kInvalidArgument);
  error_of(R"({"type": "number", "minimum": 0.12345678912})", ErrorCode::kNotSupported);
  error_of(R"({"type": "integer", "minimum": 5, "maximum": 3})", ErrorCode::kInvalidArgument);
}

TEST(JsonSchema, RangesOfDecimalsAreExact) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 400; ++round) {
    const size_t decimals = random() % 4;
    const int64_t scale = int64_t{1} << (random() % 20);
    const auto any = [&] { return static_cast<int64_t>(random() % (2 * uint64_t(scale))) - scale; };
    std::optional<DecimalLimit> low = DecimalLimit{any(), random() % 2 == 0},
                                high = DecimalLimit{any(), random() % 2 == 0};
    if (low->value > high->value) std::swap(low->value, high->value);
    const int64_t ends[] = {low->value, high->value};
    if (random() % 4 == 0) low.reset();
    if (random() % 4 == 0) high.reset();
    const std::string rule = decimal_grammar(low, high, decimals);
    if (rule.empty()) {
      EXPECT_TRUE(ends[0] == ends[1] && (low->is_exclusive || high->is_exclusive));
      continue;
    }
    const Grammar grammar = Grammar::parse("root ::= " + rule);
    // Each value in tenths of a unit, so that some are between two units.
    const auto check = [&](int64_t tenths) {
      const bool is_allowed =
          (!low || tenths > low->value * 10 || (tenths == low->value * 10 && !low->is_exclusive)) &&
          (!high || tenths < high->value * 10 ||
           (tenths == high->value * 10 && !high->is_exclusive));
      std::string digits = std::to_string(std::abs(tenths));
      if (digits.size() < decimals + 2) digits.insert(0, decimals + 2 - digits.size(), '0');
      digits.insert(digits.size() - decimals - 1, ".");
      const std::string text = (tenths < 0 ? "-" : "") + digits;
      ASSERT_EQ(grammar.matches(text), is_allowed) << text << " of " << rule;
      if (!text.ends_with("." + std::string(decimals + 1, '0'))) return;
      ASSERT_EQ(grammar.matches(text.substr(0, text.find('.'))), is_allowed) << text << rule;
    };
    for (const int64_t end : ends)
      for (const int64_t step : {-101, -100, -11, -10, -9, -1, 0, 1, 9, 10, 11, 100, 101})
        check(end * 10 + step);
    for (int i = 0; i < 20; ++i) check(any() * 10 + static_cast<int64_t>(random() % 10));
    int64_t one = 10;
    for (size_t i = 0; i < decimals; ++i) one *= 10;
    for (int64_t whole = -3; whole <= 3; ++whole) check(whole * one);
    EXPECT_FALSE(grammar.matches("01"));
  }
}

TEST(JsonSchema, ErrorsNameThePlace) {
  const std::string error = error_of(R"({"properties": {"a": {"items": {"type": "strin"}}}})",
                                     ErrorCode::kInvalidArgument);
  EXPECT_NE(error.find("#/properties/a/items"), std::string::npos) << error;
  EXPECT_NE(error.find("\"strin\" is not a type"), std::string::npos) << error;
  EXPECT_NE(error_of(R"({"not": {}})", ErrorCode::kNotSupported).find("\"not\""),
            std::string::npos);
  error_of("{", ErrorCode::kInvalidArgument);
  error_of("[1]", ErrorCode::kInvalidArgument);
  error_of(R"({"enum": []})", ErrorCode::kInvalidArgument);
  error_of(R"({"minLength": -1})", ErrorCode::kInvalidArgument);
  error_of(R"({"properties": []})", ErrorCode::kInvalidArgument);
  error_of(R"({"minimum": "1"})", ErrorCode::kInvalidArgument);
}

TEST(JsonSchema, FormatsThatAGrammarCannotExpressAreErrors) {
  const std::string text =
      error_of(R"({"properties": {"when": {"type": "string", "format": "duration"}}})",
               ErrorCode::kNotSupported);
  EXPECT_NE(text.find("#/properties/when"), std::string::npos) << text;
  EXPECT_NE(text.find("\"duration\"; supported are date, time, "), std::string::npos) << text;
  error_of(R"({"type": "integer", "format": "int128"})", ErrorCode::kNotSupported);
  error_of(R"({"format": 1})", ErrorCode::kInvalidArgument);
  error_of(R"({"format": "date", "minLength": 3})", ErrorCode::kNotSupported);
  error_of(R"({"format": "date", "pattern": "a"})", ErrorCode::kNotSupported);
}

TEST(JsonSchema, HostileSchemasEndWithAnError) {
  std::string deep = "{}";
  for (int i = 0; i < 3000; ++i) deep = "{\"items\":" + deep + "}";
  error_of(deep, ErrorCode::kNotSupported);
  // Each definition refers to the next twice: forty doublings.
  std::string doubling = "{\"allOf\":[{\"$ref\":\"#/$defs/0\"}],\"$defs\":{";
  for (int i = 0; i < 40; ++i)
    doubling += "\"" + std::to_string(i) + "\":{\"allOf\":[{\"$ref\":\"#/$defs/" +
                std::to_string(i + 1) + "\"},{\"$ref\":\"#/$defs/" + std::to_string(i + 1) +
                "\"}]},";
  doubling += "\"40\":{}}}";
  error_of(doubling, ErrorCode::kNotSupported);
  error_of(R"({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}})",
           ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace prism::llm
