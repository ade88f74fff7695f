// The process-wide warning handler.
#include "prism/warning.h"

#include <mutex>
#include <utility>

namespace prism {
namespace {

struct Holder {
  std::mutex mutex;
  WarningHandler handler;
};
Holder& holder() {
  static auto& one = *new Holder;
  return one;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  const std::scoped_lock lock(holder().mutex);
  return std::exchange(holder().handler, std::move(handler));
}

void warn(const std::string& text) {
  WarningHandler handler;
  {
    const std::scoped_lock lock(holder().mutex);
    handler = holder().handler;
  }
  if (handler) handler(text);
}

}  // namespace prism
