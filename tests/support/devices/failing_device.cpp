// Drivers that forward every call until the requested fault.
#include "support/devices/failing_device.h"

#include <utility>

namespace prism::test {
namespace {

using SharedFaults = std::shared_ptr<Faults>;

void check(const Faults& faults) {
  if (faults.is_lost)
    throw Error(ErrorCode::kDeviceLost, "the device was lost, as the test requested");
}

class FailingEvent final : public EventDriver {
 public:
  FailingEvent(std::unique_ptr<EventDriver> inner, SharedFaults faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}
  void wait() override {
    check(*faults_);
    inner_->wait();
  }
  bool done() override {
    check(*faults_);
    return inner_->done();
  }
  double ms_since(EventDriver& earlier) override {
    return inner_->ms_since(*static_cast<FailingEvent&>(earlier).inner_);
  }

 private:
  std::unique_ptr<EventDriver> inner_;
  SharedFaults faults_;
};

class FailingQueue final : public QueueDriver {
 public:
  FailingQueue(std::unique_ptr<QueueDriver> inner, SharedFaults faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}
  void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
    check(*faults_);
    inner_->write(to, offset, from);
  }
  void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
    check(*faults_);
    inner_->read(from, offset, to);
  }
  void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
            uint64_t bytes) override {
    if (submits()) inner_->copy(to, to_offset, from, from_offset, bytes);
  }
  void launch(const LaunchCall& call) override {
    if (submits()) inner_->launch(call);
  }
  void product(const ProductCall& call) override {
    if (submits()) inner_->product(call);
  }
  std::unique_ptr<EventDriver> record_event() override {
    return std::make_unique<FailingEvent>(inner_->record_event(), faults_);
  }
  void wait() override {
    inner_->wait();
    check(*faults_);
  }
  void begin_recording() override {
    inner_->begin_recording();
    is_recording_ = true;
  }
  std::unique_ptr<CommandGraphDriver> end_recording() override {
    is_recording_ = false;
    return inner_->end_recording();
  }
  void replay(CommandGraphDriver& recording) override {
    if (submits()) inner_->replay(recording);
  }

 private:
  // Whether work still reaches the device.
  bool submits() {
    if (is_recording_) return true;
    if (faults_->lose_at_submit > 0 && --faults_->lose_at_submit == 0) faults_->is_lost = true;
    return !faults_->is_lost;
  }

  std::unique_ptr<QueueDriver> inner_;
  SharedFaults faults_;
  bool is_recording_ = false;
};

class FailingDevice final : public DeviceDriver {
 public:
  FailingDevice(std::shared_ptr<DeviceDriver> inner, SharedFaults faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}
  const DeviceInfo& info() const override { return inner_->info(); }
  uint64_t free_bytes() override {
    check(*faults_);
    return inner_->free_bytes();
  }
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override {
    check(*faults_);
    if (faults_->full_at_allocation > 0 && --faults_->full_at_allocation == 0)
      faults_->is_full = true;
    if (faults_->is_full)
      throw Error(ErrorCode::kOutOfMemory, info().id + ": no memory, as the test requested");
    return inner_->allocate(bytes);
  }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override {
    check(*faults_);
    return inner_->compile(lowered);
  }
  std::vector<std::unique_ptr<ProgramDriver>> compile_together(
      std::span<const ir::Kernel> lowered) override {
    check(*faults_);
    return inner_->compile_together(lowered);
  }
  std::unique_ptr<QueueDriver> make_queue() override {
    check(*faults_);
    return std::make_unique<FailingQueue>(inner_->make_queue(), faults_);
  }
  std::byte* host_pointer(MemoryDriver& memory) override { return inner_->host_pointer(memory); }
  bool supports(const NativeProduct& product, std::string* why) override {
    return inner_->supports(product, why);
  }
  std::string native_products() override { return inner_->native_products(); }

 private:
  std::shared_ptr<DeviceDriver> inner_;
  SharedFaults faults_;
};

}  // namespace

std::shared_ptr<DeviceDriver> failing_device(std::shared_ptr<DeviceDriver> driver,
                                             std::shared_ptr<Faults> faults) {
  return std::make_shared<FailingDevice>(std::move(driver), std::move(faults));
}

}  // namespace prism::test
