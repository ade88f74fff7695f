// Device, Buffer, Program, Queue, Event, Recording: the handles users hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/kernel.h"
#include "runtime/driver.h"

namespace prism {

// Memory on a device. Copies share it.
class Buffer {
 public:
  Buffer() = default;
  uint64_t bytes() const { return memory_ ? memory_->bytes() : 0; }
  explicit operator bool() const { return memory_ != nullptr; }
  MemoryDriver& driver() const { return *memory_; }

 private:
  friend class Device;
  std::shared_ptr<MemoryDriver> memory_;
  std::shared_ptr<DeviceDriver> device_;  // outlives its memory
  friend class Queue;
};

// A kernel ready for one device. Variants for large grids and buffers are compiled when a launch needs them.
class Program {
 public:
  Program() = default;
  const ir::Kernel& kernel() const;

 private:
  friend class Device;
  friend class Queue;
  struct State;
  std::shared_ptr<State> state_;
};

// 32 bits of a launch's parameter.
struct ParamValue {
  uint32_t bits = 0;
  DType type = DType::u32;
  ParamValue(uint32_t value);
  ParamValue(int32_t value);
  ParamValue(float value);
};

class Event {
 public:
  void wait() const;
  bool done() const;
  double ms_since(const Event& earlier) const;

 private:
  friend class Queue;
  std::shared_ptr<EventDriver> driver_;
};

class Recording {
 public:
  explicit operator bool() const { return driver_ != nullptr; }

 private:
  friend class Queue;
  std::shared_ptr<RecordingDriver> driver_;
  std::vector<std::shared_ptr<void>> kept_;  // programs and buffers it uses
};

// Work in order. Failures of launches are kept and thrown by wait(), naming the kernel.
class Queue {
 public:
  void write(const Buffer& to, std::span<const std::byte> from, uint64_t offset = 0);
  void read(const Buffer& from, std::span<std::byte> to, uint64_t offset = 0);
  void copy(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset = 0, uint64_t from_offset = 0);
  // Buffers in the order of the kernel's arguments, then its parameters. Checks count and types.
  void launch(const Program& program, std::array<uint32_t, 3> groups, std::span<const Buffer> buffers,
              std::span<const ParamValue> params = {});
  void launch(const Program& program, uint32_t groups, std::initializer_list<Buffer> buffers,
              std::initializer_list<ParamValue> params = {});
  Event record_event();
  void wait();
  Recording record(const std::function<void()>& work);  // what work launches on this queue
  void replay(const Recording& recording);

 private:
  friend class Device;
  struct State;
  std::shared_ptr<State> state_;
};

class Device {
 public:
  Device() = default;
  Device(std::shared_ptr<DeviceDriver> driver, std::string why);

  static Device cpu();
  static Device gpu();               // throws kNotFound with the reasons where there is none
  static bool is_gpu_available();    // software devices do not count
  static Device named(const std::string& spelling);  // auto, cpu, gpu, cuda, cuda:0, rocm, mps, oneapi, wgpu ...

  const std::string& name() const;
  const std::string& id() const;
  const std::string& backend() const;
  const std::string& why() const { return why_; }  // why this device was chosen
  const DeviceInfo& info() const;
  uint64_t free_bytes() const;
  friend bool operator==(const Device& a, const Device& b) { return a.driver_ == b.driver_; }

  Buffer allocate(uint64_t bytes) const;
  Program compile(const ir::Kernel& kernel) const;  // kept in memory by kernel text
  Queue make_queue() const;
  Queue& queue() const;  // the device's default queue

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
  DeviceDriver& driver() const { return *driver_; }
  explicit operator bool() const { return driver_ != nullptr; }

 private:
  std::shared_ptr<DeviceDriver> driver_;
  std::string why_;
};

}  // namespace prism
