// The null device: counts allocations and ignores work.
#include "backends/null/null_backend.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {
namespace {

class NullEvent final : public EventDriver {
 public:
  void wait() override {}
  bool done() override { return true; }
  double ms_since(EventDriver&) override { return 0; }
};

class NullQueue final : public QueueDriver {
 public:
  void write(MemoryDriver&, uint64_t, std::span<const std::byte>) override {}
  void read(MemoryDriver&, uint64_t, std::span<std::byte> to) override {
    std::ranges::fill(to, std::byte{0});
  }
  void copy(MemoryDriver&, uint64_t, MemoryDriver&, uint64_t, uint64_t) override {}
  void launch(const LaunchCall&) override {}
  std::unique_ptr<EventDriver> record_event() override { return std::make_unique<NullEvent>(); }
  void wait() override {}
  void begin_recording() override {}
  std::unique_ptr<CommandGraphDriver> end_recording() override {
    return std::make_unique<CommandGraphDriver>();
  }
  void replay(CommandGraphDriver&) override {}
};

class NullDevice final : public DeviceDriver {
 public:
  NullDevice() {
    info_.id = "null:0";
    info_.backend = "null";
    info_.name = "null device";
    info_.card = info_.id;
    info_.driver = "none";
    info_.total_bytes = 64ull << 30;
    info_.software = true;
    info_.compute_units = 1;
    info_.capabilities.dialect = "interpreter";
  }
  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override { return info_.total_bytes - used_; }

  // Allocations are only counted, so that out-of-memory can be tested.
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override {
    if (bytes > free_bytes()) {
      throw Error(ErrorCode::kOutOfMemory,
                  fmt::format("allocate on {}: {} bytes asked, {} bytes free of {}", info_.id,
                              bytes, free_bytes(), info_.total_bytes));
    }
    return std::make_unique<Memory>(*this, bytes);
  }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel&) override {
    return std::make_unique<ProgramDriver>();
  }
  std::unique_ptr<QueueDriver> make_queue() override { return std::make_unique<NullQueue>(); }

 private:
  class Memory final : public MemoryDriver {
   public:
    Memory(NullDevice& device, uint64_t bytes) : device_(device), bytes_(bytes) {
      device_.used_ += bytes;
    }
    ~Memory() override { device_.used_ -= bytes_; }
    uint64_t bytes() const override { return bytes_; }

   private:
    NullDevice& device_;
    uint64_t bytes_;
  };

  DeviceInfo info_;
  uint64_t used_ = 0;
};

class NullBackend final : public Backend {
 public:
  std::string name() const override { return "null"; }
  std::string label() const override { return "Null"; }
  bool starts_driver() const override { return false; }
  Discovery discover() override {
    Discovery discovery;
    discovery.devices.push_back(std::make_shared<NullDevice>());
    discovery.found = "built in";
    return discovery;
  }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace prism
