// The interfaces that a backend implements over one driver, below the handles of device.h.
//
// Backends throw prism::Error. These calls are not thread-safe unless stated; the handles lock. The
// handles also validate: ranges are inside their buffers and not empty, and a recording contains
// only launches, products and copies. A device outlives everything it creates.
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

class MemoryExchange;  // runtime/memory_exchange.h

class MemoryDriver {  // one allocation
 public:
  virtual ~MemoryDriver() = default;
  virtual uint64_t bytes() const = 0;
};

class ProgramDriver {  // one compiled kernel, ready to launch
 public:
  virtual ~ProgramDriver() = default;
};

class EventDriver {  // a point in a queue
 public:
  virtual ~EventDriver() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
  virtual double ms_since(
      EventDriver& earlier) = 0;  // device time between two events, both reached
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
  std::span<const Binding> bindings;           // split buffers already expanded into pieces
  std::span<const uint32_t> params;            // including those added by lowering
};

struct ProductCall {
  NativeProduct product;  // validated, not empty, and supported by the device
  Binding a, b, c;
};

// An in-order queue. Launches and device copies are asynchronous; wait() throws their failures.
class QueueDriver {
 public:
  virtual ~QueueDriver() = default;
  virtual void write(MemoryDriver& to, uint64_t offset,
                     std::span<const std::byte> from) = 0;  // data may be reused after the call
  virtual void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) = 0;  // waits
  virtual void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
                    uint64_t bytes) = 0;
  virtual void launch(const LaunchCall& call) = 0;
  // Asynchronous and recordable like a launch. The workspace belongs to the queue or the recording.
  virtual void product(const ProductCall& call) {
    throw Error(ErrorCode::kNotSupported,
                "product of " + describe(call.product) + ": this backend has no product library");
  }
  virtual std::unique_ptr<EventDriver> record_event() = 0;
  virtual void wait() = 0;
  // Between begin and end, launches and copies are recorded instead of run. Memory must outlive the
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
      uint64_t bytes) = 0;  // kOutOfMemory names device, request and free bytes
  virtual std::unique_ptr<ProgramDriver> compile(
      const ir::Kernel& lowered) = 0;  // uses the disk cache; kCompile includes the log
  // Compiles several kernels with distinct names, in order. A driver whose compiler starts slowly
  // may pass them as one text.
  virtual std::vector<std::unique_ptr<ProgramDriver>> compile_together(
      std::span<const ir::Kernel> lowered) {
    std::vector<std::unique_ptr<ProgramDriver>> programs;
    for (const ir::Kernel& kernel : lowered) programs.push_back(compile(kernel));
    return programs;
  }
  virtual std::unique_ptr<QueueDriver> make_queue() = 0;
  // Host address of host-accessible (unified) memory, or null.
  virtual std::byte* host_pointer(MemoryDriver&) { return nullptr; }
  // Zero-copy memory over an allocation of another owner: of the host, or of another library on
  // this device. Neither side may change it while the device uses it. Returns null if that is not
  // possible; never throws.
  virtual std::unique_ptr<MemoryDriver> wrap(std::span<std::byte> memory) {
    (void)memory;
    return nullptr;
  }
  // Null if other libraries in the process cannot address this device's memory.
  virtual MemoryExchange* exchange() { return nullptr; }
  // Whether the vendor's library supports this (checked) product; *why receives the reason if not.
  virtual bool supports(const NativeProduct& product, std::string* why) {
    (void)product;
    *why = "this backend has no product library";
    return false;
  }
  // The product library and its version, or why there is none; empty if the backend never has one.
  virtual std::string native_products() { return ""; }
};

// The result of a backend's device discovery.
struct Discovery {
  std::vector<std::shared_ptr<DeviceDriver>> devices;
  std::string reason;     // why there are no devices or some were skipped; empty if none
  std::string next_step;  // what the user can do about it
  std::string found;      // library and version, e.g. "libvulkan.so.1 1.3.239"
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;   // "cuda"
  virtual std::string label() const = 0;  // "CUDA"
  virtual Discovery discover() = 0;       // does not throw if hardware or drivers are absent
  // Whether discover() runs code of a driver, which may crash or hang.
  virtual bool starts_driver() const { return true; }
  // Downloads components that the backend needs and its driver lacks. progress receives one line at
  // a time. Returns a sentence on the result. Idempotent.
  virtual std::string set_up(const std::function<void(const std::string&)>& progress) {
    (void)progress;
    throw Error(ErrorCode::kNotSupported,
                name() + " has nothing to set up: its driver is all it needs");
  }
};

}  // namespace prism
