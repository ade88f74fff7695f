// One adapter of a WebGPU library and the device made of it: its memory, programs, errors.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/webgpu/webgpu_api.h"
#include "base/error.h"
#include "runtime/driver.h"
#include "runtime/shares_card.h"

namespace prism::webgpu {

// What the library says of an adapter, and the numbers of the features to ask for.
struct Facts {
  DeviceInfo info;
  Limits limits;
  std::vector<uint32_t> features;
  bool timestamps = false;
};
Facts describe(const Api& api, Adapter adapter, const std::string& id);

struct Pipeline {
  Handle<BindGroupLayout> layout;
  Handle<ComputePipeline> pipeline;
};

// What everything made on a device shares, and so what lives until the last of it is gone.
struct Context {
  Context(std::shared_ptr<const Api> api, std::shared_ptr<Handle<Instance>> instance,
          Adapter adapter, const Facts& facts);
  std::string label() const { return facts.info.id + " (" + facts.info.name + ")"; }
  Handle<Buffer> make_buffer(uint64_t bytes, uint64_t usage) const;
  // bindings: of group 0 in order; a uniform one takes its offset at the launch.
  Pipeline make_pipeline(const std::string& wgsl, const std::string& name, const std::string& entry,
                         std::span<const BindingType> bindings) const;
  // Runs the work and returns what the library had against it.
  std::string errors_of(const std::function<void()>& work);
  void wait_for(const Answer& answer) const;
  // Throws what the library said since the last call outside of errors_of, kDeviceLost for ever.
  void check();
  bool failed() const;  // whether check() would throw

  std::shared_ptr<const Api> api;
  Facts facts;
  std::shared_ptr<Handle<Instance>> instance;
  Handle<Device> device;
  Handle<Queue> queue;
  uint64_t allocated_bytes = 0;

 private:
  static void on_error(const Device*, uint32_t type, StringView message, void* context, void*);
  static void on_lost(const Device*, uint32_t reason, StringView message, void* context, void*);
  // Shared with the library's callbacks, which may come after the last handle is gone.
  struct Said {
    std::mutex lock;
    std::string error, lost;
    ErrorCode code = ErrorCode::kDriver;
  };
  Said& said_;
};

class Memory final : public MemoryDriver {
 public:
  Memory(std::shared_ptr<Context> context, Handle<Buffer> buffer, uint64_t bytes)
      : context_(std::move(context)), buffer_(std::move(buffer)), bytes_(bytes) {
    context_->allocated_bytes += bytes;
  }
  ~Memory() override { context_->allocated_bytes -= bytes_; }
  uint64_t bytes() const override { return bytes_; }
  Buffer buffer() const { return buffer_.get(); }

 private:
  std::shared_ptr<Context> context_;
  Handle<Buffer> buffer_;
  uint64_t bytes_;
};

// One kernel. WebGPU knows the use of a buffer only as a whole: where a launch writes one range of
// it, its other ranges must be bound as writable too, which is another text.
class Program final : public ProgramDriver {
 public:
  Program(std::shared_ptr<Context> context, const ir::Kernel& lowered);
  uint32_t written() const { return written_; }  // bit i: the kernel writes binding i
  const Pipeline& pipeline(uint32_t writable);

 private:
  std::shared_ptr<Context> context_;
  ir::Kernel kernel_;
  std::vector<uint32_t> buffers_;
  uint32_t written_ = 0;
  std::list<std::pair<uint32_t, Pipeline>> pipelines_;  // by what is writable
};

class DeviceOfWebGpu final : public DeviceDriver, public SharesCard {
 public:
  DeviceOfWebGpu(std::shared_ptr<const Api> api, std::shared_ptr<Handle<Instance>> instance,
                 Handle<Adapter> adapter, Facts facts);
  const DeviceInfo& info() const override { return facts_.info; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;
  void same_card(const std::shared_ptr<DeviceDriver>& other) override;
  const std::shared_ptr<Context>& context();  // made at first use: listing must not start devices

 private:
  std::shared_ptr<const Api> api_;
  std::shared_ptr<Handle<Instance>> instance_;
  Handle<Adapter> adapter_;
  Facts facts_;
  std::shared_ptr<Context> context_;
  std::shared_ptr<DeviceDriver> same_card_;
};

std::unique_ptr<QueueDriver> make_queue(std::shared_ptr<Context> context);

}  // namespace prism::webgpu
