// Embeddings, which several APIs offer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/api/model_answer.h"

namespace prism::server {

// Reads a text, an array of texts, token ids or arrays of them. Throws JsonError.
std::vector<std::string> read_inputs(const JsonView& input, const ServedModel& model);

struct EmbedRequest {
  std::vector<std::string> texts;
  int64_t dimensions = 0;  // shorten vectors to this length and normalise them again; 0: do not
};

// Makes the reply from the vectors and the number of tokens that were computed, on the engine's
// thread; what it throws is sent as an error.
using EmbeddingReply = std::function<Json(std::vector<std::vector<float>>, int64_t tokens)>;

// Embeds texts between two steps of the engine.
void embed_texts(const ApiCall& call, std::shared_ptr<ServedModel> model, EmbedRequest request,
                 ErrorWriter write_error, EmbeddingReply reply);

}  // namespace prism::server
