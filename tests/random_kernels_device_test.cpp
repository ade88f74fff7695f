// Thousands of small random programs, each run several ways that must agree to the last bit: the
// interpreter as written and as lowered for poorer devices, printed text on the host, and every
// device found.
//
// PRISM_RANDOM_SEED repeats a run, PRISM_RANDOM_COUNT sets how many programs, PRISM_RANDOM_SECONDS
// how long a device may take over them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lower/lower.h"
#include "lower/passes.h"
#include "print/printer.h"
#include "runtime/discovery.h"
#include "support/interpreted.h"
#include "support/lowering.h"
#include "support/process.h"
#include "support/random_kernel.h"
#include "support/shim.h"
#include "support/shrink.h"

namespace prism::test {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

// The same programs in every run, so that a failure speaks of the change and not of the day;
// PRISM_RANDOM_SEED=new draws others, which is how wrong drivers are found.
constexpr uint64_t kUsualSeed = 966499259;

uint64_t seed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("PRISM_RANDOM_SEED");
    const uint64_t chosen = text && std::string_view(text) == "new"
                                ? std::random_device{}()
                                : number_from("PRISM_RANDOM_SEED", kUsualSeed);
    fmt::print("random programs: PRISM_RANDOM_SEED={}\n", chosen);
    std::fflush(stdout);
    return chosen;
  }();
  return value;
}

uint32_t program_count() { return static_cast<uint32_t>(number_from("PRISM_RANDOM_COUNT", 2000)); }

// At least this many run on every device, however slow its compiler is.
constexpr uint32_t kLeastOnADevice = 200;

// Runs a kernel somewhere; what comes back must be what the interpreter gives.
using Runner = std::function<Contents(const ir::Kernel&, const Launch&)>;

// Why `runner` is wrong about a kernel; empty where it is right.
std::string complaint(const ir::Kernel& kernel, const Launch& launch, uint32_t subgroup_size,
                      const Runner& runner) {
  const Contents right = interpreted(kernel, launch, subgroup_size);
  try {
    return first_difference(kernel, right, runner(kernel, launch));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotSupported) throw;
    return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Adds a failure with everything needed to look into it.
void report(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
            const std::string& what, const Runner& runner) {
  const ir::Kernel small = shrink(program.kernel, [&](const ir::Kernel& candidate) {
    return !complaint(candidate, program.launch, subgroup_size, runner).empty();
  });
  ADD_FAILURE() << where << " is wrong about program " << program.index
                << " of PRISM_RANDOM_SEED=" << program.seed << " (" << program.launch.groups[0]
                << " x " << program.launch.groups[1] << " groups, subgroups of " << subgroup_size
                << "): " << what
                << "\nsmaller: " << complaint(small, program.launch, subgroup_size, runner) << "\n"
                << ir::to_text(small) << "as generated:\n"
                << ir::to_text(program.kernel);
}

constexpr int kMostReports = 3;  // of one runner: the rest is likely the same mistake

struct Score {
  uint32_t right = 0, wrong = 0, not_supported = 0;
  void operator+=(const Score& other) {
    right += other.right;
    wrong += other.wrong;
    not_supported += other.not_supported;
  }
};

// Compares one program; false when enough mistakes have been reported.
bool compare(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
             const Runner& runner, Score& score) {
  try {
    const std::string what = complaint(program.kernel, program.launch, subgroup_size, runner);
    if (what.empty()) {
      ++score.right;
    } else {
      ++score.wrong;
      report(program, where, subgroup_size, what, runner);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotSupported) {
      ++score.wrong;
      ADD_FAILURE() << "program " << program.index << " of PRISM_RANDOM_SEED=" << program.seed
                    << ": " << error.what() << "\n"
                    << ir::to_text(program.kernel);
    } else {
      ++score.not_supported;
    }
  }
  return score.wrong < kMostReports;
}

void print_score(const std::string& where, const Score& score, double seconds) {
  fmt::print("random programs: {}: {} compared, {} differ, {} not supported, {:.0f} s\n", where,
             score.right + score.wrong, score.wrong, score.not_supported, seconds);
  std::fflush(stdout);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Calls work(0), work(1) ... until it gives false, from as many threads as there are cores.
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
  for_each(program_count(), [&](uint32_t index) {
    std::string problem;
    RandomProgram program;
    try {
      program = random_program(seed(), index);
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
    EXPECT_EQ(problem, "") << "program " << index << " of PRISM_RANDOM_SEED=" << seed() << "\n"
                           << ir::to_text(program.kernel);
    return score.wrong < kMostReports;
  });
  print_score("interpreter, subgroups of 8, 16, 32, 64", score, seconds_since(start));
}

// Devices that lack one half of the language, or nearly all of it.
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
    for_each(program_count(), [&](uint32_t index) {
      const RandomProgram program = random_program(seed(), index);
      Score one;
      compare(program, "interpreter after lowering for " + name,
              lower_detail::subgroup_size_for(program.kernel, caps), runner, one);
      const std::scoped_lock lock(mutex);
      score += one;
      return score.wrong < kMostReports;
    });
    print_score("lowered for a device with " + name, score, seconds_since(start));
    EXPECT_EQ(score.not_supported, 0u);
  }
}

// --- printed text on the host, a hundred programs to a text because the compiler starts slowly

constexpr uint32_t kProgramsInAText = 100;

// Every dialect as its devices usually are, and with almost all of it taken away.
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
  static std::mutex one_at_a_time;  // memory shared by a group is static in the compiled text
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
       i < std::min(program_count(), (text + 1) * kProgramsInAText); ++i) {
    RandomProgram program = random_program(seed(), i);
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
    report(program, where, lower_detail::subgroup_size_for(program.kernel, caps), error.what(),
           alone);
    return done(where, score);
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    const uint32_t size = lower_detail::subgroup_size_for(programs[i].kernel, caps);
    const Runner together = [&](const ir::Kernel&, const Launch& launch) {
      return under_shim(*library, i, launch);
    };
    const std::string what = complaint(programs[i].kernel, programs[i].launch, size, together);
    ++(what.empty() ? score.right : score.wrong);
    if (!what.empty() && score.wrong <= kMostReports) report(programs[i], where, size, what, alone);
  }
  done(where, score);
}

TEST(RandomKernels, PrintedTextGivesTheSameOnTheHost) {
  const uint32_t texts = (program_count() + kProgramsInAText - 1) / kProgramsInAText;
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

Contents on_device(const Device& device, const ir::Kernel& kernel, const Launch& launch) {
  const Program program = device.compile(kernel);
  std::vector<Buffer> buffers;
  for (const auto& content : launch.buffers) buffers.push_back(device.upload(content));
  std::vector<ParamValue> params;
  for (size_t i = 0; i < launch.params.size(); ++i) {
    params.emplace_back(launch.params[i]);
    params.back().type = kernel.params[i].type;
  }
  device.queue().launch(program, launch.groups, buffers, params);
  device.queue().wait();
  Contents result;
  for (const Buffer& buffer : buffers) result.push_back(device.download<std::byte>(buffer));
  return result;
}

TEST(RandomKernels, EveryDeviceGivesTheSame) {
  // PoCL 3.1 marks the loop over a group's lanes as free of dependences, and LLVM 14 then mixes up
  // values that live across barriers (one program in forty): this way it makes plain loops.
  setenv("POCL_WORK_GROUP_METHOD", "workitemloops", 0);
  // No program comes a second time: what is compiled is not worth keeping.
  const TemporaryFolder caches;
  for (const char* variable : {"PRISM_CACHE_DIR", "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR"})
    setenv(variable, caches.path().c_str(), 1);
  const double most_seconds = static_cast<double>(number_from("PRISM_RANDOM_SECONDS", 100));
  std::vector<std::thread> threads;
  for (const BackendReport& backend : discover_backends()) {
    if (backend.name == "null") continue;
    if (backend.devices.empty()) {
      fmt::print("random programs: {}: no device ({})\n", backend.name, backend.reason);
      continue;
    }
    for (const auto& driver : backend.devices)
      threads.emplace_back([&driver = driver, most_seconds] {
        const Device device(driver, "named by the test");
        const std::string where = device.id() + " (" + device.name() + ")";
        const Runner runner = [&](const ir::Kernel& kernel, const Launch& launch) {
          return on_device(device, kernel, launch);
        };
        Score score;
        const auto start = Clock::now();
        for (uint32_t index = 0; index < program_count(); ++index) {
          if (index >= kLeastOnADevice && seconds_since(start) > most_seconds) break;
          const RandomProgram program = random_program(seed(), index);
          if (!compare(program, where,
                       lower_detail::subgroup_size_for(program.kernel, device.info().capabilities),
                       runner, score))
            break;
        }
        print_score(where, score, seconds_since(start));
      });
  }
  const bool none = threads.empty();
  for (std::thread& thread : threads) thread.join();
  if (none) GTEST_SKIP() << "no device was found, not even the CPU";
}

}  // namespace
}  // namespace prism::test
