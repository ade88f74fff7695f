// Tuned choices between equivalent kernels: the fastest one measured on this machine, kept in the
// cache folder for each device and driver. Only `prism calibrate --tune` measures them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// key: the computation and the class of its shapes, without spaces: "matmul_f32_q4_0_4096x4096_1".
std::optional<std::string> tuned_choice(const DeviceInfo& device, const std::string& key);
void keep_tuned_choice(const DeviceInfo& device, const std::string& key, const std::string& choice);

// While it lives, every tuned_choice() on this thread returns this choice, so that it can be
// measured.
class TrialChoice {
 public:
  explicit TrialChoice(std::string choice);
  ~TrialChoice();
  TrialChoice(const TrialChoice&) = delete;
  const std::string& choice() const { return choice_; }
  const std::vector<std::string>& keys() const { return keys_; }  // keys requested meanwhile

 private:
  friend std::optional<std::string> tuned_choice(const DeviceInfo& device, const std::string& key);
  std::string choice_;
  std::vector<std::string> keys_;
  TrialChoice* before_;
};

}  // namespace prism
