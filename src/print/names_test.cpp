// Tests that identifiers are legal and unique.
#include "print/names.h"

#include <gtest/gtest.h>

#include "print/prelude.h"

namespace prism {
namespace {

TEST(Names, AreLegal) {
  EXPECT_EQ(legal_identifier("x"), "x");
  EXPECT_EQ(legal_identifier("row sum"), "row_sum");
  EXPECT_EQ(legal_identifier("__a__b__"), "a_b");
  EXPECT_EQ(legal_identifier("2x"), "v2x");
  EXPECT_EQ(legal_identifier(""), "v");
  EXPECT_EQ(legal_identifier("größe"), "gr_e");
}

TEST(Names, AreUnique) {
  Names names;
  EXPECT_EQ(names.unique("x"), "x");
  EXPECT_EQ(names.unique("x"), "x_1");
  EXPECT_EQ(names.unique("x_1"), "x_1_1");
  EXPECT_EQ(names.unique("x"), "x_2");
}

TEST(Names, AvoidWhatLanguagesAndThePreludeHaveTaken) {
  Names names;
  EXPECT_EQ(names.unique("float"), "the_float");
  EXPECT_EQ(names.unique("threadgroup"), "the_threadgroup");
  EXPECT_EQ(names.unique("prism_lane"), "the_prism_lane");
  EXPECT_EQ(names.unique("kernel_add"), "the_kernel_add");
}

TEST(Prelude, HoldsWhatIsUsedAndWhatThatUses) {
  const std::vector<PreludeItem> items = {{"", "always"},
                                          {"one", "int one();"},
                                          {"two", "int two() { return one() + one(); }"},
                                          {"three", "int three();"}};
  EXPECT_EQ(used_prelude(items, "x = two();"),
            "always\nint one();\nint two() { return one() + one(); }\n");
  EXPECT_EQ(used_prelude(items, "x = twofold();"), "always\n");
}

TEST(Prelude, KeepsAssemblyFromTheHostCompiler) {
  EXPECT_EQ(used_prelude({{"f", "asm", true}}, "f()"), "#ifndef PRISM_SHIM\nasm\n#endif\n");
}

}  // namespace
}  // namespace prism
