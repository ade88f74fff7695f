// A driver for tests of the handles: keeps memory on the host, logs every call, and fails on
// request.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "prism/error.h"
#include "runtime/driver.h"

namespace prism::test {

class FakeMemory final : public MemoryDriver {
 public:
  FakeMemory(uint64_t bytes, uint64_t* used) : content(bytes), used_(used) { *used_ += bytes; }
  ~FakeMemory() override { *used_ -= content.size(); }
  uint64_t bytes() const override { return content.size(); }
  std::vector<std::byte> content;

 private:
  uint64_t* used_;
};

// The arguments of a launch.
struct SeenLaunch {
  std::array<uint32_t, 3> groups;
  std::vector<Binding> bindings;
  std::vector<uint32_t> params;
  bool folded;
};

struct FakeLog {
  std::vector<SeenLaunch> launches;
  std::vector<ProductCall> products;
  int compiles = 0, copies = 0, recordings = 0, replays = 0, waits = 0;
  int odd = 0;  // writes, reads and copies that are not whole words
  void note_odd(uint64_t places) { odd += places % 4 != 0; }
  std::string fail_at_wait;  // thrown by the next wait
  std::function<void(const LaunchCall&)> on_launch;
  std::function<void(const FakeLog&)> at_end;  // called when the device is destroyed
  uint64_t used = 0;
};

class FakeEvent final : public EventDriver {
 public:
  void wait() override {}
  bool done() override { return true; }
  double ms_since(EventDriver&) override { return 1; }
};

class FakeQueue final : public QueueDriver {
 public:
  explicit FakeQueue(FakeLog& log) : log_(log) {}
  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    log_.note_odd(offset | from.size());
    std::memcpy(static_cast<FakeMemory&>(to).content.data() + offset, from.data(), from.size());
  }
  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    log_.note_odd(offset | to.size());
    std::memcpy(to.data(), static_cast<FakeMemory&>(from).content.data() + offset, to.size());
  }
  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    ++log_.copies;
    log_.note_odd(to_offset | from_offset | bytes);
    std::memcpy(static_cast<FakeMemory&>(to).content.data() + to_offset,
                static_cast<FakeMemory&>(from).content.data() + from_offset, bytes);
  }
  void launch(const LaunchCall& call) override {
    log_.launches.push_back({call.groups,
                             {call.bindings.begin(), call.bindings.end()},
                             {call.params.begin(), call.params.end()},
                             call.kernel->folded});
    if (log_.on_launch) log_.on_launch(call);
  }
  void product(const ProductCall& call) override { log_.products.push_back(call); }
  std::unique_ptr<EventDriver> record_event() override { return std::make_unique<FakeEvent>(); }
  void wait() override {
    ++log_.waits;
    if (log_.fail_at_wait.empty()) return;
    const std::string message = std::exchange(log_.fail_at_wait, "");
    throw Error(ErrorCode::kDeviceLost, message);
  }
  void begin_recording() override { ++log_.recordings; }
  std::unique_ptr<CommandGraphDriver> end_recording() override {
    return std::make_unique<CommandGraphDriver>();
  }
  void replay(CommandGraphDriver&) override { ++log_.replays; }

 private:
  FakeLog& log_;
};

class FakeDevice : public DeviceDriver {
 public:
  explicit FakeDevice(const std::string& id, uint64_t total_bytes = 1 << 20) {
    info_.id = id;
    info_.backend = id.substr(0, id.find(':'));
    info_.name = "Fake " + id;
    info_.card = id;
    info_.driver = "fake 1.0";
    info_.total_bytes = total_bytes;
    info_.capabilities.dialect = "interpreter";
  }
  ~FakeDevice() override {
    if (log.at_end) log.at_end(log);
  }
  const DeviceInfo& info() const override { return info_; }
  DeviceInfo& edit() { return info_; }
  uint64_t free_bytes() override { return info_.total_bytes - log.used; }
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override {
    if (bytes > free_bytes()) throw Error(ErrorCode::kOutOfMemory, "fake: out of memory");
    return std::make_unique<FakeMemory>(bytes, &log.used);
  }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel&) override {
    ++log.compiles;
    return std::make_unique<ProgramDriver>();
  }
  std::unique_ptr<QueueDriver> make_queue() override { return std::make_unique<FakeQueue>(log); }

  bool supports(const NativeProduct& product, std::string* why) override {
    *why = "fake: no f32";
    return product.a_type != DType::f32;
  }

  FakeLog log;

 private:
  DeviceInfo info_;
};

}  // namespace prism::test
