// Signals: Ctrl-C ends an answer, or clears a line that is being typed; a signal that ends the
// program leaves no temporary files.
#pragma once

#include "prism/llm/language_model.h"

namespace prism::cli {

// While it lives, an interrupt ends the text that the model generates. A second interrupt before
// the text has ended ends the program, unless answer_only is set.
class InterruptGuard {
 public:
  explicit InterruptGuard(llm::LanguageModel& model, bool answer_only = false);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool interrupted() const;

 private:
  void (*before_)(int);
};

// From now on the signals that end the program first remove its temporary files.
void clean_up_on_signals();

}  // namespace prism::cli
