// Events based on fences and timestamps.
#include "backends/vulkan/vulkan_events.h"

#include <chrono>

#include "prism/error.h"

namespace prism::vulkan {
namespace {

constexpr uint32_t kQueriesInPool = 64;

class Event final : public EventDriver {
 public:
  Event(std::shared_ptr<Submissions> submissions, std::shared_ptr<Timestamps> timestamps)
      : submissions_(std::move(submissions)), timestamps_(std::move(timestamps)) {
    if (submissions_->device().physical().timestamp_bits) {
      query_ = timestamps_->take();
      submissions_->commands().timestamp(query_.pool, query_.index);
    } else {
      submissions_->commands();
    }
    serial_ = submissions_->submit();
  }
  ~Event() override {
    if (query_.pool) timestamps_->give_back(query_);
  }

  void wait() override {
    submissions_->wait(serial_);
    see();
  }
  bool done() override {
    if (!submissions_->done(serial_)) return false;
    see();
    return true;
  }

  double ms_since(EventDriver& earlier) override {
    auto& start = static_cast<Event&>(earlier);
    start.wait();
    wait();
    const PhysicalDevice& physical = submissions_->device().physical();
    if (!query_.pool) return std::chrono::duration<double, std::milli>(seen_ - start.seen_).count();
    const uint64_t mask =
        physical.timestamp_bits >= 64 ? UINT64_MAX : (uint64_t{1} << physical.timestamp_bits) - 1;
    const uint64_t ticks =
        (timestamps_->read(query_) - start.timestamps_->read(start.query_)) & mask;
    // Avoid a wrap-around to centuries when the events are in reverse order.
    const double signed_ticks =
        ticks > mask / 2 ? -static_cast<double>(mask - ticks + 1) : static_cast<double>(ticks);
    return signed_ticks * physical.properties.limits.timestampPeriod * 1e-6;
  }

 private:
  // Without timestamps, record when the host first saw the event completed.
  void see() {
    if (seen_ == std::chrono::steady_clock::time_point{}) seen_ = std::chrono::steady_clock::now();
  }

  std::shared_ptr<Submissions> submissions_;
  std::shared_ptr<Timestamps> timestamps_;
  Timestamps::Query query_;
  Serial serial_ = 0;
  std::chrono::steady_clock::time_point seen_{};
};

}  // namespace

Timestamps::Query Timestamps::take() {
  if (free_.empty()) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = kQueriesInPool;
    VkQueryPool pool = VK_NULL_HANDLE;
    device_.check(device_.call().CreateQueryPool(device_.handle(), &info, nullptr, &pool),
                  "making timestamps");
    pools_.push_back(device_.own(pool, device_.call().DestroyQueryPool));
    for (uint32_t i = kQueriesInPool; i > 0; --i) free_.push_back({pool, i - 1});
  }
  const Query query = free_.back();
  free_.pop_back();
  return query;
}

uint64_t Timestamps::read(Query query) {
  uint64_t ticks = 0;
  device_.check(device_.call().GetQueryPoolResults(
                    device_.handle(), query.pool, query.index, 1, sizeof(ticks), &ticks,
                    sizeof(ticks), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                "reading a timestamp");
  return ticks;
}

std::unique_ptr<EventDriver> record_event(const std::shared_ptr<Submissions>& submissions,
                                          const std::shared_ptr<Timestamps>& timestamps) {
  return std::make_unique<Event>(submissions, timestamps);
}

}  // namespace prism::vulkan
