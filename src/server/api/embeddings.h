// Embeddings, which several APIs offer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/api/model_answer.h"

namespace prism::server {

struct EmbedRequest {
  std::vector<std::string> texts;
  std::vector<std::string> fields;  // where each of them is in the request
  int64_t dimensions = 0;  // shorten vectors to this length and normalise them again; 0: do not
  std::optional<bool> truncate = {};  // see llm::EmbedOptions
};

// Reads a text, an array of texts, token ids or arrays of them. Throws JsonError.
EmbedRequest read_inputs(const JsonView& input, const ServedModel& model);

// Makes the reply from the vectors and the number of tokens that were computed, on the engine's
// thread; what it throws is sent as an error.
using EmbeddingReply = std::function<Json(std::vector<std::vector<float>>, int64_t tokens)>;

// Embeds texts between two steps of the engine.
void embed_texts(const ApiCall& call, std::shared_ptr<ServedModel> model, EmbedRequest request,
                 ErrorWriter write_error, EmbeddingReply reply);

}  // namespace prism::server
