// An in-order stream of launches and copies, its events, and recordings as graphs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_context.h"
#include "backends/gpu_runtime/gpu_staging.h"
#include "base/handle.h"
#include "runtime/driver.h"

namespace prism::gpu {

class GpuMemory final : public MemoryDriver {
 public:
  // owned: it is freed with this object.
  GpuMemory(std::shared_ptr<DeviceContext> context, DevicePointer pointer, uint64_t bytes,
            bool owned = true)
      : context_(std::move(context)), pointer_(pointer), bytes_(bytes), owned_(owned) {}
  ~GpuMemory() override;
  uint64_t bytes() const override { return bytes_; }
  DevicePointer pointer() const { return pointer_; }

 private:
  std::shared_ptr<DeviceContext> context_;
  DevicePointer pointer_;
  uint64_t bytes_;
  bool owned_;
};

class GpuProgram final : public ProgramDriver {
 public:
  // waits: the kernel itself waits before it reads the output of the previous launch.
  GpuProgram(Handle<Module> module, Function function, uint32_t dynamic_shared_bytes, bool waits,
             std::string name)
      : module_(std::move(module)),
        function_(function),
        dynamic_shared_bytes_(dynamic_shared_bytes),
        waits_(waits),
        name_(std::move(name)) {}
  Function function() const { return function_; }
  uint32_t dynamic_shared_bytes() const { return dynamic_shared_bytes_; }
  bool waits() const { return waits_; }
  const std::string& name() const { return name_; }

 private:
  Handle<Module> module_;
  Function function_;
  uint32_t dynamic_shared_bytes_;
  bool waits_;
  std::string name_;
};

// The history of a queue, shared with its events so that either can report a failure.
struct QueueHistory {
  std::shared_ptr<DeviceContext> context;
  std::string last_work;  // "kernel add", "a recording of 12 launches, the last of kernel add"
  std::optional<Error> failure;  // the first one, until wait() throws it

  // The error for a failed synchronisation.
  Error late_failure(Result result) const;
};

class GpuQueue : public QueueDriver {
 public:
  explicit GpuQueue(std::shared_ptr<DeviceContext> context);
  ~GpuQueue() override;

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override;
  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override;
  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override;
  void launch(const LaunchCall& call) override;
  std::unique_ptr<EventDriver> record_event() override;
  void wait() override;
  void begin_recording() override;
  std::unique_ptr<CommandGraphDriver> end_recording() override;
  void replay(CommandGraphDriver& recording) override;

 protected:
  // Submits one launch to the driver. after_launch: it is recorded directly after another launch.
  virtual Result submit(const GpuProgram& program, const LaunchCall& call, void** arguments,
                        bool after_launch);
  // Resources besides its bindings that a recording keeps alive.
  virtual std::shared_ptr<void> take_recorded() { return nullptr; }

  // For backend-specific work between launches.
  DeviceContext& context() const { return *context_; }
  const std::shared_ptr<DeviceContext>& shared_context() const { return context_; }
  Stream stream() const { return stream_.get(); }
  bool recording() const { return recording_; }
  void done(const std::string& work, std::optional<Error> failure);

 private:
  void refuse_while_recording(const char* what) const;
  void keep(Result result, const std::string& what);
  void throw_kept();

  std::shared_ptr<DeviceContext> context_;
  Handle<Stream> stream_;
  Staging staging_;
  std::shared_ptr<QueueHistory> history_;
  bool recording_ = false;
  bool after_kernel_ = false;  // in a recording: the last recorded step was a launch
  uint64_t recorded_launches_ = 0;
  std::vector<DevicePointer> pointers_;
  std::vector<void*> arguments_;
};

// The device address of a byte in a buffer.
DevicePointer address(MemoryDriver& memory, uint64_t offset);

}  // namespace prism::gpu
