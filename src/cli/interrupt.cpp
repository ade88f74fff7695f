// The signal handlers.
#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "base/system/output_file.h"

namespace prism::cli {
namespace {

std::atomic<llm::LanguageModel*> interrupted_model = nullptr;
std::atomic<int> noted_signal = 0;
std::atomic<bool> ends_answer_only = false;

// Those that ask a program to end: Ctrl-C, `kill` and service managers, a closed terminal.
#ifdef _WIN32
constexpr int kEndSignals[] = {SIGINT, SIGTERM};
#else
constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP};
#endif

using Handler = void (*)(int);

// Signals that are ignored stay so, as under nohup. Returns the handler before it.
Handler handle(int signal, Handler handler) {
  const Handler before = std::signal(signal, handler);
  if (before == SIG_IGN) std::signal(signal, SIG_IGN);
  return before;
}

// Ends the program by the same signal, so that the caller sees the reason.
void on_end(int signal) {
  remove_temporary_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void on_interrupt(int signal) {
  const bool is_second = noted_signal.exchange(signal) != 0;
  if (is_second && !ends_answer_only) return on_end(signal);
  if (llm::LanguageModel* model = interrupted_model.load()) model->cancel();
}

}  // namespace

InterruptGuard::InterruptGuard() : InterruptGuard(nullptr, false) {}
InterruptGuard::InterruptGuard(llm::LanguageModel& model, bool answer_only)
    : InterruptGuard(&model, answer_only) {}

InterruptGuard::InterruptGuard(llm::LanguageModel* model, bool answer_only) {
  noted_signal = 0;
  ends_answer_only = answer_only;
  interrupted_model = model;
  for (const int each : kEndSignals)
    if (!model || each == SIGINT) handle(each, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  for (const int each : kEndSignals) handle(each, on_end);
  interrupted_model = nullptr;
}

int InterruptGuard::signal() const { return noted_signal; }

void clean_up_on_signals() {
  for (const int each : kEndSignals) handle(each, on_end);
#ifndef _WIN32
  for (const int each : {SIGPIPE, SIGXCPU, SIGXFSZ}) handle(each, on_end);
#endif
}

}  // namespace prism::cli
