// The quick self-check, whose result is stored in the cache folder.
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/cache_folder.h"
#include "runtime/capability_switches.h"
#include "runtime/device_records.h"
#include "runtime/measure/self_check.h"
#include "sample_kernels/sample_library.h"

namespace prism {
namespace {

constexpr const char* kKind = "self-check";
constexpr const char* kQuickKernels[] = {"vector_add_f32", "bits",        "math",
                                         "transpose",      "row_softmax", "matmul_f32"};

// A stored result is valid only for the kernels that were checked.
const std::string& library_hash() {
  static const std::string hash = [] {
    std::string text;
    for (const SampleKernel& entry : sample_kernels()) text += ir::to_text(entry.make());
    return hash_text(text);
  }();
  return hash;
}

// Compiling takes about 0.1 seconds per kernel, so the quick check runs only a few plain kernels
// and, for each capability, the first kernel whose code it changes.
std::vector<std::string> telling_kernels(const ir::Capabilities& capabilities) {
  std::set<std::string> chosen(std::begin(kQuickKernels), std::end(kQuickKernels));
  std::set<std::string> open;
  for (const std::string& name : switchable_capabilities(capabilities)) open.insert(name);
  for (const SampleKernel& entry : sample_kernels()) {
    const ir::Kernel kernel = entry.make();
    std::erase_if(open, [&](const std::string& name) {
      if (!capability_matters(kernel, capabilities, name)) return false;
      chosen.insert(entry.name);
      return true;
    });
  }
  return {chosen.begin(), chosen.end()};
}

struct Known {
  std::vector<std::string> off;  // capabilities to switch off
  std::string wrong;             // why the device is wrong; empty: it is right
};

// The stored result. Absent if it names capabilities that this version does not have.
std::optional<Known> known_result(const Device& device) {
  // The key uses the driver's capabilities, not those that are left after a switch-off.
  const auto record = read_device_record(kKind, device.driver().info(), library_hash());
  if (!record) return std::nullopt;
  Known known;
  if (record->contains("wrong")) known.wrong = record->at("wrong");
  std::istringstream words(record->contains("off") ? record->at("off") : "");
  for (std::string name; words >> name;) {
    if (!is_switchable(name)) return std::nullopt;
    known.off.push_back(name);
  }
  return known;
}

void switch_off(const Device& device, const std::vector<std::string>& names) {
  if (names.empty()) return;
  ir::Capabilities reduced = device.info().capabilities;
  for (const std::string& name : names) switch_off_capability(reduced, name);
  device.use_capabilities(reduced);
}

}  // namespace

void apply_known_self_check(const Device& device) {
  if (const auto known = known_result(device)) switch_off(device, known->off);
}

std::string quick_self_check(const Device& device) {
  const DeviceInfo& info = device.driver().info();
  if (const auto known = known_result(device)) {
    switch_off(device, known->off);
    return known->wrong;
  }
  SelfCheckOptions options;
  options.kernels = telling_kernels(info.capabilities);
  const SelfCheck check = self_check(device, options);
  DeviceRecord record;
  if (!check.switched_off.empty())
    record["off"] = fmt::format("{}", fmt::join(check.switched_off, " "));
  if (!check.right()) record["wrong"] = check.complaint();
  write_device_record(kKind, info, record, library_hash());
  return check.complaint();
}

}  // namespace prism
