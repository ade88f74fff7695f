// Tests the JSON that commands write: order, kinds of values, invalid UTF-8.
#include "cli/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace prism::cli {
namespace {

TEST(CliJson, ValuesAreWrittenByTheirKind) {
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

TEST(CliJson, BracesArePairsOrItems) {
  EXPECT_EQ((Json{{"a", 1}}).dump(), R"({"a":1})");
  EXPECT_EQ((Json{{"a", 1}, {"b", {{"c", 2}, {"d", 3}}}}).dump(), R"({"a":1,"b":{"c":2,"d":3}})");
  EXPECT_EQ((Json{{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ((Json{{"a", 1, 2}}).dump(), R"([["a",1,2]])");
  EXPECT_EQ((Json{1, "two", 3.5}).dump(), R"([1,"two",3.5])");
}

TEST(CliJson, ContainersBecomeArraysAndObjects) {
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::vector<int32_t>{}).dump(), "[]");
  EXPECT_EQ(Json(std::array<uint32_t, 3>{1, 2, 3}).dump(), "[1,2,3]");
  EXPECT_EQ(Json(std::vector<float>{0.25f}).dump(), "[0.25]");
  EXPECT_EQ(Json(std::map<std::string, size_t>{{"y", 2}, {"x", 1}}).dump(), R"({"x":1,"y":2})");
  EXPECT_EQ(Json::array().dump() + Json::object().dump() + Json().dump(), "[]{}null");
}

TEST(CliJson, GrowsInOrderAndIndents) {
  Json all = {{"z", 1}};
  all["a"].push_back({{"in", true}});
  all["a"].push_back("item");
  all["z"] = {{"again", nullptr}};
  EXPECT_EQ(all.dump(), R"({"z":{"again":null},"a":[{"in":true},"item"]})");
  EXPECT_EQ((Json{{"a", {1}}}).dump(2), "{\n  \"a\": [\n    1\n  ]\n}");
}

TEST(CliJson, CopiesAreTheirOwn) {
  Json one = {{"a", 1}};
  Json other = one;
  other["a"] = 2;
  EXPECT_EQ(one.dump() + other.dump(), R"({"a":1}{"a":2})");
}

TEST(CliJson, BrokenCharactersAreReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xEF\xBF\xBD\""); }

}  // namespace
}  // namespace prism::cli
