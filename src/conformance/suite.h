// A run of the conformance suite on one device: the choice of cases, and the results of each op.
//
// A device that compiles slowly runs a sample that rotates with the seed: every op in f32 first,
// then gradients, f32 and other types in turn, until a limit is reached.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace prism {

struct SuiteProgress {
  const std::string& op;
  size_t done = 0, of = 0;
};

struct SuiteOptions {
  uint64_t seed = 1;
  std::string op;  // empty: all
  // Cases to run; 0: every case once. If the program limit allows fewer, cases are repeated with
  // other inputs. Unset: 0 on the CPU, which compiles nothing, and 3,000 elsewhere.
  std::optional<size_t> cases;
  // The limit of compiled programs for a sample; a run of every case has none.
  size_t programs = 300;
  std::function<void(const SuiteProgress&)> progress;
};

// One op on one device.
struct OpOutcome {
  std::string op, family;
  size_t ran = 0, right = 0, fell_back = 0;
  size_t gradients = 0;  // of those that ran
  double worst_nmse = 0;
  std::map<std::string, size_t> fallbacks;  // number of cases by reason
  std::vector<std::string> types;           // of the inputs that ran
};

struct SuiteResult {
  std::string device;  // "vulkan:0"
  uint64_t seed = 0;
  size_t available = 0;            // cases of one draw, including gradients
  size_t different = 0;            // of these, the number that ran
  size_t programs = 0;             // compiled for the device during the run
  double seconds = 0;              // wall-clock time
  std::vector<OpOutcome> ops;      // in the order of op_families()
  std::vector<CaseResult> wrong;   // all failures, including exceptions
  std::vector<std::string> drawn;  // "softmax f16 [3, 17] axis 1", in the order they ran

  size_t ran() const;
  size_t right() const;
  size_t fell_back() const;
};

// Throws kNotFound for an op that is not in the suite; the error lists the names.
SuiteResult run_suite(const Device& device, const SuiteOptions& options);

// Every op of the suite with its family, in the order of op_families().
struct SuiteOp {
  std::string op, family;
};
const std::vector<SuiteOp>& suite_ops();

}  // namespace prism
