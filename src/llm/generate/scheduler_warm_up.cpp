// The scheduler's texts that nobody reads, which make the plans for the first real ones.
#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "llm/generate/scheduler.h"

namespace prism::llm {

// While it exists, texts are kept nowhere, and if a device fails, the model stays: the first real
// text decides what to do.
class Scheduler::Aside {
 public:
  explicit Aside(Scheduler& of) : of_(of) { swap(); }
  ~Aside() { swap(); }
  Aside(const Aside&) = delete;

 private:
  void swap() {
    std::swap(of_.prompt_cache_, prompt_cache_);
    std::swap(of_.speculation_, speculation_);
    std::swap(of_.recover_, recover_);
  }
  Scheduler& of_;
  std::unique_ptr<PromptCache> prompt_cache_;
  std::optional<Speculation> speculation_;
  RecoverCallback recover_;
};

void Scheduler::warm_up(GenerationOptions options, const std::function<bool()>& goes_on) {
  // Prompts of usual length, and for each size of a decoding step enough steps to learn its time.
  constexpr int64_t kPrompt = 128, kSteps = 2 * TextsPerStep::kTrialSteps;
  const Aside aside(*this);
  options.ignore_end = true;
  options.stop.clear();

  // Text i is one of the texts of each size that holds more than i.
  const int64_t slots = model_.slots();
  std::vector<int64_t> tokens(static_cast<size_t>(slots));
  int64_t sizes = 0;
  for (int64_t i = slots; i-- > 0;) {
    if (i + 1 == slots || model_.padded_rows(i + 1) != model_.padded_rows(i + 2)) ++sizes;
    tokens[static_cast<size_t>(i)] = sizes * kSteps;
  }
  const int64_t room = std::min(model_.context(), model_.cache().tokens() / slots) - 1;
  const int64_t length = std::clamp<int64_t>(room - tokens[0], 1, kPrompt);

  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> any(0,
                                             static_cast<int32_t>(model_.config().vocabulary - 1));
  std::vector<int64_t> ids;
  for (const int64_t count : tokens) {
    GenerationRequest request{.prompt = {}, .options = options, .on_text = {}};
    request.options.max_tokens = count;
    for (int64_t i = 0; i < length; ++i) request.prompt.push_back(any(random));
    ids.push_back(add(std::move(request)));
  }
  while (step())
    if (!goes_on()) cancel();
  for (const int64_t id : ids) take(id);

  forget_cache();
}

}  // namespace prism::llm
