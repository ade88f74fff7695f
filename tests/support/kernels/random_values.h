// Random expressions of the kernel language with bit-exact results on every device.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "prism/kernel.h"

namespace prism::test {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  uint32_t word() { return static_cast<uint32_t>(engine_() >> 16); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<uint32_t>(choices.size())));
  }

 private:
  std::mt19937_64 engine_;
};

// The values in scope, by type, and new ones built from them. Floats stay between 2^-20 and 2^20
// (or are zero), because devices may differ on subnormal numbers, infinities and NaN.
class RandomValues {
 public:
  RandomValues(Random& random, bool wide, bool half) : random_(random), wide_(wide), half_(half) {}

  void keep(dsl::Value value) {
    pool_[key(value.type())].push_back(value);
    log_.push_back(key(value.type()));
  }
  // Group-uniform u32 values.
  void keep_uniform(dsl::Value value) { uniform_.push_back(value); }

  dsl::Value any(ir::Type type);  // one in scope, or a constant
  dsl::Value any(DType type) { return any(ir::Type{type, 1}); }
  dsl::Value uniform();     // u32
  dsl::Value wild_float();  // any f32, NaN included: only for comparison, conversion or inspection
  void grow();              // computes another value
  ir::Type any_type();
  dsl::Value word_of(dsl::Value value);  // u32 that depends on every bit
  static dsl::Value tame(dsl::Value value, dsl::Value otherwise);
  // f32 with -0 replaced by 0, for results that would depend on the order of lanes.
  static dsl::Value plain_zero(dsl::Value value);

  struct Mark {
    size_t log, uniform;
  };
  Mark mark() const { return {log_.size(), uniform_.size()}; }
  void release(Mark mark);
  const std::vector<dsl::Value>& all(ir::Type type) { return pool_[key(type)]; }

 private:
  using Key = std::pair<DType, uint8_t>;
  static Key key(ir::Type type) { return {type.element, type.lanes}; }
  dsl::Value constant_of(ir::Type type);
  dsl::Value scalar_constant(DType type);
  dsl::Value integer(ir::Type type);
  dsl::Value word_operation();
  dsl::Value floating(ir::Type type);
  dsl::Value truth(uint8_t lanes);
  dsl::Value converted(ir::Type type);

  Random& random_;
  bool wide_, half_;
  std::map<Key, std::vector<dsl::Value>> pool_;
  std::vector<Key> log_;
  std::vector<dsl::Value> uniform_;
};

}  // namespace prism::test
