// `prism check --ops`: runs the conformance suite of the ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::cli {

struct CheckOpsOptions {
  std::string device = "all";
  std::string op;  // empty: all
  std::optional<uint64_t> seed;
  std::optional<size_t> cases;  // 0: all
  bool json = false;
};

int check_ops(const CheckOpsOptions& options);  // the exit status

}  // namespace prism::cli
