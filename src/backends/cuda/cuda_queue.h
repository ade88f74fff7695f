// An in-order stream of launches and copies, its events, and CUDA graphs as recordings.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_staging.h"
#include "base/handle.h"
#include "runtime/driver.h"

namespace prism::cuda {

class CudaMemory final : public MemoryDriver {
 public:
  CudaMemory(std::shared_ptr<DeviceContext> context, DevicePointer pointer, uint64_t bytes)
      : context_(std::move(context)), pointer_(pointer), bytes_(bytes) {}
  ~CudaMemory() override;
  uint64_t bytes() const override { return bytes_; }
  DevicePointer pointer() const { return pointer_; }

 private:
  std::shared_ptr<DeviceContext> context_;
  DevicePointer pointer_;
  uint64_t bytes_;
};

class CudaProgram final : public ProgramDriver {
 public:
  // waits: the kernel says itself from where on it needs what the launch before wrote.
  CudaProgram(Handle<Module> module, Function function, uint32_t dynamic_shared_bytes, bool waits,
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

// What a queue knows of its own past, shared with its events so that a failure can be told by
// either.
struct QueueHistory {
  std::shared_ptr<DeviceContext> context;
  std::string last_work;  // "kernel add", "a recording of 12 launches, the last of kernel add"
  std::optional<Error> failure;  // the first one, until a wait throws it

  // The error of a synchronisation that gave this result.
  Error late_failure(Result result) const;
};

class CudaQueue final : public QueueDriver {
 public:
  // overlap: launches inside a recording may start before the one before has ended (programmatic
  // dependent launch).
  CudaQueue(std::shared_ptr<DeviceContext> context, std::shared_ptr<Cublas> products, bool overlap);
  ~CudaQueue() override;

  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override;
  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override;
  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override;
  void launch(const LaunchCall& call) override;
  void product(const ProductCall& call) override;
  std::unique_ptr<EventDriver> record_event() override;
  void wait() override;
  void begin_recording() override;
  std::unique_ptr<RecordingDriver> end_recording() override;
  void replay(RecordingDriver& recording) override;

 private:
  void refuse_while_recording(const char* what) const;
  void keep(Result result, const std::string& what);
  void throw_kept();

  std::shared_ptr<DeviceContext> context_;
  std::shared_ptr<Cublas> products_;
  // Of products run at once, and of those of the recording under way, which takes its own along.
  std::shared_ptr<CudaMemory> workspace_, recorded_workspace_;
  bool overlap_;
  Handle<Stream> stream_;
  Staging staging_;
  std::shared_ptr<QueueHistory> history_;
  bool recording_ = false;
  bool after_kernel_ = false;  // in a recording: the last thing recorded was a launch
  uint64_t recorded_launches_ = 0;
  std::vector<DevicePointer> pointers_;
  std::vector<void*> arguments_;
};

}  // namespace prism::cuda
