// Signals: Ctrl-C ends an answer, or clears a line that is being typed; a signal that ends the
// program leaves no temporary files.
#pragma once

#include "prism/llm/language_model.h"

namespace prism::cli {

// While it lives, an interrupt ends the text that the model generates, or is noted by
// interrupted(). A second interrupt before that has ended ends the program, unless answer_only is
// set.
class InterruptGuard {
 public:
  InterruptGuard();  // without a model
  explicit InterruptGuard(llm::LanguageModel& model, bool answer_only = false);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool interrupted() const;

 private:
  InterruptGuard(llm::LanguageModel* model, bool answer_only);
  void (*before_)(int);
};

// From now on the signals that end the program first remove its temporary files.
void clean_up_on_signals();

}  // namespace prism::cli
