// Choices between kernels that do the same: what was measured best on this machine, kept in the
// cache folder for each device and driver. Nothing is measured unless the user asks for it
// (`prism calibrate --tune`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// key: what is computed, and the class of its shapes, without spaces:
// "matmul_f32_q4_0_4096x4096_1".
std::optional<std::string> tuned_choice(const DeviceInfo& device, const std::string& key);
void keep_tuned_choice(const DeviceInfo& device, const std::string& key, const std::string& choice);

// While one lives, every tuned_choice() of this thread is this one, so that it can be measured.
class TrialChoice {
 public:
  explicit TrialChoice(std::string choice);
  ~TrialChoice();
  TrialChoice(const TrialChoice&) = delete;
  const std::string& choice() const { return choice_; }
  const std::vector<std::string>& keys() const { return keys_; }  // what was asked for meanwhile

 private:
  friend std::optional<std::string> tuned_choice(const DeviceInfo& device, const std::string& key);
  std::string choice_;
  std::vector<std::string> keys_;
  TrialChoice* before_;
};

}  // namespace prism
