// Random programs on every device found, compared bit by bit with the interpreter.
//
// A batch has a hundred programs, as one text if the device's compiler accepts that, and runs in a
// separate process: if the compiler crashes, only that process ends, and bisection finds the
// program. PRISM_RANDOM_SECONDS: the time after which a device starts no further batch;
// PRISM_RANDOM_START: the first program, so that runs can cover different ones.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "lower/passes.h"
#include "prism/device.h"
#include "prism/error.h"
#include "support/kernels/random_comparison.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

constexpr uint32_t kProgramsInAText = 100;
constexpr uint32_t kLeastOnADevice = 200;  // however slow its compiler is
constexpr const char* kSecondsForAText = "400";

// Known crashes, identified by the compiler's last output: named and counted, but no failure.
struct KnownCrash {
  const char* said;
  const char* what;
};
constexpr KnownCrash kKnownCrashes[] = {
    {"Running pass \"sycl-kernel-reduce-cross-barrier-values\"",
     "Intel's compiler for CPUs (2026.2) crashes in a pass over values that live across barriers"},
};
// A larger share of crashes is our bug, whether known or not.
constexpr uint32_t kOneCrashIn = 100;

const char* known_crash(const std::string& output) {
  for (const KnownCrash& known : kKnownCrashes)
    if (output.find(known.said) != std::string::npos) return known.what;
  return nullptr;
}

// --- one text in a separate process: this program with the arguments --batch DEVICE FIRST COUNT
// SEED

Contents launched(const Device& device, const Program& program, const Launch& launch) {
  std::vector<Buffer> buffers;
  for (const auto& content : launch.buffers) buffers.push_back(device.upload(content));
  std::vector<ParamValue> params;
  for (size_t i = 0; i < launch.params.size(); ++i) {
    params.emplace_back(launch.params[i]);
    params.back().type = program.kernel().params[i].type;
  }
  device.queue().launch(program, launch.groups, buffers, params);
  device.queue().wait();
  Contents result;
  for (const Buffer& buffer : buffers) result.push_back(device.download<std::byte>(buffer));
  return result;
}

// Compiles all programs together; empty if one is rejected, which then fails again by itself.
std::vector<Program> compiled_together(const Device& device,
                                       const std::vector<RandomProgram>& programs) {
  std::vector<ir::Kernel> kernels;
  for (const RandomProgram& program : programs) kernels.push_back(program.kernel);
  try {
    return device.compile_together(kernels);
  } catch (const Error&) {
    return {};
  }
}

// Reports errors, then "score RIGHT WRONG NOT_SUPPORTED".
void run_batch(const std::string& id, uint32_t first, uint32_t count, uint64_t seed) {
  const Device device = Device::named(id);
  const ir::Capabilities& capabilities = device.info().capabilities;
  Score score;
  std::vector<RandomProgram> programs;
  for (uint32_t index = first; index < first + count; ++index) {
    RandomProgram program = random_program(seed, index);
    try {
      lower(program.kernel, capabilities);
      programs.push_back(std::move(program));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
      ++score.not_supported;
    }
  }
  const std::vector<Program> together = compiled_together(device, programs);
  const Runner alone = [&](const ir::Kernel& kernel, const Launch& launch) {
    return launched(device, device.compile(kernel), launch);
  };
  for (size_t i = 0; i < programs.size() && score.wrong < kMostReports; ++i) {
    const Runner of_text = [&](const ir::Kernel&, const Launch& launch) {
      return launched(device, together[i], launch);
    };
    const std::string wrong =
        compare(programs[i], id + " (" + device.name() + ")",
                lower_detail::subgroup_size_for(programs[i].kernel, capabilities), alone, score,
                together.empty() ? Runner() : of_text);
    if (!wrong.empty()) fmt::print("{}\n", wrong);
  }
  fmt::print("score {} {} {}\n", score.right, score.wrong, score.not_supported);
}

// --- every device, text by text

class DeviceRun {
 public:
  explicit DeviceRun(const Device& device)
      : device_(device), where_(device.id() + " (" + device.name() + ")") {}

  void run() {
    // Compiling takes 40 ms with a software Vulkan driver, 300 ms with PoCL: run all, or as many as
    // fit.
    const bool quick = device_.backend() == "vulkan" || device_.backend() == "cpu";
    const auto most_seconds =
        static_cast<double>(number_from("PRISM_RANDOM_SECONDS", quick ? 400 : 100));
    const uint32_t texts = (random_program_count() + kProgramsInAText - 1) / kProgramsInAText;
    const auto start = static_cast<uint32_t>(number_from("PRISM_RANDOM_START", 0));
    const auto begun = Clock::now();
    for (uint32_t i = 0; i < texts && score_.wrong < kMostReports; ++i) {
      if (i * kProgramsInAText >= kLeastOnADevice && seconds_since(begun) > most_seconds) break;
      const uint32_t first = (start / kProgramsInAText + i) % texts * kProgramsInAText;
      batch(first, std::min(kProgramsInAText, random_program_count() - first));
    }
    print_score(where_, score_, seconds_since(begun));
    EXPECT_LE(score_.crashed * kOneCrashIn, score_.right + kOneCrashIn)
        << where_ << " crashes too often for the reason that is known";
    EXPECT_GT(score_.right, 0u) << where_;
  }

 private:
  // Returns false if the process did not finish.
  bool batch(uint32_t first, uint32_t count) {
    static const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const ProcessResult result =
        run_process({"timeout", "-s", "KILL", kSecondsForAText, "env",
                     "PRISM_BACKENDS=" + device_.backend(), self, "--batch", device_.id(),
                     std::to_string(first), std::to_string(count), std::to_string(random_seed())});
    const size_t at = result.output.rfind("score ");
    if (result.status == 0 && at != std::string::npos) {
      Score score;
      std::istringstream(result.output.substr(at + 6)) >> score.right >> score.wrong >>
          score.not_supported;
      score_ += score;
      if (score.wrong) ADD_FAILURE() << result.output.substr(0, at);
      return true;
    }
    if (result.status == 1) {  // it reported the error itself
      score_.wrong += count;
      ADD_FAILURE() << where_ << ": " << result.output;
      return true;
    }
    const bool halves_end =
        count > 1 && batch(first, count / 2) & batch(first + count / 2, count - count / 2);
    if (count == 1 || halves_end) crash(first, count, result);
    return false;
  }

  void crash(uint32_t first, uint32_t count, const ProcessResult& result) {
    ++score_.crashed;
    const char* known = known_crash(result.output);
    const std::string which = count == 1 ? fmt::format("program {}", first)
                                         : fmt::format("programs {} to {} together, not in halves,",
                                                       first, first + count - 1);
    fmt::print(
        "random programs: {}: {} of PRISM_RANDOM_SEED={} ended the process with status {}: {}\n",
        where_, which, random_seed(), result.status, known ? known : "no crash is known");
    std::fflush(stdout);
    if (known) return;
    ++score_.wrong;
    ADD_FAILURE() << where_ << ": the process ended with status " << result.status << " in "
                  << which << "\n"
                  << result.output << "\n"
                  << ir::to_text(random_program(random_seed(), first).kernel);
  }

  Device device_;
  std::string where_;
  Score score_;
};

TEST(RandomKernels, EveryDeviceGivesTheSame) {
  // PoCL 3.1 marks the loop over a group's lanes as free of dependences, and LLVM 14 then mixes up
  // values that live across barriers (one program in forty). This setting produces plain loops.
  setenv("POCL_WORK_GROUP_METHOD", "workitemloops", 0);
  // Compile each kernel once, without a second version for its group size.
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
  // No program runs twice, so caching is pointless.
  const TemporaryFolder caches;
  for (const char* variable : {"PRISM_CACHE_DIR", "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR"})
    setenv(variable, caches.path().c_str(), 1);
  std::vector<std::thread> threads;
  for (const BackendReport& backend : discover_backends()) {
    if (backend.name == "null") continue;
    if (backend.devices.empty()) {
      fmt::print("random programs: {}: no device ({})\n", backend.name, backend.reason);
      continue;
    }
    for (const auto& driver : backend.devices)
      threads.emplace_back([&driver = driver] { DeviceRun(Device(driver, "")).run(); });
  }
  const bool none = threads.empty();
  for (std::thread& thread : threads) thread.join();
  if (none) GTEST_SKIP() << "no device was found, not even the CPU";
}

}  // namespace

int batch_main(std::span<char*> words) {
  try {
    run_batch(words[2], static_cast<uint32_t>(std::stoul(words[3])),
              static_cast<uint32_t>(std::stoul(words[4])), std::stoull(words[5]));
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace prism::test

int main(int count, char** words) {
  if (count == 6 && std::string(words[1]) == "--batch")
    return prism::test::batch_main(std::span(words, static_cast<size_t>(count)));
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
