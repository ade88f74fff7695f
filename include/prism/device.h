// Device, Buffer, Program, Queue, Event, CommandGraph: the user-facing handles.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "prism/device_info.h"
#include "prism/kernel_ir.h"

#pragma GCC visibility push(default)

namespace prism {

// Implemented by backends and owned by the handles.
class DeviceDriver;
class MemoryDriver;
class EventDriver;
class CommandGraphDriver;
struct NativeProduct;
struct DeviceState;  // shared by all handles of one device
struct CompiledKernel;
class DeviceFailure;

// Memory on a device. Copies share it; it outlives the launches that use it.
class Buffer {
 public:
  Buffer() = default;
  uint64_t bytes() const { return bytes_; }
  explicit operator bool() const { return memory_ != nullptr; }
  MemoryDriver& driver() const { return *memory_; }

 private:
  friend class Device;
  friend class Queue;
  std::shared_ptr<MemoryDriver>
      memory_;  // a multiple of 4 bytes, since kernels may load whole words
  std::shared_ptr<DeviceState> device_;
  uint64_t bytes_ = 0;     // as requested
  bool constant_ = false;  // wraps host memory: read-only
};

// Alignment of buffer ranges: the strictest any interface requires (NVIDIA's OpenCL; Vulkan and
// WebGPU require at most 256).
inline constexpr uint64_t kRangeAlignment = 512;

// A range of a buffer for a launch: offset is a multiple of kRangeAlignment; bytes 0 extends to the
// end.
struct BufferRange {
  Buffer buffer;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  BufferRange(Buffer whole) : buffer(std::move(whole)) {}
  BufferRange(Buffer of, uint64_t from, uint64_t length = 0)
      : buffer(std::move(of)), offset(from), bytes(length) {}
};

// A kernel compiled for one device. Variants for large grids and buffers are compiled when a launch
// needs them.
class Program {
 public:
  Program() = default;
  const ir::Kernel& kernel() const;
  explicit operator bool() const { return compiled_ != nullptr; }

 private:
  friend class Device;
  friend class Queue;
  std::shared_ptr<DeviceState> device_;
  std::shared_ptr<CompiledKernel> compiled_;
};

// A 32-bit launch parameter. A non-negative int32_t is accepted as u32, and a u32 that fits as i32.
struct ParamValue {
  uint32_t bits = 0;
  DType type = DType::u32;
  ParamValue(uint32_t value) : bits(value), type(DType::u32) {}
  ParamValue(int32_t value) : bits(static_cast<uint32_t>(value)), type(DType::i32) {}
  ParamValue(float value) : bits(std::bit_cast<uint32_t>(value)), type(DType::f32) {}
};

// The number of groups along each axis of a launch.
struct Groups {
  uint32_t x = 1, y = 1, z = 1;
};

// A point in a queue's work.
class Event {
 public:
  void wait() const;
  bool done() const;
  double ms_since(const Event& earlier) const;  // device time; waits for both

 private:
  friend class Queue;
  std::shared_ptr<EventDriver> driver_;
  std::shared_ptr<DeviceState> device_;
};

// Recorded launches and copies for replay. Keeps the programs and buffers it uses alive.
class CommandGraph {
 public:
  explicit operator bool() const { return driver_ != nullptr; }

 private:
  friend class Queue;
  std::shared_ptr<CommandGraphDriver> driver_;  // its deleter holds what the recording uses
  std::shared_ptr<DeviceState> device_;
};

// Executes work in order. A launch failure is kept and thrown by wait(), which names the kernel.
// Safe to use from several threads; calls are serialised.
class Queue {
 public:
  Queue(const Queue& other);
  Queue& operator=(const Queue& other);
  Queue(Queue&&) noexcept = default;
  Queue& operator=(Queue&& other) noexcept;

  void write(const Buffer& to, std::span<const std::byte> from, uint64_t offset = 0);
  void read(const Buffer& from, std::span<std::byte> to, uint64_t offset = 0);
  void copy(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset = 0,
            uint64_t from_offset = 0);
  // Buffers in the order of the kernel's arguments, then its parameters; counts and types are
  // checked. An empty grid does nothing. Ranges of one buffer may be passed several times if no
  // written range overlaps another.
  void launch(const Program& program, std::array<uint32_t, 3> groups,
              std::span<const BufferRange> buffers, std::span<const ParamValue> params = {});
  void launch(const Program& program, std::array<uint32_t, 3> groups,
              std::span<const Buffer> buffers, std::span<const ParamValue> params = {});
  void launch(const Program& program, uint32_t groups, std::initializer_list<BufferRange> buffers,
              std::initializer_list<ParamValue> params = {});
  // In two or three dimensions: launch(program, {groups_x, groups_y}, {a, b, y}, {width, height}).
  void launch(const Program& program, Groups groups, std::initializer_list<BufferRange> buffers,
              std::initializer_list<ParamValue> params = {});
  // A dense matrix product by the vendor's library, if Device::supports() it; recorded like a
  // launch. Checks the matrices against the ranges.
  void product(const NativeProduct& product, const BufferRange& a, const BufferRange& b,
               const BufferRange& c);
  Event record_event();
  void wait();
  // Records the launches and copies that work submits to this queue, without running them. Reading,
  // writing, waiting and events are errors while recording.
  CommandGraph record(const std::function<void()>& work);
  void replay(const CommandGraph& recording);

 private:
  friend class Device;
  friend struct DeviceState;
  struct State;
  Queue(std::shared_ptr<State> state, std::shared_ptr<DeviceState> device);
  const Buffer& mine(const Buffer& buffer, const char* doing, bool changes = false) const;
  void add_copy(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset,
                uint64_t from_offset);
  // For devices that can copy only whole words (limit_workarounds.cpp).
  void write_bytes(const Buffer& to, std::span<const std::byte> from, uint64_t offset);
  void read_bytes(const Buffer& from, std::span<std::byte> to, uint64_t offset);
  void copy_bytes(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset,
                  uint64_t from_offset);
  // For devices that bind a buffer with one access mode: returns which buffers must be declared as
  // written because another of their ranges is. These ranges must not overlap, so a range that is
  // read twice is read from a copy the second time. sizes: the sizes of the ranges.
  uint32_t bind_apart(const ir::Kernel& kernel, std::span<const uint64_t> sizes,
                      std::vector<BufferRange>& ranges);

  // Null in the device's own default queue, which would otherwise form a reference cycle; set in
  // every copy of it.
  std::shared_ptr<DeviceState> device_;
  std::shared_ptr<State> state_;
};

class Device {
 public:
  Device() = default;
  Device(std::shared_ptr<DeviceDriver> driver, std::string why);

  static Device cpu();
  static Device gpu();             // throws kNotFound with the reasons if there is none
  static bool is_gpu_available();  // software devices do not count
  static Device named(
      const std::string& spelling);  // auto, cpu, gpu, cuda, cuda:0, rocm, mps, oneapi, wgpu ...

  const std::string& name() const { return info().name; }
  const std::string& id() const { return info().id; }
  const std::string& backend() const { return info().backend; }
  const std::string& why() const { return why_; }  // why this device was chosen
  // As reported by the driver, minus the capabilities that failed their self-check.
  const DeviceInfo& info() const;
  uint64_t free_bytes() const;
  friend bool operator==(const Device& a, const Device& b) { return a.state_ == b.state_; }

  // Uninitialised memory. kOutOfMemory names the device and the requested and free bytes.
  Buffer allocate(uint64_t bytes) const;
  // A read-only buffer over host memory, which it keeps alive, without a copy. Returns an empty
  // handle if the device cannot read that memory in place.
  Buffer wrap(std::shared_ptr<std::byte> host, uint64_t bytes) const;
  Program compile(const ir::Kernel& kernel) const;  // cached in memory by kernel text
  // Compiles kernels with distinct names, in order; faster than one by one if the device's compiler
  // accepts them as one source.
  std::vector<Program> compile_together(std::span<const ir::Kernel> kernels) const;
  Queue make_queue() const;
  // Whether Queue::product() supports it on this device. *why receives the reason if not.
  bool supports(const NativeProduct& product, std::string* why = nullptr) const;
  Queue& queue() const;  // the device's default queue

  // --- device failure (runtime/fallback.h)
  bool is_automatic() const { return automatic_; }  // chosen by Auto: another device may take over
  Device as_automatic() const;
  bool is_given_up() const;  // it failed, and this handle now refers to another device
  Device current() const;    // this device or its replacement

  // Copies of whole vectors, on the default queue.
  template <class T>
  Buffer upload(const std::vector<T>& values) const {
    static_assert(std::is_trivially_copyable_v<T>);
    Buffer buffer = allocate(values.size() * sizeof(T));
    queue().write(buffer, std::as_bytes(std::span(values)));
    return buffer;
  }
  template <class T>
  std::vector<T> download(const Buffer& buffer) const {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    queue().read(buffer, std::as_writable_bytes(std::span(values)));
    return values;
  }
  DeviceDriver& driver() const;
  // For self_check.h: from now on kernels are lowered for these capabilities, a subset of the
  // driver's. Affects every handle of the device; not thread-safe.
  void use_capabilities(const ir::Capabilities& capabilities) const;
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend bool fall_back(const DeviceFailure& failure);
  std::shared_ptr<DeviceState> state_;
  std::string why_;
  bool automatic_ = false;
};

// --- discovery and selection of devices
enum class BackendPreference { Auto, Cuda, Rocm, Metal, Vulkan, Sycl, OpenCL, WebGpu, Cpu };

struct BackendReport {
  std::string name;
  std::string label;
  bool available = false;
  std::string reason;
  std::string next_step;
  std::string found;
  std::vector<std::shared_ptr<DeviceDriver>> devices;
};

// Every backend of this build in preference order, discovered once per process. PRISM_BACKENDS
// limits the list. Starts every installed driver; a device chosen by name or remembered from an
// earlier run is found without it.
const std::vector<BackendReport>& discover_backends();

std::string backend_summary();
void print_backend_summary();  // to standard output
void print_backend_summary(std::ostream& out);

Device init_backend(BackendPreference preference = BackendPreference::Auto);
Device best_available_backend();
Device init_backend_with_memory_check(BackendPreference preference, uint64_t bytes);

// A device that was not chosen: its id and the reason.
struct Rejection {
  std::string id;
  std::string reason;
  bool failed = false;  // its self-check failed; it would have been chosen otherwise
};
struct Choice {
  Device device;
  std::vector<Rejection> rejected;
};
// The intended workload: the measurement that decides between devices.
enum class Work { balanced, bandwidth, f32, f16, latency };
// Uses PRISM_DEVICE when spelling is auto. A named device opens only its own backend. auto opens
// only the backend of the choice remembered from an earlier run
// (runtime/discovery/remembered_choice.h) and then has no rejections, unless every backend has
// already been discovered.
Choice choose_device(const std::string& spelling = "auto", Work work = Work::balanced);
// The next choice of Auto, excluding every device on the failed device's card. Throws kNotFound.
Device next_best_device(const Device& failed);

}  // namespace prism

#pragma GCC visibility pop
