// Tests JSON: the order and kinds of values written, what is read and what is refused.
#include "base/json.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <fstream>
#include <functional>
#include <limits>
#include <new>
#include <string>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {
namespace {

TEST(Json, ValuesAreWrittenByTheirKind) {
  const Json all = {{"null", nullptr},
                    {"flag", true},
                    {"text", "a \"b\"\n"},
                    {"string", std::string("ü")},
                    {"negative", -3},
                    {"small", uint8_t{200}},
                    {"largest", std::numeric_limits<uint64_t>::max()},
                    {"least", std::numeric_limits<int64_t>::min()},
                    {"whole", 2.0},
                    {"float", 0.5f},
                    {"tiny", 1e-9},
                    {"infinite", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(all.dump(),
            R"({"null":null,"flag":true,"text":"a \"b\"\n","string":"ü","negative":-3,)"
            R"("small":200,"largest":18446744073709551615,"least":-9223372036854775808,)"
            R"("whole":2.0,"float":0.5,"tiny":1e-09,"infinite":null})");
}

TEST(Json, BracesArePairsOrItems) {
  EXPECT_EQ((Json{{"a", 1}}).dump(), R"({"a":1})");
  EXPECT_EQ((Json{{"a", 1}, {"b", {{"c", 2}, {"d", 3}}}}).dump(), R"({"a":1,"b":{"c":2,"d":3}})");
  EXPECT_EQ((Json{{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ((Json{{"a", 1, 2}}).dump(), R"([["a",1,2]])");
  EXPECT_EQ((Json{1, "two", 3.5}).dump(), R"([1,"two",3.5])");
}

TEST(Json, ContainersBecomeArraysAndObjects) {
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::vector<int32_t>{}).dump(), "[]");
  EXPECT_EQ(Json(std::array<uint32_t, 3>{1, 2, 3}).dump(), "[1,2,3]");
  EXPECT_EQ(Json(std::vector<float>{0.25f}).dump(), "[0.25]");
  EXPECT_EQ(Json(std::map<std::string, size_t>{{"y", 2}, {"x", 1}}).dump(), R"({"x":1,"y":2})");
  EXPECT_EQ(Json::array().dump() + Json::object().dump() + Json().dump(), "[]{}null");
}

TEST(Json, GrowsInOrderAndIndents) {
  Json all = {{"z", 1}};
  all["a"].push_back({{"in", true}});
  all["a"].push_back("item");
  all["z"] = {{"again", nullptr}};
  EXPECT_EQ(all.dump(), R"({"z":{"again":null},"a":[{"in":true},"item"]})");
  EXPECT_EQ((Json{{"a", {1}}}).dump(2), "{\n  \"a\": [\n    1\n  ]\n}");
}

TEST(Json, CopiesAreTheirOwn) {
  Json one = {{"a", 1}};
  Json other = one;
  other["a"] = 2;
  EXPECT_EQ(one.dump() + other.dump(), R"({"a":1}{"a":2})");
}

TEST(Json, APartReplacesItsWhole) {
  Json value = {{"a", {{"b", {1, 2}}}}};
  value = Json(value["a"]);
  value = value["b"];
  EXPECT_EQ(value.dump(), "[1,2]");
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)
// In a child, whose address space is too small for a second copy of the text.
TEST(Json, ACopyWithoutMemoryThrows) {
  const auto copy = [](const std::function<void(const Json&)>& make) {
    const Json large(std::string(64 << 20, 'x'));
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(getpagesize()) + (32 << 20);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    try {
      make(large);
    } catch (const std::bad_alloc&) {
      _exit(0);
    }
    _exit(1);
  };
  EXPECT_EXIT(copy([](const Json& large) { const Json other(large); }), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(copy([](const Json& large) {
                Json other = {1, "a"};
                other = large;
              }),
              testing::ExitedWithCode(0), "");
}
#endif

TEST(Json, BrokenCharactersAreReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xEF\xBF\xBD\""); }

TEST(Json, BrokenCharactersAreReplacedOneByOne) {
  // A byte alone, a surrogate, an overlong form, beyond U+10FFFF, a cut character.
  EXPECT_EQ(Json("\x80|\xED\xA0\x80|\xC0\xAF|\xF4\x90\x80\x80|\xE2\x82").dump(),
            "\"\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD\"");
  EXPECT_EQ(Json("\x01\t\x7F\U0001F600").dump(), "\"\\u0001\\t\x7F\U0001F600\"");
}

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  try {
    Json::parse(text, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(JsonParse, ReadsWhatItWrites) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "0.5", "\"a\\u0000\\n\"", "[]", "{}",
        R"([1,[2,{"a":null}],"x"])", R"({"z":1,"a":{"b":[true,false]}})"})
    EXPECT_EQ(Json::parse(text).dump(), text);
  EXPECT_EQ(Json::parse(" {\"a\" : 1e3 } ").dump(), R"({"a":1000.0})");
  EXPECT_EQ(Json::parse(R"("\ud83d\ude00")").dump(), "\"\U0001F600\"");
}

TEST(JsonParse, LastOfEqualKeysCounts) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":3})").dump(), R"({"b":2,"a":3})");
}

TEST(JsonParse, InvalidTextIsRefusedWithItsPosition) {
  EXPECT_NE(refusal(R"({"a":})").find("byte 6"), std::string::npos) << refusal(R"({"a":})");
  for (const char* text : {"", " ", "{", "[1,]", "{'a':1}", "[1] 2", "nul", "01", "\"\x01\"",
                           "1e999", "\"\\ud800\"", "{\"a\" 1}", "NaN", "// c\n1"})
    EXPECT_FALSE(refusal(text).empty()) << text;
  for (const char* text : {"\"\xff\"", "\"\xED\xA0\x80\"", "\"\xC0\xAF\"", "\"\xE2\x82\""})
    EXPECT_NE(refusal(text).find("UTF-8"), std::string::npos) << refusal(text);
}

TEST(JsonParse, LimitsHold) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(refusal(nested(128)), "");
  EXPECT_NE(refusal(nested(129)).find("128 levels"), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, '[')).find("128 levels"), std::string::npos);
  EXPECT_NE(refusal("[1,2,3]", {.values = 3}).find("3 values"), std::string::npos);
  EXPECT_EQ(refusal("[1,2,3]", {.values = 4}), "");
  EXPECT_NE(refusal("[1,2,3]", {.bytes = 6}).find("7 bytes"), std::string::npos);
}

TEST(JsonParse, ManyMembersTakeNoQuadraticTime) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += fmt::format("\"k{}\":0,", i);
  EXPECT_EQ(Json::parse(text + "\"k0\":1}").members().size(), 200000u);
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonView, GettersNameThePath) {
  const Json json = Json::parse(
      R"({"list":[{"name":"a"},{"name":7}],"count":3,"big":1e300,"half":0.5,"none":null,"on":true})");
  const JsonView all(json);
  EXPECT_EQ(all["list"].items()[0]["name"].string(), "a");
  EXPECT_EQ(all["count"].integer(), 3);
  EXPECT_EQ(all["count"].number(), 3.0);
  EXPECT_TRUE(all["on"].boolean());
  EXPECT_EQ(all["none"].integer_or(5), 5);
  EXPECT_EQ(all["absent"]["deep"].string_or("x"), "x");
  EXPECT_FALSE(all["none"]);
  EXPECT_TRUE(all["list"]);
  EXPECT_EQ(complaint([&] { all["list"].items()[1]["name"].string(); }),
            "list[1].name is a number; it must be a string");
  EXPECT_EQ(complaint([&] { all["absent"]["deep"].string(); }),
            "absent.deep is missing; it must be a string");
  EXPECT_EQ(complaint([&] { all["count"]["x"]; }), "count is a number; it must be an object");
  EXPECT_EQ(complaint([&] { all["count"].integer(4); }), "count is 3; it must be at least 4");
  EXPECT_EQ(complaint([&] { all["half"].integer(); }), "half is 0.5; it must be an integer");
  EXPECT_NE(complaint([&] { all["big"].integer(); }), "");
  const Json natural = Json::parse(R"({"seed": 9223372036854775808})");
  EXPECT_EQ(complaint([&] { JsonView(natural)["seed"].integer(); }),
            "seed is 9223372036854775808; it must be at most 9223372036854775807");
  EXPECT_EQ(complaint([&] { all["half"].number(1, 2); }), "half is 0.5; it must be from 1 to 2");
  EXPECT_EQ(complaint([&] { JsonView(json).items(); }),
            "the JSON is an object; it must be an array");
}

}  // namespace
}  // namespace prism
