// What the endpoints of Ollama's API have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/api/api.h"

namespace prism::server {

// The model that a request names. Ollama adds a tag to names; "latest" is the usual one.
std::shared_ptr<ServedModel> ollama_model(const ApiCall& call, bool for_embeddings = false);

// How long a model stays loaded after a request (keep_alive): seconds, or a text such as "5m" or
// "1h30m". 0 unloads it at the end of the request; a negative time keeps it for ever.
class KeepAlive {
 public:
  explicit KeepAlive(const ApiCall& call);  // reads the field
  bool is_zero() const { return seconds_ == 0.0; }
  // Call it before the engine gets the request.
  void apply(Engine& engine, const ServedModel& model) const;

 private:
  std::optional<double> seconds_;  // none: the request has no such field
};

}  // namespace prism::server
