// Runs, shrinks and reports random programs.
#include "support/kernels/random_comparison.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "prism/error.h"
#include "support/kernels/shrink.h"
#include "support/seed.h"

namespace prism::test {

namespace {

constexpr uint64_t kUsualSeed = 966499259;

}  // namespace

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

uint64_t random_seed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("PRISM_RANDOM_SEED");
    const uint64_t chosen = text && std::string_view(text) == "new"
                                ? test_seed()
                                : number_from("PRISM_RANDOM_SEED", kUsualSeed);
    fmt::print("random programs: PRISM_RANDOM_SEED={}\n", chosen);
    std::fflush(stdout);
    return chosen;
  }();
  return value;
}

uint32_t random_program_count() {
  return static_cast<uint32_t>(number_from("PRISM_RANDOM_COUNT", 2000));
}

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

std::string report(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
                   const std::string& what, const Runner& runner) {
  const ir::Kernel small = shrink(program.kernel, [&](const ir::Kernel& candidate) {
    return !complaint(candidate, program.launch, subgroup_size, runner).empty();
  });
  return fmt::format(
      "{} is wrong about program {} of PRISM_RANDOM_SEED={} ({} x {} groups, subgroups of {}): {}\n"
      "smaller: {}\n{}as generated:\n{}",
      where, program.index, program.seed, program.launch.groups[0], program.launch.groups[1],
      subgroup_size, what, complaint(small, program.launch, subgroup_size, runner),
      ir::to_text(small), ir::to_text(program.kernel));
}

void Score::operator+=(const Score& other) {
  right += other.right;
  wrong += other.wrong;
  not_supported += other.not_supported;
  crashed += other.crashed;
}

std::string compare(const RandomProgram& program, const std::string& where, uint32_t subgroup_size,
                    const Runner& alone, Score& score, const Runner& first) {
  try {
    const std::string what =
        complaint(program.kernel, program.launch, subgroup_size, first ? first : alone);
    ++(what.empty() ? score.right : score.wrong);
    return what.empty() ? "" : report(program, where, subgroup_size, what, alone);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotSupported) {
      ++score.not_supported;
      return "";
    }
    ++score.wrong;
    return fmt::format("program {} of PRISM_RANDOM_SEED={}: {}\n{}", program.index, program.seed,
                       error.what(), ir::to_text(program.kernel));
  }
}

void print_score(const std::string& where, const Score& score, double seconds) {
  const std::string crashed =
      score.crashed ? fmt::format(", {} crash its compiler", score.crashed) : "";
  fmt::print("random programs: {}: {} compared, {} differ, {} not supported{}, {:.0f} s\n", where,
             score.right + score.wrong, score.wrong, score.not_supported, crashed, seconds);
  std::fflush(stdout);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace prism::test
