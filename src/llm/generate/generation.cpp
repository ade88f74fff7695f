// Names of stop reasons and the rates of generation statistics.
#include "prism/llm/generation.h"

#include <algorithm>

namespace prism::llm {

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::end_token:
      return "end_token";
    case StopReason::stop_text:
      return "stop_text";
    case StopReason::max_tokens:
      return "max_tokens";
    case StopReason::context:
      return "context";
    case StopReason::cancelled:
      return "cancelled";
    case StopReason::failed:
      return "failed";
  }
  return "";
}

double GenerationStatistics::prompt_rate() const {
  return prompt_seconds > 0 ? static_cast<double>(prompt_tokens - reused_tokens) / prompt_seconds
                            : 0;
}

double GenerationStatistics::generation_rate() const {
  return generation_seconds > 0
             ? static_cast<double>(std::max<int64_t>(generated_tokens - 1, 0)) / generation_seconds
             : 0;
}

}  // namespace prism::llm
