// The process-wide transfer handler.
#include "base/transfer_progress.h"

#include <mutex>
#include <utility>

namespace prism {
namespace {

struct Holder {
  std::mutex mutex;
  TransferHandler handler;
};
Holder& holder() {
  static auto& one = *new Holder;  // never destroyed: any thread may report until the process ends
  return one;
}

}  // namespace

void set_transfer_handler(TransferHandler handler) {
  const std::scoped_lock lock(holder().mutex);
  holder().handler = std::move(handler);
}

void report_transfer(const std::string& what, uint64_t done, uint64_t all) {
  const std::scoped_lock lock(holder().mutex);
  if (holder().handler) holder().handler(what, done, all);
}

}  // namespace prism
