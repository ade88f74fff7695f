// The seeds of random inputs: new in each run, and the same again with PRISM_TEST_SEED.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace prism {

// The seed of this run, printed once.
inline uint32_t run_seed() {
  static const uint32_t value = [] {
    const char* asked = std::getenv("PRISM_TEST_SEED");
    const uint32_t chosen = asked && *asked
                                ? static_cast<uint32_t>(std::strtoull(asked, nullptr, 10))
                                : std::random_device{}();
    std::cout << "PRISM_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return value;
}

// Another seed with each call. A test draws the same ones whether it runs alone or among others.
inline uint32_t test_seed() {
  static std::string drawn_for;
  static std::mt19937 engine(run_seed());
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = info ? std::string(info->test_suite_name()) + "." + info->name() : "";
  if (name != drawn_for) {
    std::vector<uint32_t> numbers = {run_seed()};
    for (const char c : name) numbers.push_back(static_cast<unsigned char>(c));
    std::seed_seq sequence(numbers.begin(), numbers.end());
    engine.seed(sequence);
    drawn_for = name;
  }
  return engine();
}

}  // namespace prism
