#include "runtime/compile_watch.h"

#include <mutex>
#include <utility>

namespace prism {
namespace {

struct Holder {
  std::mutex mutex;
  CompileWatch watch;
};
Holder& holder() {
  static auto& one = *new Holder;  // lives until the process ends, whichever thread compiles last
  return one;
}

}  // namespace

void set_compile_watch(CompileWatch watch) {
  const std::scoped_lock lock(holder().mutex);
  holder().watch = std::move(watch);
}

CompileReport::CompileReport(const std::string& device) {
  CompileWatch watch;
  {
    const std::scoped_lock lock(holder().mutex);
    watch = holder().watch;
  }
  if (watch.begins) watch.begins(device);
  ends_ = std::move(watch.ends);
}

CompileReport::~CompileReport() {
  if (ends_) ends_();
}

}  // namespace prism
