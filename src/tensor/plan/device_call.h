// The interface through which an op emits its launches for a device: its inputs and outputs as
// slots of the plan, scratch memory, and launch().
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prism/device.h"
#include "prism/kernel_ir.h"
#include "runtime/native_product.h"
#include "tensor/op.h"

namespace prism {

// One launch of a plan. Slots are bound to buffers when the plan allocates memory.
struct PlannedLaunch {
  Program program;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> slots;    // in the order of the kernel's buffers
  std::vector<uint64_t> offsets;  // bytes into each slot, multiples of kRangeAlignment
  std::vector<ParamValue> params;
  std::optional<NativeProduct> product;  // a vendor library's matmul, instead of a program
};

class DeviceCall {
 public:
  DeviceCall(const Device& device, std::vector<DeviceView> inputs, std::vector<DeviceView> outputs,
             std::function<uint32_t(uint64_t)> make_scratch,
             std::function<uint32_t(uint64_t)> make_zeros = {})
      : device_(device),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        make_scratch_(std::move(make_scratch)),
        make_zeros_(std::move(make_zeros)) {}

  const Device& device() const { return device_; }
  const DeviceInfo& info() const { return device_.info(); }
  const DeviceView& input(size_t i) const { return inputs_[i]; }
  const DeviceView& output(size_t i = 0) const { return outputs_[i]; }
  size_t input_count() const { return inputs_.size(); }

  // Scratch memory, private to this op.
  DeviceView scratch(const Shape& shape, ElementType type);
  // Scratch memory that is zero before the plan's first run; launches must leave it zero. Returns
  // nullopt if the op runs as part of another op's launches.
  std::optional<DeviceView> zeros(const Shape& shape, ElementType type);

  // key names the kernel and everything it is specialised for; make is called only for a key that
  // is new to the process. A grid without groups launches nothing. A view's offset is bound if it
  // is a multiple of kRangeAlignment; otherwise the kernel must take it as a parameter.
  void launch(const std::string& key, const std::function<ir::Kernel()>& make,
              std::array<uint32_t, 3> groups, std::initializer_list<DeviceView> buffers,
              std::vector<ParamValue> params = {});
  void launch(const std::string& key, const std::function<ir::Kernel()>& make,
              std::array<uint32_t, 3> groups, std::span<const DeviceView> buffers,
              std::vector<ParamValue> params = {});

  // A dense product by the vendor's library. Requires device().supports(product).
  void product(const NativeProduct& product, const DeviceView& a, const DeviceView& b,
               const DeviceView& c);

  std::vector<PlannedLaunch>& launches() { return launches_; }

 private:
  Device device_;
  std::vector<DeviceView> inputs_, outputs_;
  std::function<uint32_t(uint64_t)> make_scratch_, make_zeros_;
  std::vector<PlannedLaunch> launches_;
};

// Returns the kernel for a key; calls make once per process.
const ir::Kernel& cached_kernel(const std::string& key, const std::function<ir::Kernel()>& make);

// The number of groups that cover `elements`, each group handling per_group of them.
constexpr uint32_t groups_for(int64_t elements, uint32_t per_group) {
  return static_cast<uint32_t>((elements + per_group - 1) / per_group);
}

}  // namespace prism
