// Tests that every sample kernel builds and gives its expected results in the checked interpreter
// at every subgroup size.
#include "sample_kernels/sample_library.h"

#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.h"
#include "prism/error.h"

namespace prism {
namespace {

std::vector<std::vector<std::byte>> run(const ir::Kernel& kernel, const KernelCase& c,
                                        uint32_t subgroup_size) {
  std::vector<std::vector<std::byte>> contents = c.buffers;
  std::vector<ir::HostBuffer> buffers;
  for (auto& content : contents) buffers.push_back({content.data(), content.size()});
  ir::InterpretOptions options;
  options.subgroup_size = subgroup_size;
  ir::interpret(kernel, c.groups, buffers, c.params, options);
  return contents;
}

class LibraryTest : public testing::TestWithParam<size_t> {};

TEST_P(LibraryTest, InterpreterAgreesAtEverySubgroupSize) {
  const SampleKernel& entry = sample_kernels()[GetParam()];
  const ir::Kernel kernel = entry.make();
  for (const KernelCase& c : entry.cases(20261115 + GetParam(), true)) {
    ASSERT_EQ(c.buffers.size(), kernel.buffers().size()) << entry.name;
    ASSERT_EQ(c.params.size(), kernel.params.size()) << entry.name;
    for (uint32_t size : {8u, 16u, 32u, 64u})
      EXPECT_EQ(compare(c, kernel, run(kernel, c, size)), "")
          << entry.name << " " << c.name << " subgroup " << size;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LibraryTest, testing::Range<size_t>(0, sample_kernels().size()),
                         [](const auto& one) { return sample_kernels()[one.param].name; });

TEST(Library, CompareSeesWrongContents) {
  const SampleKernel& entry = find_sample_kernel("vector_add_f32");
  const ir::Kernel kernel = entry.make();
  const KernelCase c = entry.cases(1, true)[1];
  auto contents = run(kernel, c, 32);
  contents[2][4 * 7 + 2] ^= std::byte{1};
  EXPECT_NE(compare(c, kernel, contents).find("y[7]"), std::string::npos);
  EXPECT_NE(compare(c, kernel, c.buffers), "");  // poison
}

TEST(Library, UnknownNameListsTheKnown) {
  try {
    find_sample_kernel("nothing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("vector_add_f32, "), std::string::npos);
  }
}

}  // namespace
}  // namespace prism
