// Answers that a model computes beside the texts, such as embeddings.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "server/api/api.h"

namespace prism::server {

using ErrorWriter = HttpReply (*)(const ApiError& error);

// One piece of the work, as Engine::Work: returns the reply after the last one.
using ModelAnswer = std::function<std::optional<HttpReply>(EngineModel& model)>;

// Sends the reply, or the error that stopped the work. The work ends if the client goes away.
// Throws what Engine::run_with throws.
void answer_with(const ApiCall& call, std::shared_ptr<ServedModel> model, ModelAnswer work,
                 ErrorWriter write_error);

}  // namespace prism::server
