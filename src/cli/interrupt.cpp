// The signal handlers.
#include "cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <vector>

#include "base/system/output_file.h"

namespace prism::cli {
namespace {

std::atomic<llm::LanguageModel*> interrupted_model = nullptr;
std::atomic<bool> was_interrupted = false, ends_answer_only = false;

void on_interrupt(int) {
  if (llm::LanguageModel* model = interrupted_model.load()) model->cancel();
  was_interrupted = true;
  std::signal(SIGINT, ends_answer_only ? on_interrupt : SIG_DFL);
}

// Ends the program by the same signal, so that the caller sees the reason.
void on_end(int signal) {
  remove_temporary_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

InterruptGuard::InterruptGuard() : InterruptGuard(nullptr, false) {}
InterruptGuard::InterruptGuard(llm::LanguageModel& model, bool answer_only)
    : InterruptGuard(&model, answer_only) {}

InterruptGuard::InterruptGuard(llm::LanguageModel* model, bool answer_only) {
  was_interrupted = false;
  ends_answer_only = answer_only;
  interrupted_model = model;
  before_ = std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, before_ == SIG_ERR ? SIG_DFL : before_);
  interrupted_model = nullptr;
}

bool InterruptGuard::interrupted() const { return was_interrupted; }

void clean_up_on_signals() {
  std::vector<int> signals = {SIGINT, SIGTERM};
#ifndef _WIN32
  signals.insert(signals.end(), {SIGHUP, SIGPIPE, SIGXCPU, SIGXFSZ});
#endif
  for (const int each : signals)
    if (std::signal(each, on_end) == SIG_IGN) std::signal(each, SIG_IGN);  // as under nohup
}

}  // namespace prism::cli
