// Tests decode attention in plans: splits are merged in the decode launch over many runs, and in a
// second launch if groups cannot see each other's writes.
#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/ops/attention.h"
#include "prism/ops/create.h"
#include "support/devices/interpreted_device.h"
#include "support/ops/drawn.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

constexpr int64_t kHeads = 6, kKvHeads = 2, kDim = 32, kPositions = 300, kSlots = 3;

// The interpreter as a device without device fences, or one whose next launch fails on request.
class Altered final : public DeviceDriver {
 public:
  explicit Altered(std::shared_ptr<DeviceDriver> driver, bool fences)
      : driver_(std::move(driver)), info_(driver_->info()) {
    info_.id += fences ? "-failing" : "-unfenced";
    info_.capabilities.device_fence = fences;
  }
  bool fail_next = false;  // the next launch; some groups have counted by then

  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override { return driver_->free_bytes(); }
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override {
    return driver_->allocate(bytes);
  }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override {
    return driver_->compile(lowered);
  }
  std::unique_ptr<QueueDriver> make_queue() override {
    return std::make_unique<FailingQueue>(*this, driver_->make_queue());
  }

 private:
  class FailingQueue final : public QueueDriver {
   public:
    FailingQueue(Altered& owner, std::unique_ptr<QueueDriver> queue)
        : owner_(owner), queue_(std::move(queue)) {}
    void write(MemoryDriver& to, uint64_t offset, std::span<const std::byte> from) override {
      queue_->write(to, offset, from);
    }
    void read(MemoryDriver& from, uint64_t offset, std::span<std::byte> to) override {
      queue_->read(from, offset, to);
    }
    void copy(MemoryDriver& to, uint64_t to_offset, MemoryDriver& from, uint64_t from_offset,
              uint64_t bytes) override {
      queue_->copy(to, to_offset, from, from_offset, bytes);
    }
    void launch(const LaunchCall& call) override {
      const std::vector<uint32_t> buffers = call.kernel->buffers();
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (call.kernel->memories[buffers[i]].name != "counters") continue;
        if (!std::exchange(owner_.fail_next, false)) break;
        const std::vector<uint32_t> counted(call.bindings[i].bytes / 4,
                                            1000);  // so that no group is the last
        queue_->write(*call.bindings[i].memory, call.bindings[i].offset,
                      std::as_bytes(std::span(counted)));
        throw Error(ErrorCode::kInvalidArgument, "a test stopped a launch half-way");
      }
      queue_->launch(call);
    }
    std::unique_ptr<EventDriver> record_event() override { return queue_->record_event(); }
    void wait() override { queue_->wait(); }
    void begin_recording() override { queue_->begin_recording(); }
    std::unique_ptr<CommandGraphDriver> end_recording() override { return queue_->end_recording(); }
    void replay(CommandGraphDriver& recording) override { queue_->replay(recording); }

   private:
    Altered& owner_;
    std::unique_ptr<QueueDriver> queue_;
  };

  std::shared_ptr<DeviceDriver> driver_;
  DeviceInfo info_;
};

class AttentionPlans : public test::DrawnTensors {
 protected:
  struct Cache {
    Tensor k, v, sinks;
  };
  Cache cache(const Device& device) {
    const Shape shape{kSlots, kPositions, kKvHeads, kDim};
    return {draw(device, shape), draw(device, shape), draw(device, {kHeads})};
  }
  static CompiledFunction attend(const Cache& cache, int64_t window) {
    return compile([=](std::span<const Tensor> in) -> std::vector<Tensor> {
      AttentionSettings settings;
      settings.window = window;
      settings.sinks = cache.sinks;
      return {cached_attention(in[0], cache.k, cache.v, in[1], 1, settings)};
    });
  }
  static Tensor spans(const Device& device, const std::vector<int32_t>& keys) {
    std::vector<int32_t> words;
    for (int32_t s = 0; s < static_cast<int32_t>(keys.size()); ++s)
      words.insert(words.end(),
                   {s, 1, keys[static_cast<size_t>(s)], static_cast<int32_t>(kSlots) - 1 - s});
    return from_vector(words, {static_cast<int64_t>(keys.size()), 4}, device);
  }
  static size_t launches(const Plan& plan) {
    size_t sum = 0;
    for (const PlanStep& step : plan.steps()) sum += step.launches.size();
    return sum;
  }
  // Compares with float64, element by element.
  static void expect_right(const Tensor& q, const Cache& cache, const std::vector<int32_t>& keys,
                           int64_t window, const Tensor& found) {
    const std::vector<double> qs = q.to_doubles(), ks = cache.k.to_doubles(),
                              vs = cache.v.to_doubles(), sinks = cache.sinks.to_doubles(),
                              result = found.to_doubles();
    const auto at = [](int64_t slot, int64_t position, int64_t head, int64_t d) {
      return static_cast<size_t>(((slot * kPositions + position) * kKvHeads + head) * kDim + d);
    };
    for (int64_t s = 0; s < kSlots; ++s)
      for (int64_t head = 0; head < kHeads; ++head) {
        const int64_t slot = kSlots - 1 - s, kv = head / (kHeads / kKvHeads),
                      length = keys[static_cast<size_t>(s)],
                      first = window > 0 ? std::max<int64_t>(0, length - window) : 0;
        const auto row = static_cast<size_t>((s * kHeads + head) * kDim);
        std::vector<double> weights;
        double all = std::exp(sinks[static_cast<size_t>(head)]);
        for (int64_t j = first; j < length; ++j) {
          double score = 0;
          for (int64_t d = 0; d < kDim; ++d)
            score += qs[row + static_cast<size_t>(d)] * ks[at(slot, j, kv, d)];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kDim))));
          all += weights.back();
        }
        for (int64_t d = 0; d < kDim; ++d) {
          double wanted = 0;
          for (int64_t j = first; j < length; ++j)
            wanted += weights[static_cast<size_t>(j - first)] / all * vs[at(slot, j, kv, d)];
          ASSERT_NEAR(result[row + static_cast<size_t>(d)], wanted, 2e-5)
              << "sequence " << s << " head " << head << " element " << d;
        }
      }
  }
};

// Lengths change between runs, some splits have no keys, and every run starts with the counters of
// the previous one. The device without fences merges in a second launch.
TEST_F(AttentionPlans, ManyRunsOfOneLaunchAreRight) {
  const auto driver = test::interpreted_driver(24);
  const Device fenced(driver, "a test"),
      unfenced(std::make_shared<Altered>(driver, false), "a test");
  for (const int64_t window : {0, 70}) {
    const Cache there = cache(fenced);
    const Cache again = {there.k.to(unfenced).eval(), there.v.to(unfenced).eval(),
                         there.sinks.to(unfenced).eval()};
    CompiledFunction one = attend(there, window), two = attend(again, window);
    for (int run = 0; run < 25; ++run) {
      std::vector<int32_t> keys;
      for (int64_t s = 0; s < kSlots; ++s)
        keys.push_back(1 + static_cast<int32_t>(engine() % (run % 3 == 0 ? 4 : kPositions)));
      const Tensor q = draw(fenced, {kSlots, kHeads, kDim});
      const Tensor in[] = {q, spans(fenced, keys)};
      const Tensor also[] = {q.to(unfenced).eval(), spans(unfenced, keys)};
      const Tensor found = one(in)[0], merged = two(also)[0];
      expect_right(q, there, keys, window, found);
      expect_right(q, there, keys, window, merged);
      if (run > 0) continue;
      EXPECT_EQ(launches(one.plan(in)), 1u) << one.plan(in).explain();
      EXPECT_EQ(launches(two.plan(also)), 2u) << two.plan(also).explain();
    }
  }
}

// A launch that stopped half-way leaves nonzero counters: the next run resets them.
TEST_F(AttentionPlans, ARunAfterAFailureIsRight) {
  const auto driver = std::make_shared<Altered>(test::interpreted_driver(24), true);
  const Device device(driver, "a test");
  const Cache there = cache(device);
  CompiledFunction one = attend(there, 0);
  const std::vector<int32_t> keys = {300, 17, 150};
  const Tensor q = draw(device, {kSlots, kHeads, kDim});
  const Tensor in[] = {q, spans(device, keys)};
  driver->fail_next = true;
  EXPECT_THROW(one(in), Error);
  EXPECT_FALSE(driver->fail_next);
  for (int run = 0; run < 3; ++run) expect_right(q, there, keys, 0, one(in)[0]);
}

}  // namespace
}  // namespace prism
