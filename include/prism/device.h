// Device, Buffer, Program, Queue, Event, CommandGraph: the handles users hold.
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

namespace prism {

// Implemented by backends; handles own them.
class DeviceDriver;
class MemoryDriver;
class EventDriver;
class CommandGraphDriver;
struct NativeProduct;
struct DeviceState;  // what all handles of one device share
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
  uint64_t bytes_ = 0;     // as asked for
  bool constant_ = false;  // wrapped, so only read
};

// Where a part of a buffer may begin: a multiple of the strictest alignment met (NVIDIA's OpenCL;
// Vulkan and WebGPU promise to ask for no more than 256).
inline constexpr uint64_t kRangeAlignment = 512;

// A part of a buffer for a launch: offset is a multiple of kRangeAlignment; bytes 0 means up to the
// end.
struct BufferRange {
  Buffer buffer;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  BufferRange(Buffer whole) : buffer(std::move(whole)) {}
  BufferRange(Buffer of, uint64_t from, uint64_t length = 0)
      : buffer(std::move(of)), offset(from), bytes(length) {}
};

// A kernel ready for one device. Variants for large grids and buffers are compiled when a launch
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

// 32 bits of a launch's parameter. A non-negative int32_t is taken for a u32 and the other way
// round.
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

// A point of a queue.
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

// Launches and copies to be replayed. Keeps the programs and buffers it uses alive.
class CommandGraph {
 public:
  explicit operator bool() const { return driver_ != nullptr; }

 private:
  friend class Queue;
  std::shared_ptr<CommandGraphDriver> driver_;  // its deleter holds what the recording uses
  std::shared_ptr<DeviceState> device_;
};

// Work in order. Failures of launches are kept and thrown by wait(), naming the kernel. Safe to use
// from several threads, which then take turns.
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
  // Buffers in the order of the kernel's arguments, then its parameters. Checks count and types. A
  // grid with no groups does nothing. Parts of one buffer may be passed several times where none
  // that is written overlaps another.
  void launch(const Program& program, std::array<uint32_t, 3> groups,
              std::span<const BufferRange> buffers, std::span<const ParamValue> params = {});
  void launch(const Program& program, std::array<uint32_t, 3> groups,
              std::span<const Buffer> buffers, std::span<const ParamValue> params = {});
  void launch(const Program& program, uint32_t groups, std::initializer_list<BufferRange> buffers,
              std::initializer_list<ParamValue> params = {});
  // In two or three dimensions: launch(program, {groups_x, groups_y}, {a, b, y}, {width, height}).
  void launch(const Program& program, Groups groups, std::initializer_list<BufferRange> buffers,
              std::initializer_list<ParamValue> params = {});
  // A dense product by the device's vendor, where Device::supports() it; recorded like a launch.
  // Checks the matrices against the ranges.
  void product(const NativeProduct& product, const BufferRange& a, const BufferRange& b,
               const BufferRange& c);
  Event record_event();
  void wait();
  // What work launches and copies on this queue, kept for replay and not run. Reading, writing,
  // waiting and events are errors inside it.
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
  // For devices that move whole words only (limit_workarounds.cpp).
  void write_bytes(const Buffer& to, std::span<const std::byte> from, uint64_t offset);
  void read_bytes(const Buffer& from, std::span<std::byte> to, uint64_t offset);
  void copy_bytes(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset,
                  uint64_t from_offset);
  // For devices that bind a buffer in one way: which buffers are declared as written for the sake
  // of another range of theirs. Those ranges must not overlap, so one that is read twice is read
  // from a copy the second time. sizes: of the ranges.
  uint32_t bind_apart(const ir::Kernel& kernel, std::span<const uint64_t> sizes,
                      std::vector<BufferRange>& ranges);

  // The device's own default queue holds no device, lest the two keep each other alive; every copy
  // of it does.
  std::shared_ptr<DeviceState> device_;
  std::shared_ptr<State> state_;
};

class Device {
 public:
  Device() = default;
  Device(std::shared_ptr<DeviceDriver> driver, std::string why);

  static Device cpu();
  static Device gpu();             // throws kNotFound with the reasons where there is none
  static bool is_gpu_available();  // software devices do not count
  static Device named(
      const std::string& spelling);  // auto, cpu, gpu, cuda, cuda:0, rocm, mps, oneapi, wgpu ...

  const std::string& name() const { return info().name; }
  const std::string& id() const { return info().id; }
  const std::string& backend() const { return info().backend; }
  const std::string& why() const { return why_; }  // why this device was chosen
  // As the driver says, less the capabilities that failed their self-check.
  const DeviceInfo& info() const;
  uint64_t free_bytes() const;
  friend bool operator==(const Device& a, const Device& b) { return a.state_ == b.state_; }

  // Not cleared. kOutOfMemory names device, asked and free.
  Buffer allocate(uint64_t bytes) const;
  // A buffer over the host's memory, which it keeps alive, to be read only: no copy. An empty
  // handle where the device cannot read that memory in place.
  Buffer wrap(std::shared_ptr<std::byte> host, uint64_t bytes) const;
  Program compile(const ir::Kernel& kernel) const;  // kept in memory by kernel text
  // Many kernels of different names, in order: quicker than one by one where the device's compiler
  // takes them as one text.
  std::vector<Program> compile_together(std::span<const ir::Kernel> kernels) const;
  Queue make_queue() const;
  // Whether Queue::product() can do it here. *why says why not.
  bool supports(const NativeProduct& product, std::string* why = nullptr) const;
  Queue& queue() const;  // the device's default queue

  // --- when it fails (runtime/fallback.h)
  bool is_automatic() const { return automatic_; }  // chosen by Auto: work goes on elsewhere
  Device as_automatic() const;
  bool is_given_up() const;  // it failed, and this handle means another device by now:
  Device current() const;    // this device, or the one in its place

  // Whole vectors at once, on the default queue.
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
  // For self_check.h: kernels are from now on lowered for these, which must be part of what the
  // driver has. For every handle of the device; not while other threads use it.
  void use_capabilities(const ir::Capabilities& capabilities) const;
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend bool fall_back(const DeviceFailure& failure);
  std::shared_ptr<DeviceState> state_;
  std::string why_;
  bool automatic_ = false;
};

// --- finding every device of the machine and choosing one, with the reasons
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

// Every backend of this build in preference order, each found once per process. PRISM_BACKENDS
// limits it. Starts every driver there is: a device that is named, and the choice of an earlier
// run, are found without it.
const std::vector<BackendReport>& discover_backends();

std::string backend_summary();
void print_backend_summary();  // to standard output
void print_backend_summary(std::ostream& out);

Device init_backend(BackendPreference preference = BackendPreference::Auto);
Device best_available_backend();
Device init_backend_with_memory_check(BackendPreference preference, uint64_t bytes);

// Why each device that was not chosen was not: id and reason.
struct Rejection {
  std::string id;
  std::string reason;
  bool failed = false;  // its self-check: it would have been taken
};
struct Choice {
  Device device;
  std::vector<Rejection> rejected;
};
// What a device is wanted for: the measurement that decides between devices.
enum class Work { balanced, bandwidth, f32, f16, latency };
// Honours PRISM_DEVICE when spelling is auto. Opens the backend of a device that is named and no
// other; auto opens that of the choice an earlier run made (runtime/discovery/remembered_choice.h)
// and rejects nothing then, unless every backend has been looked at already.
Choice choose_device(const std::string& spelling = "auto", Work work = Work::balanced);
// What Auto chooses when nothing on the card of this device may be used. Throws kNotFound.
Device next_best_device(const Device& failed);

}  // namespace prism
