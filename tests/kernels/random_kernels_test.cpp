// Thousands of small random programs, each run in several ways that must agree bit by bit: the
// interpreter on the original and on kernels lowered for poorer devices, and printed text on the
// host. random_kernels_device_test runs them on devices.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "lower/passes.h"
#include "print/printer.h"
#include "prism/error.h"
#include "support/kernels/lowering.h"
#include "support/kernels/random_comparison.h"
#include "support/kernels/shim.h"

namespace prism::test {
namespace {

// Calls work(0), work(1) ... until it returns false, with one thread per core.
void for_each(uint32_t count, const std::function<bool(uint32_t)>& work) {
  std::atomic<uint32_t> next = 0;
  std::atomic<bool> enough = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (uint32_t index = next++; index < count && !enough; index = next++)
        if (!work(index)) enough = true;
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(RandomKernels, FollowEveryRuleAtEverySubgroupSize) {
  std::mutex mutex;
  Score score;
  const auto start = Clock::now();
  for_each(random_program_count(), [&](uint32_t index) {
    std::string problem;
    RandomProgram program;
    try {
      program = random_program(random_seed(), index);
      const Contents right = interpreted(program.kernel, program.launch, 8);
      for (uint32_t size : {16u, 32u, 64u}) {
        const Contents found = interpreted(program.kernel, program.launch, size);
        if (!program.by_subgroups && problem.empty())
          problem = first_difference(program.kernel, right, found);
      }
    } catch (const Error& error) {
      problem = error.what();
    }
    const std::scoped_lock lock(mutex);
    ++(problem.empty() ? score.right : score.wrong);
    EXPECT_EQ(problem, "") << "program " << index << " of PRISM_RANDOM_SEED=" << random_seed()
                           << "\n"
                           << ir::to_text(program.kernel);
    return score.wrong < kMostReports;
  });
  print_score("interpreter, subgroups of 8, 16, 32, 64", score, seconds_since(start));
}

// Devices that lack half of the language, or nearly all of it.
std::vector<std::pair<std::string, ir::Capabilities>> poor_devices() {
  ir::Capabilities full = full_capabilities();
  full.subgroup_size = 16;
  ir::Capabilities none = full;
  none.storage_8 = none.storage_16 = none.storage_f16 = none.storage_bf16 = none.narrow_arrays =
      none.math_f16 = false;
  none.dot4 = none.float_atomics = none.async_copy = none.dependent_launch = false;
  none.subgroup_size = 0;
  none.max_groups = {2, 4096, 1};
  none.max_binding_bytes = 512;
  none.max_buffers = 4096;
  ir::Capabilities halves = full;
  halves.storage_8 = halves.storage_f16 = halves.math_f16 = halves.async_copy = false;
  halves.subgroup_size = 8;
  return {{"all there is", full}, {"almost nothing", none}, {"halves missing", halves}};
}

TEST(RandomKernels, LoweredProgramsGiveTheSame) {
  for (const auto& [name, caps] : poor_devices()) {
    std::mutex mutex;
    Score score;
    const auto start = Clock::now();
    const Runner runner = [&caps = caps](const ir::Kernel& kernel, const Launch& launch) {
      return interpreted_lowered(kernel, launch, caps);
    };
    for_each(random_program_count(), [&](uint32_t index) {
      const RandomProgram program = random_program(random_seed(), index);
      Score one;
      const std::string wrong =
          compare(program, "interpreter after lowering for " + name,
                  lower_detail::subgroup_size_for(program.kernel, caps), runner, one);
      const std::scoped_lock lock(mutex);
      if (!wrong.empty()) ADD_FAILURE() << wrong;
      score += one;
      return score.wrong < kMostReports;
    });
    print_score("lowered for a device with " + name, score, seconds_since(start));
    EXPECT_EQ(score.not_supported, 0u);
  }
}

// --- printed text on the host, a hundred programs per text because the compiler starts slowly

constexpr uint32_t kProgramsInAText = 100;

// Every dialect with its usual capabilities, and with almost all of them removed.
ir::Capabilities text_capabilities(uint32_t text) {
  const char* const dialects[] = {"cuda", "opencl", "hip", "metal", "sycl"};
  ir::Capabilities caps = typical_capabilities(dialects[text % 5]);
  if (text / 5 % 2 == 0) return caps;
  caps.storage_8 = caps.storage_16 = caps.storage_f16 = caps.storage_bf16 = caps.narrow_arrays =
      caps.math_f16 = false;
  caps.dot4 = caps.float_atomics = caps.async_copy = caps.dependent_launch = caps.fragment_layout =
      false;
  caps.subgroup_size = 0;
  caps.subgroup_sizes.clear();
  caps.fragments.clear();
  if (caps.dialect == "cuda") caps.dialect_level = 50;
  if (caps.dialect == "opencl") caps.dialect_level = 120;
  return caps;
}

Contents under_shim(const ShimLibrary& library, size_t at, const Launch& launch) {
  static std::mutex one_at_a_time;  // shared memory is static in the compiled text
  Contents buffers = launch.buffers;
  for (auto& buffer : buffers) buffer.resize((buffer.size() + 3) / 4 * 4);
  {
    const std::scoped_lock lock(one_at_a_time);
    library.run(at, launch.groups, buffers, launch.params);
  }
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].resize(launch.buffers[i].size());
  return buffers;
}

// The first kernel that does not compile by itself.
size_t refused(const ir::Capabilities& caps, const std::vector<ir::Kernel>& lowered) {
  size_t first = 0, count = lowered.size();
  while (count > 1) {
    const auto start = lowered.begin() + static_cast<std::ptrdiff_t>(first);
    try {
      compile_with_shim(caps, {start, start + static_cast<std::ptrdiff_t>(count / 2)});
      first += count / 2;
      count -= count / 2;
    } catch (const std::exception&) {
      count /= 2;
    }
  }
  return first;
}

void compare_text(uint32_t text,
                  const std::function<void(const std::string&, const Score&)>& done) {
  const ir::Capabilities caps = text_capabilities(text);
  const std::string where = fmt::format("{} text{} under the shim", caps.dialect,
                                        text / 5 % 2 ? " for a poor device" : "");
  Score score;
  std::vector<RandomProgram> programs;
  std::vector<ir::Kernel> lowered;
  for (uint32_t i = text * kProgramsInAText;
       i < std::min(random_program_count(), (text + 1) * kProgramsInAText); ++i) {
    RandomProgram program = random_program(random_seed(), i);
    try {
      lowered.push_back(lower(program.kernel, caps));
      programs.push_back(std::move(program));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
      ++score.not_supported;
    }
  }
  const Runner alone = [&](const ir::Kernel& kernel, const Launch& launch) {
    return under_shim(compile_with_shim(caps, {lower(kernel, caps)}), 0, launch);
  };
  std::optional<ShimLibrary> library;
  try {
    library.emplace(compile_with_shim(caps, lowered));
  } catch (const std::exception& error) {
    const RandomProgram& program = programs[refused(caps, lowered)];
    score.wrong += static_cast<uint32_t>(programs.size());
    ADD_FAILURE() << report(program, where, lower_detail::subgroup_size_for(program.kernel, caps),
                            error.what(), alone);
    return done(where, score);
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    const uint32_t size = lower_detail::subgroup_size_for(programs[i].kernel, caps);
    const Runner together = [&](const ir::Kernel&, const Launch& launch) {
      return under_shim(*library, i, launch);
    };
    const std::string what = complaint(programs[i].kernel, programs[i].launch, size, together);
    ++(what.empty() ? score.right : score.wrong);
    if (!what.empty() && score.wrong <= kMostReports)
      ADD_FAILURE() << report(programs[i], where, size, what, alone);
  }
  done(where, score);
}

TEST(RandomKernels, PrintedTextGivesTheSameOnTheHost) {
  const uint32_t texts = (random_program_count() + kProgramsInAText - 1) / kProgramsInAText;
  const auto start = Clock::now();
  std::mutex mutex;
  std::map<std::string, Score> scores;
  for_each(texts, [&](uint32_t text) {
    compare_text(text, [&](const std::string& where, const Score& score) {
      const std::scoped_lock lock(mutex);
      scores[where] += score;
    });
    return true;
  });
  for (const auto& [where, score] : scores) print_score(where, score, seconds_since(start));
}

}  // namespace
}  // namespace prism::test
