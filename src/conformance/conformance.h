// The conformance suite: compares every op on every device with a float64 reference.
//
// Each family of ops has its cases in <family>_cases.cpp and one line in cases.h. The tests and
// `prism check --ops` run them.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "prism/tensor.h"

namespace prism {

using Values = std::vector<double>;

// The allowed error: the normalised mean square error over all elements, and a bound for each one,
// |got - wanted| <= absolute + relative * |wanted|. NaN and infinities must be equal.
struct Tolerance {
  double nmse = 1e-10;
  double relative = 1e-5;
  double absolute = 1e-6;
  static Tolerance exact() { return {0, 0, 0}; }
  // For elementwise ops, by the precision of the result's type. f16 and bf16 round once more.
  static Tolerance elementwise(ElementType type);
  // For sums of products: errors grow with `scale`, the size of the terms.
  static Tolerance reduction(ElementType type, double scale = 1);
};

struct CaseInput {
  Shape shape;
  ElementType type = DType::f32;
  Values values;  // before rounding to the type or quantising
  // The view that the op gets; null: the whole tensor.
  std::function<Tensor(const Tensor&)> view = nullptr;
  bool differentiable = true;  // false: indices, masks
};

// An input for the reference: after rounding and after the view, in row-major order.
struct ReferenceInput {
  Shape shape;
  Values values;
};

struct OpCase {
  std::string op;    // "softmax"
  std::string what;  // "f16 [3, 17] axis 1, transposed"
  std::vector<CaseInput> inputs;
  std::function<std::vector<Tensor>(std::span<const Tensor>)> compute;
  std::function<std::vector<Values>(std::span<const ReferenceInput>)> reference;
  Tolerance tolerance;
  // Check gradients too: f64 on the CPU against finite differences, then the device against these.
  bool gradient = false;
  std::string family = {};  // set by all_cases()
};

// The random numbers of one run. The runner of the suite prints the seed.
class CaseRandom {
 public:
  explicit CaseRandom(uint64_t seed) : engine_(seed) {}
  Values uniform(int64_t count, double low = -2, double high = 2);
  Values normal(int64_t count, double scale = 1);
  Values integers(int64_t count, int64_t low, int64_t high);  // both ends included
  int64_t between(int64_t low, int64_t high);
  // Two of three inputs are dense; others are transposed, strided slices or offset by one row.
  CaseInput input(const Shape& shape, ElementType type, double low = -2, double high = 2);

 private:
  std::mt19937_64 engine_;
};

struct OpFamily {
  const char* name;
  void (*add_cases)(std::vector<OpCase>& cases, CaseRandom& random);
};
const std::vector<OpFamily>& op_families();  // op_list.cpp

struct CaseResult {
  std::string op, what, device;
  bool ran = false;  // false: reason says why not
  bool right = false;
  std::string reason;      // for a failure, or for a case that did not run
  bool fell_back = false;  // part of it ran on the CPU; reason says why
  double nmse = 0;
};
// Runs one case on one device. An exception from the op becomes a failure of the case.
CaseResult run_case(const OpCase& test, const Device& device);

std::vector<OpCase> all_cases(uint64_t seed, const std::string& op = "");

}  // namespace prism
