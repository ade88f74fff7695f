// One adapter of a WebGPU library and its device: memory, programs, errors.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/webgpu/webgpu_api.h"
#include "runtime/counted_device.h"
#include "runtime/discovery/shares_card.h"
#include "runtime/kept_failure.h"

namespace prism::webgpu {

struct Memory final : CountedMemory {
  using CountedMemory::CountedMemory;
  Handle<Buffer> buffer;
};

struct Program final : ProgramDriver {
  Handle<BindGroupLayout> layout;
  Handle<ComputePipeline> pipeline;
};

class DeviceOfWebGpu final : public CountedDevice, public SharesCard {
 public:
  DeviceOfWebGpu(std::shared_ptr<const Api> api, Adapter adapter, const std::string& id);
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;
  void same_card(const std::shared_ptr<DeviceDriver>& other) override { use_figures_of(other); }

  const Api& api() const { return *api_; }
  Device device();  // opened at first use: listing must not start devices
  Queue queue() { return device() ? queue_.get() : nullptr; }
  bool has_timestamps() const { return timestamps_; }
  Handle<Buffer> make_buffer(uint64_t bytes, uint64_t usage);
  void read_mapped(Buffer mappable, std::span<std::byte> to);
  void wait_for(const Answer& answer) const;
  // Throws the first error that the library has reported.
  void check() const { failure_.tell(label()); }
  bool failed() const { return failure_.any(); }

 protected:
  std::unique_ptr<MemoryDriver> take(uint64_t bytes, std::string* why) override;

 private:
  bool take_feature(std::array<uint32_t, 2> which);
  // Makes a call that answers through a callback, and waits for the answer. Throws unless it
  // succeeds. doing: "opening the device".
  void* ask(Asked what, const char* doing, const std::function<void(CallbackInfo)>& call) const;
  // Runs the work and returns the errors that the library reported for it.
  std::string errors_of(const std::function<void()>& work) const;

  std::shared_ptr<const Api> api_;
  Handle<Adapter> adapter_;
  Limits limits_;
  std::vector<uint32_t> features_;  // numbers of the features to request
  bool timestamps_ = false;
  KeptFailure& failure_;
  Handle<Device> device_;
  Handle<Queue> queue_;
};

}  // namespace prism::webgpu
