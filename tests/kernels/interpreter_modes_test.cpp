// Random programs give the same bits in every interpreter mode: with and without vector
// instructions, the translator's shortcuts and the checks.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.h"
#include "ir/interpreter/interpreter_analysis.h"
#include "ir/interpreter/interpreter_ops.h"
#include "prism/error.h"
#include "support/kernels/random_kernel.h"

namespace prism {
namespace {

constexpr uint64_t kSeed = 20;
constexpr uint32_t kPrograms = 400;

test::Contents run(const test::RandomProgram& program, uint32_t subgroup, bool checked) {
  test::Contents buffers = program.launch.buffers;
  std::vector<ir::HostBuffer> bound;
  for (auto& buffer : buffers) bound.push_back({buffer.data(), buffer.size()});
  ir::InterpretOptions options;
  options.subgroup_size = subgroup;
  options.checked = checked;
  ir::interpret(program.kernel, program.launch.groups, bound, program.launch.params, options);
  return buffers;
}

TEST(InterpreterModes, RandomProgramsAgree) {
  const bool fast = ir::vm::use_avx2();
  for (uint32_t index = 0; index < kPrograms; ++index) {
    const test::RandomProgram program = test::random_program(kSeed, index);
    const uint32_t subgroup = 8u << (index % 4);
    const test::Contents first = run(program, subgroup, false);
    for (int mode = 1; mode < 8; ++mode) {
      ir::vm::use_avx2() = fast && (mode & 1) == 0;
      ir::vm::use_shortcuts() = (mode & 2) == 0;
      try {
        EXPECT_TRUE(run(program, subgroup, mode >= 4) == first)
            << "seed " << kSeed << " program " << index << " mode " << mode;
      } catch (const Error& error) {
        ADD_FAILURE() << "seed " << kSeed << " program " << index << " mode " << mode << ": "
                      << error.what();
      }
    }
    ir::vm::use_avx2() = fast;
    ir::vm::use_shortcuts() = true;
  }
}

}  // namespace
}  // namespace prism
