// Compares random programs somewhere with the interpreter, counts the results, and reports what
// differs with everything needed to look into it.
//
// PRISM_RANDOM_SEED repeats a run, PRISM_RANDOM_COUNT sets how many programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "support/kernels/interpreted.h"
#include "support/kernels/random_kernel.h"

namespace prism::test {

uint64_t number_from(const char* variable, uint64_t otherwise);  // of the environment

// The same in every run, so that a failure speaks of the change and not of the day;
// PRISM_RANDOM_SEED=new draws another, which is how wrong drivers are found. Printed at first use.
uint64_t random_seed();
uint32_t random_program_count();

// Runs a kernel somewhere; what comes back must be what the interpreter gives.
using Runner = std::function<Contents(const ir::Kernel&, const Launch&)>;

// Why `runner` is wrong about a kernel; empty where it is right. Throws kNotSupported.
std::string complaint(const ir::Kernel& kernel, const Launch& launch, uint32_t subgroup_size,
                      const Runner& runner);

// The complaint, the kernel made smaller while runner stays wrong about it, and as generated.
std::string report(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
                   const std::string& what, const Runner& runner);

constexpr uint32_t kMostReports = 3;  // of one runner: the rest is likely the same mistake

struct Score {
  uint32_t right = 0, wrong = 0, not_supported = 0;
  uint32_t crashed = 0;  // programs that end the process with a driver's compiler in it
  void operator+=(const Score& other);
};

// Compares one program with `alone`, or with `first` where given and `alone` for the report, and
// counts it. The report where it is wrong, else empty.
std::string compare(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
                    const Runner& alone, Score& score, const Runner& first = nullptr);

void print_score(const std::string& where, const Score& score, double seconds);

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start);

}  // namespace prism::test
