// Compares random programs on a runner with the interpreter, counts the results, and reports
// differences reproducibly.
//
// PRISM_RANDOM_SEED repeats a run, PRISM_RANDOM_COUNT sets the number of programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "support/kernels/interpreted.h"
#include "support/kernels/random_kernel.h"

namespace prism::test {

uint64_t number_from(const char* variable, uint64_t otherwise);  // from the environment

// The same in every run by default, so that a failure is caused by a change; PRISM_RANDOM_SEED=new
// draws another seed, which finds driver bugs. Printed at first use.
uint64_t random_seed();
uint32_t random_program_count();

// Runs a kernel; its results must equal the interpreter's.
using Runner = std::function<Contents(const ir::Kernel&, const Launch&)>;

// Why runner's results are wrong for a kernel; empty if they are correct. Throws kNotSupported.
std::string complaint(const ir::Kernel& kernel, const Launch& launch, uint32_t subgroup_size,
                      const Runner& runner);

// The complaint, the kernel reduced while runner still fails on it, and the generated kernel.
std::string report(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
                   const std::string& what, const Runner& runner);

constexpr uint32_t kMostReports = 3;  // per runner: further failures likely have the same cause

struct Score {
  uint32_t right = 0, wrong = 0, not_supported = 0;
  uint32_t crashed = 0;  // programs that crash the driver's compiler
  void operator+=(const Score& other);
};

// Compares one program on `alone`, or on `first` if given with `alone` for the report, and counts
// it. Returns the report if it is wrong, else empty.
std::string compare(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
                    const Runner& alone, Score& score, const Runner& first = nullptr);

void print_score(const std::string& where, const Score& score, double seconds);

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start);

}  // namespace prism::test
