// Signals: Ctrl-C ends an answer, or clears a line that is being typed; a signal that ends the
// program leaves no temporary files.
#pragma once

#include "prism/llm/language_model.h"

namespace prism::cli {

// While it lives, Ctrl-C ends the text that the model generates. Without a model it is noted by
// interrupted(), as are SIGTERM and SIGHUP, so that the caller can save its work. A second signal
// ends the program, unless answer_only is set.
class InterruptGuard {
 public:
  InterruptGuard();  // without a model
  explicit InterruptGuard(llm::LanguageModel& model, bool answer_only = false);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool interrupted() const { return signal() != 0; }
  int signal() const;                            // 0: none came
  int status() const { return 128 + signal(); }  // what shells report for a program that it ended

 private:
  InterruptGuard(llm::LanguageModel* model, bool answer_only);
};

// From now on the signals that end the program first remove its temporary files.
void clean_up_on_signals();

}  // namespace prism::cli
