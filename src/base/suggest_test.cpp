// Tests the nearest name and the text of a suggestion.
#include "base/suggest.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

const std::vector<std::string> kNames = {"copy", "row_softmax", "vulkan"};

TEST(Suggest, NearNamesAreFound) {
  EXPECT_EQ(nearest_name("vulcan", kNames), "vulkan");
  EXPECT_EQ(nearest_name("COPPY", kNames), "copy");
  EXPECT_EQ(nearest_name("row", kNames), "row_softmax");
  EXPECT_EQ(nearest_name("cpoy", kNames), "copy") << "two letters swapped are one mistake";
}

TEST(Suggest, FarNamesAreNot) {
  EXPECT_EQ(nearest_name("transpose", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
}

TEST(Suggest, TextListsEveryName) {
  EXPECT_EQ(valid_names("vulcan", kNames),
            "; did you mean \"vulkan\"? Valid names: copy, row_softmax, vulkan");
  EXPECT_EQ(valid_names("xyzzy", kNames), "; valid names: copy, row_softmax, vulkan");
}

}  // namespace
}  // namespace prism
