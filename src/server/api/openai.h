// What the endpoints of OpenAI's API have in common.
#pragma once

#include <string>

#include "server/api/answer.h"

namespace prism::server {

Json openai_error_json(const ApiError& error);
Json openai_usage(const AnswerUsage& usage);
// Tokens and speeds by the names of llama.cpp's server.
Json timings_json(const llm::GenerationStatistics& statistics);
// The members of an event of a stream that reports how much of the prompt has been read:
// prompt_progress and, if the request asks for them, timings.
Json progress_members(const Answer& answer, const llm::PromptProgress& progress);
// The members of an event with a piece of text: timings if the request asks for them, else null.
Json piece_members(const TextEvent& event);
// "stop", "length", "tool_calls".
const char* openai_finish_reason(const Choice& choice);
// For each token its text as it stands in the answer, its bytes and its log-probability, and the
// same for its alternatives. as_probabilities: with probabilities instead.
Json scores_json(const llm::Tokenizer& tokenizer, const std::vector<llm::TokenScore>& scores,
                 bool as_probabilities = false);
inline constexpr int64_t kMaxChoices = 128, kMaxLogprobs = 20;
double finite_logprob(double logprob);  // JSON has no infinities
int64_t unix_seconds();

// The events of a stream with an error format, shared by the completion endpoints.
class OpenAiFormat : public AnswerFormat {
 public:
  // include_usage: end the stream with a chunk that has the usage.
  OpenAiFormat(std::string id_prefix, std::string model, bool include_usage);
  HttpReply error(const ApiError& error) override;
  std::string finish(const Answer& answer) override;
  std::string stream_error(const ApiError& error) override;

 protected:
  // The answer as one object.
  Json completion(const Answer& answer, const char* object, Json choices) const;
  // A chunk with one choice, written as JSON text.
  std::string chunk(const char* object, const std::string& choice,
                    const Json& more = nullptr) const;
  virtual const char* chunk_object() const = 0;
  const std::string id_, model_;
  const int64_t created_;
  const bool include_usage_;
  mutable std::string chunk_head_;  // what all chunks begin with
};

}  // namespace prism::server
