// What a backend implements: plain interfaces over one driver, below the handles of device.h.
//
// Backends throw prism::Error. None of these calls is thread-safe by itself unless said; the
// handles lock. They also check: what reaches a driver lies inside its buffers, is not empty, and
// while recording is a launch, a product or a copy. A device outlives all that it makes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "prism/device_info.h"
#include "prism/error.h"
#include "prism/kernel_ir.h"
#include "runtime/native_product.h"

namespace prism {

class MemoryDriver {  // one allocation
 public:
  virtual ~MemoryDriver() = default;
  virtual uint64_t bytes() const = 0;
};

class ProgramDriver {  // one compiled kernel, ready to launch
 public:
  virtual ~ProgramDriver() = default;
};

class EventDriver {  // a point of a queue
 public:
  virtual ~EventDriver() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
  virtual double ms_since(
      EventDriver& earlier) = 0;  // device time between two points, both reached
};

class CommandGraphDriver {  // launches and copies recorded once, replayed many times
 public:
  virtual ~CommandGraphDriver() = default;
};

struct Binding {
  MemoryDriver* memory = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct LaunchCall {
  ProgramDriver* program = nullptr;
  const ir::Kernel* kernel = nullptr;          // the lowered kernel the program was compiled from
  std::array<uint32_t, 3> groups = {1, 1, 1};  // within the device's limits
  std::span<const Binding> bindings;           // pieces of split buffers already apart
  std::span<const uint32_t> params;            // lowering's own included
};

struct ProductCall {
  NativeProduct product;  // checked, not empty, and supported by the device
  Binding a, b, c;
};

// An in-order queue. Launches and device copies are asynchronous; failures are kept and thrown by
// wait().
class QueueDriver {
 public:
  virtual ~QueueDriver() = default;
  virtual void write(MemoryDriver& to, uint64_t offset,
                     std::span<const std::byte> from) = 0;  // data may be reused after the call
  virtual void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) = 0;  // waits
  virtual void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
                    uint64_t bytes) = 0;
  virtual void launch(const LaunchCall& call) = 0;
  // Asynchronous like a launch, and recorded like one. Its workspace is the queue's own, or the
  // recording's.
  virtual void product(const ProductCall& call) {
    throw Error(ErrorCode::kNotSupported,
                "product of " + describe(call.product) + ": this backend has none of its own");
  }
  virtual std::unique_ptr<EventDriver> record_event() = 0;
  virtual void wait() = 0;
  // Between begin and end, launches and copies are recorded, not run. Memory must outlive the
  // recording.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<CommandGraphDriver> end_recording() = 0;
  virtual void replay(CommandGraphDriver& recording) = 0;
};

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual uint64_t free_bytes() = 0;
  virtual std::unique_ptr<MemoryDriver> allocate(
      uint64_t bytes) = 0;  // kOutOfMemory: device, asked, free
  virtual std::unique_ptr<ProgramDriver> compile(
      const ir::Kernel& lowered) = 0;  // uses the disk cache; kCompile with log
  // Several kernels of different names, in order. A driver whose compiler starts slowly hands them
  // over as one text.
  virtual std::vector<std::unique_ptr<ProgramDriver>> compile_together(
      std::span<const ir::Kernel> lowered) {
    std::vector<std::unique_ptr<ProgramDriver>> programs;
    for (const ir::Kernel& kernel : lowered) programs.push_back(compile(kernel));
    return programs;
  }
  virtual std::unique_ptr<QueueDriver> make_queue() = 0;
  // Host address of memory that the host can use directly (unified), or null.
  virtual std::byte* host_pointer(MemoryDriver&) { return nullptr; }
  // Memory over the host's own, which the device reads where it lies: nothing is copied, and
  // neither side changes it while the device has it. Null where that cannot be; never throws.
  virtual std::unique_ptr<MemoryDriver> wrap(std::span<std::byte> host) {
    (void)host;
    return nullptr;
  }
  // Whether queues of the device have this (checked) product from their vendor; *why says why not.
  virtual bool supports(const NativeProduct& product, std::string* why) {
    (void)product;
    *why = "this backend has no products of its own";
    return false;
  }
  // What provides products and in which version, or why nothing does; empty where the backend never
  // has any.
  virtual std::string native_products() { return ""; }
};

// What looking for a backend's devices gave.
struct Discovery {
  std::vector<std::shared_ptr<DeviceDriver>> devices;
  std::string
      reason;  // why there are no devices, or why some were passed over; empty when all is well
  std::string next_step;  // what the user can do about it
  std::string found;      // library and version, e.g. "libvulkan.so.1 1.3.239"
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;   // "cuda"
  virtual std::string label() const = 0;  // "CUDA"
  virtual Discovery discover() = 0;       // never throws for what is merely absent
  // Fetches what the backend needs and its driver does not bring. progress takes one line at a
  // time; returns a sentence on what is there now. Does nothing the second time.
  virtual std::string set_up(const std::function<void(const std::string&)>& progress) {
    (void)progress;
    throw Error(ErrorCode::kNotSupported,
                name() + " has nothing to set up: its driver brings all it needs");
  }
};

}  // namespace prism
