// /metrics, in the text format of Prometheus.
#include <algorithm>

#include <fmt/format.h>

#include "server/api/api.h"

namespace prism::server {
namespace {

// Writes a metric as "prism:NAME". Those that llama.cpp's server has too are also written as
// "llamacpp:NAME", or its other name for them, so that its dashboards work.
class MetricsText {
 public:
  void counter(const char* name, const char* help, double value, bool is_shared = false) {
    add(name, "counter", help, value, is_shared);
  }
  void counter(const char* name, const char* llama_name, const char* help, double value) {
    write("prism", name, "counter", help, value);
    write("llamacpp", llama_name, "counter", help, value);
  }
  void gauge(const char* name, const char* help, double value, bool is_shared = false) {
    add(name, "gauge", help, value, is_shared);
  }
  std::string text;

 private:
  void add(const char* name, const char* kind, const char* help, double value, bool is_shared) {
    write("prism", name, kind, help, value);
    if (is_shared) write("llamacpp", name, kind, help, value);
  }
  void write(const char* prefix, const char* name, const char* kind, const char* help,
             double value) {
    text += fmt::format("# HELP {0}:{1} {2}\n# TYPE {0}:{1} {3}\n{0}:{1} {4}\n", prefix, name, help,
                        kind, value);
  }
};

double rate(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

void native_metrics(const ApiCall& call) {
  const EngineState s = call.context.engine.state();
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  const double begun = number(
      static_cast<uint64_t>(std::ranges::count(s.texts, true, &EngineState::Text::is_begun)));
  constexpr bool kShared = true;
  MetricsText metrics;
  metrics.counter("prompt_tokens_total", "Prompt tokens that were computed.",
                  number(s.prompt_tokens - s.reused_tokens), kShared);
  metrics.counter("prompt_tokens_cached_total", "Prompt tokens found in the cache.",
                  number(s.reused_tokens), kShared);
  metrics.counter("prompt_seconds_total", "Seconds spent on prompts.", s.prompt_seconds, kShared);
  metrics.counter("tokens_predicted_total", "Generated tokens.", number(s.generated_tokens),
                  kShared);
  metrics.counter("tokens_predicted_seconds_total", "Seconds spent on generation.",
                  s.generation_seconds, kShared);
  metrics.counter("n_decode_total", "Steps of all models.", number(s.steps), kShared);
  metrics.counter("n_tokens_max", "The largest number of tokens of a text.", number(s.longest_text),
                  kShared);
  metrics.gauge("prompt_tokens_seconds", "Prompt tokens per second.",
                rate(s.prompt_tokens - s.reused_tokens, s.prompt_seconds), kShared);
  metrics.gauge("predicted_tokens_seconds", "Generated tokens per second of a text.",
                rate(s.generated_tokens, s.generation_seconds), kShared);
  metrics.gauge("requests_processing", "Texts and embeddings that are computed.", begun, kShared);
  metrics.gauge("requests_deferred", "Texts and embeddings that wait.",
                number(s.texts.size()) - begun, kShared);
  metrics.gauge("n_busy_slots_per_decode", "Texts in a step, on average.",
                rate(s.text_steps, number(s.steps)), kShared);
  metrics.counter("texts_done_total", "Texts and embeddings that ended.", number(s.texts_done));
  metrics.counter("texts_failed_total", "Texts and embeddings that failed.",
                  number(s.texts_failed));
  metrics.counter("proposals_total", "spec_decode_num_drafts_total",
                  "Proposals of speculation that were checked, of one or more tokens.",
                  number(s.proposals));
  metrics.counter("tokens_proposed_total", "spec_decode_num_draft_tokens_total",
                  "Tokens that speculation proposed and checked.", number(s.proposed_tokens));
  metrics.counter("tokens_accepted_total", "spec_decode_num_accepted_tokens_total",
                  "Proposed tokens that texts accepted.", number(s.accepted_tokens));
  metrics.gauge("models_loaded", "Models in memory.", number(s.models.size()));
  call.response.send({200,
                      {{"content-type", "text/plain; version=0.0.4"},
                       {"Process-Start-Time-Unix", std::to_string(call.context.started)}},
                      std::move(metrics.text)});
}

}  // namespace prism::server
