// Device description, the current device of a thread, and program creation.
#include "backends/hip/hip_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "backends/hip/hip_cards.h"
#include "print/printer.h"

namespace prism::hip {
namespace {

// HIP has one current device per thread, which other code in the process may have set.
class HipContext final : public gpu::DeviceContext {
 public:
  HipContext(std::shared_ptr<Api> api, int index, std::string device)
      : DeviceContext(std::move(device)), api_(std::move(api)), index_(index) {}

  const gpu::Api& api() const override { return *api_; }
  void enter(int* before) override {
    Result result = api_->device_get(before);
    if (result == kSuccess && *before != index_) result = api_->device_set(index_);
    if (result != kSuccess)
      throw gpu::driver_error(*api_, result, device() + ": making it the current device");
  }
  void leave(int before) override {
    if (before != index_) api_->device_set(before);
  }

 private:
  std::shared_ptr<Api> api_;
  int index_;
};

}  // namespace

DeviceInfo describe_device(const Api& api, int index, const std::string& gfx) {
  DeviceInfo info;
  info.id = fmt::format("hip:{}", index);
  info.backend = "hip";
  char name[256] = {}, address[64] = {};
  if (api.device_name(name, sizeof(name) - 1, index) != kSuccess || !*name)
    std::copy_n("AMD GPU", 8, name);
  info.name = fmt::format("{} {}", name, gfx);
  info.vendor = "AMD";
  info.card = api.device_pci(address, sizeof(address), index) == kSuccess
                  ? gpu::pci_address(address)
                  : info.id;
  info.driver = "HIP " + api.version_text();
  size_t total = 0;
  if (api.device_total(&total, index) == kSuccess) info.total_bytes = total;
  info.unified = api.attribute(kIntegrated, index) != 0;
  info.compute_units = static_cast<uint32_t>(api.attribute(kMultiprocessors, index));

  ir::Capabilities& can = info.capabilities;
  add_abilities(gfx_number(gfx), api.attribute(kWarpSize, index) == 64 ? 64 : 32, &can);
  can.max_group_size = static_cast<uint32_t>(api.attribute(kMaxThreadsPerBlock, index));
  can.shared_bytes = static_cast<uint32_t>(api.attribute(kSharedPerBlock, index));
  // The grid size counts lanes, at most 2^32 of them.
  const uint32_t lanes_limit = 0xffffffffu / std::max(can.max_group_size, 1u);
  can.max_groups = {std::min(static_cast<uint32_t>(api.attribute(kMaxGridX, index)), lanes_limit),
                    65535, 65535};
  return info;
}

HipDevice::HipDevice(std::shared_ptr<Api> api, int index, DeviceInfo device,
                     std::shared_ptr<Hiprtc> compiler, std::string gfx)
    : GpuDevice(std::move(device)),
      context_(std::make_shared<HipContext>(std::move(api), index,
                                            fmt::format("{} ({})", info().id, info().name))),
      compiler_(std::move(compiler)),
      gfx_(std::move(gfx)) {}

std::unique_ptr<ProgramDriver> HipDevice::compile(const ir::Kernel& lowered) {
  const PrintedKernel printed = print_hip(lowered, info().capabilities);
  const KernelText kernel = kernel_text(info(), lowered, printed.text, "hip");
  std::string options = fmt::format("hiprtc {} {}", compiler_->version_text(), gfx_);
  for (const char* option : Hiprtc::options()) options += std::string(" ") + option;
  const gpu::Current current(*context_);
  Loaded program;
  try {
    program = load(lowered, kernel, printed.entry, options,
                   fmt::format("hiprtc {} for {}", compiler_->version_text(), gfx_),
                   [&] { return compiler_->compile(kernel.text, kernel.file, gfx_); });
  } catch (const Error& error) {
    // A runtime may list a chip and still reject code compiled for it (hipErrorNoBinaryForGpu).
    if (error.code() != ErrorCode::kDriver) throw;
    throw Error(error.code(), fmt::format("{}; {}", error.what(), other_ways(gfx_)));
  }
  return std::make_unique<gpu::GpuProgram>(std::move(program.module), program.function, 0, false,
                                           lowered.name);
}

}  // namespace prism::hip
