// Times texts through the scheduler, as a server runs them.
#include "llm/generate/texts_speed.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "llm/generate/scheduler.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

// All texts from their prompts to `tokens` tokens each. The prompts are new in each run, so that no
// cache holds them.
double seconds_of_run(Scheduler& scheduler, int64_t vocabulary, int64_t texts, int64_t tokens,
                      std::mt19937& random) {
  std::vector<int64_t> ids;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < texts; ++i) {
    GenerationRequest request;
    for (int64_t t = 0; t < kTextsPrompt; ++t)
      request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary)));
    request.options.max_tokens = tokens;
    request.options.ignore_end = true;
    request.options.sampler.temperature = 0;
    ids.push_back(scheduler.add(std::move(request)));
  }
  while (scheduler.step()) {
  }
  for (const int64_t id : ids)
    if (const Generation made = scheduler.take(id); made.failure)
      std::rethrow_exception(made.failure);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double texts_seconds(Model& model, const Tokenizer& tokenizer, int64_t texts, int64_t tokens,
                     int repeats) {
  const int64_t needed = kTextsPrompt + tokens + 1;
  if (texts > model.slots() || needed > model.context())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("bench: {} texts of {} tokens do not fit into {} slots of {}", texts,
                            needed, model.slots(), model.context()));
  // One scheduler for all runs: it keeps its recordings.
  Scheduler scheduler(model, tokenizer);
  const int64_t vocabulary = model.config().vocabulary;
  std::mt19937 random(1);
  double one = 1e300, all = 1e300;
  for (int i = -1; i < repeats; ++i) {  // the first run makes the plans
    const double with_one = seconds_of_run(scheduler, vocabulary, texts, 1, random);
    const double with_all = seconds_of_run(scheduler, vocabulary, texts, tokens + 1, random);
    if (i < 0) continue;
    one = std::min(one, with_one);
    all = std::min(all, with_all);
  }
  return std::max(all - one, 1e-9);
}

}  // namespace prism::llm
