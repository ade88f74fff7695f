// The signal handler for Ctrl-C.
#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace prism::cli {
namespace {

std::atomic<llm::LanguageModel*> interrupted_model = nullptr;
std::atomic<bool> was_interrupted = false, ends_answer_only = false;

void on_interrupt(int) {
  if (llm::LanguageModel* model = interrupted_model.load()) model->cancel();
  was_interrupted = true;
  std::signal(SIGINT, ends_answer_only ? on_interrupt : SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard(llm::LanguageModel& model, bool answer_only) {
  was_interrupted = false;
  ends_answer_only = answer_only;
  interrupted_model = &model;
  before_ = std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, before_ == SIG_ERR ? SIG_DFL : before_);
  interrupted_model = nullptr;
}

bool InterruptGuard::interrupted() const { return was_interrupted; }

}  // namespace prism::cli
