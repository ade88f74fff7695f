// Watches compilations from a separate thread, which the first compilation starts.
#include "cli/compile_notice.h"

#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "runtime/compile_watch.h"

namespace prism::cli {

CompileNotice::CompileNotice(std::function<void(const std::string&)> say,
                             std::chrono::milliseconds after)
    : say_(std::move(say)), after_(after) {}

CompileNotice::~CompileNotice() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CompileNotice::begin(const std::string& device) {
  const std::scoped_lock lock(mutex_);
  if (device != device_) device_ = device, spent_ = {}, is_said_ = false;
  if (running_++ == 0) begun_ = Clock::now();
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { wait(); });
  } catch (const std::system_error&) {
    return;  // no thread can be started: stay silent
  }
  changed_.notify_one();
}

void CompileNotice::end() {
  const std::scoped_lock lock(mutex_);
  if (--running_ == 0) spent_ += Clock::now() - begun_;
}

void CompileNotice::wait() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (running_ == 0 || is_said_) {
      changed_.wait(lock);
    } else if (const auto due = begun_ + (after_ - spent_); Clock::now() < due) {
      changed_.wait_until(lock, due);
    } else {
      is_said_ = true;
      say_(device_);
    }
  }
}

CompileNoticeOnStandardError::CompileNoticeOnStandardError()
    : notice_([](const std::string& device) {
        end_progress();
        std::cerr << paint(Colour::dim,
                           fmt::format("compiling kernels for {}; they are kept for the next time",
                                       device),
                           Stream::error)
                  << std::endl;
      }) {
  set_compile_watch({.begins = [this](const std::string& device) { notice_.begin(device); },
                     .ends = [this] { notice_.end(); }});
}

CompileNoticeOnStandardError::~CompileNoticeOnStandardError() { set_compile_watch({}); }

}  // namespace prism::cli
