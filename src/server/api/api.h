// The handlers of the wire APIs. Each translates a request to an AnswerRequest, and events to the
// API's own format.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/api/api_error.h"
#include "server/engine/engine.h"
#include "server/http/http_server.h"

namespace prism::server {

// The models by name, in the order in which they were given.
class ModelList {
 public:
  void add(std::shared_ptr<ServedModel> model) { models_.push_back(std::move(model)); }
  const std::vector<std::shared_ptr<ServedModel>>& all() const { return models_; }
  // The model of the path /models/NAME. Throws ApiError 404 for any other name.
  const ServedModel& of_path(const std::string& path) const;
  // An empty name means the first model. If there is only one model, every name means it, because
  // clients often send the name of another service's model. Throws ApiError 404 otherwise.
  std::shared_ptr<ServedModel> find(const std::string& name) const;

  // A model that makes embeddings in place of models that were trained to chat; not in all().
  void set_embedder(std::shared_ptr<ServedModel> model) { embedder_ = std::move(model); }
  // The same as find(), but the embedder has its name too.
  std::shared_ptr<ServedModel> find_or_embedder(const std::string& name) const;
  // The model of that name, or the first one that ranks texts. Throws ApiError 400 if it cannot.
  std::shared_ptr<ServedModel> reranker(const std::string& name) const;
  // The model that makes the embeddings that were asked of this one.
  std::shared_ptr<ServedModel> embedder_for(const std::shared_ptr<ServedModel>& model) const;

 private:
  std::vector<std::shared_ptr<ServedModel>> models_;
  std::shared_ptr<ServedModel> embedder_;
};

struct ApiContext {
  Engine& engine;
  const ModelList& models;
  EngineOptions limits = {};  // parallel, max_queue and so on, for /props
  int64_t started = 0;        // seconds since 1970
  bool is_verbose = false;    // chat completions also hold their prompt
  bool is_loading = false;    // the first model; for the server's thread
  std::function<Json(const JsonView& request)> search_files = {};  // empty: no files
};

struct ApiCall {
  ApiContext& context;
  const HttpRequest& request;
  JsonView body;  // null for GET
  const HttpResponse& response;
};

using ApiHandler = void (*)(const ApiCall& call);

void page_file(const ApiCall& call);  // the chat page and its files

HttpReply json_reply(const Json& json, int status = 200);
void send_json(const HttpResponse& response, const Json& json, int status = 200);
std::string time_text(std::time_t seconds);  // since 1970: "2026-01-31T12:00:00Z"

// --- OpenAI
HttpReply openai_error(const ApiError& error);
void openai_models(const ApiCall& call);
void openai_model(const ApiCall& call);  // /models/NAME
void openai_chat_completions(const ApiCall& call);
void openai_completions(const ApiCall& call);
void openai_embeddings(const ApiCall& call);
void openai_responses(const ApiCall& call);
// Count the tokens of a request without answering it.
void openai_chat_tokens(const ApiCall& call);
void openai_responses_tokens(const ApiCall& call);

// --- Anthropic
HttpReply anthropic_error(const ApiError& error);
void anthropic_models(const ApiCall& call);
void anthropic_model(const ApiCall& call);  // /models/NAME
void anthropic_messages(const ApiCall& call);
void anthropic_count_tokens(const ApiCall& call);

// --- Ollama
HttpReply ollama_error(const ApiError& error);
void ollama_generate(const ApiCall& call);
void ollama_chat(const ApiCall& call);
void ollama_embed(const ApiCall& call);
void ollama_embeddings(const ApiCall& call);  // the older form, with one text
void ollama_tags(const ApiCall& call);
void ollama_ps(const ApiCall& call);
void ollama_show(const ApiCall& call);
void ollama_version(const ApiCall& call);

// --- native
void native_health(const ApiCall& call);
void native_completion(const ApiCall& call);
void native_infill(const ApiCall& call);
void native_tokenize(const ApiCall& call);
void native_detokenize(const ApiCall& call);
void native_apply_template(const ApiCall& call);
void native_props(const ApiCall& call);
void native_slots(const ApiCall& call);    // without prompts
void native_metrics(const ApiCall& call);  // for Prometheus
void native_devices(const ApiCall& call);
void native_search(const ApiCall& call);  // passages of files
void native_rerank(const ApiCall& call);  // documents by their relevance to a query

}  // namespace prism::server
