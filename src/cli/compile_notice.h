// Tells the user that kernels are being compiled when that takes long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace prism::cli {

// Calls say() once for each device, during compilation, when compiling for it has taken longer than
// `after` in total.
class CompileNotice {
 public:
  using Clock = std::chrono::steady_clock;
  CompileNotice(std::function<void(const std::string& device)> say,
                std::chrono::milliseconds after = std::chrono::seconds(1));
  ~CompileNotice();
  CompileNotice(const CompileNotice&) = delete;
  CompileNotice& operator=(const CompileNotice&) = delete;

  void begin(const std::string& device);
  void end();

 private:
  void wait();

  const std::function<void(const std::string&)> say_;
  const Clock::duration after_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string device_;          // device of the latest compilation
  int running_ = 0;             // current compilations
  Clock::time_point begun_;     // start of the current compilations
  Clock::duration spent_ = {};  // on earlier compilations for the same device
  bool is_said_ = false, is_over_ = false;
  std::thread thread_;  // started by the first compilation
};

// Reports compilations of the whole program on standard error while it lives.
class CompileNoticeOnStandardError {
 public:
  CompileNoticeOnStandardError();
  ~CompileNoticeOnStandardError();

 private:
  CompileNotice notice_;
};

}  // namespace prism::cli
