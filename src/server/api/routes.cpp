// The list of all paths.
#include "server/api/routes.h"

namespace prism::server {
namespace {

// Two APIs have these paths.
void list_models(const ApiCall& call) {
  return is_anthropic(call.request) ? anthropic_models(call) : openai_models(call);
}
void show_model(const ApiCall& call) {
  return is_anthropic(call.request) ? anthropic_model(call) : openai_model(call);
}

constexpr Route kRoutes[] = {
    {"GET", "/", page_file, Route::open | Route::quick | Route::page},
    {"GET", "/page/*", page_file, Route::open | Route::quick | Route::page},
    {"GET", "/health", native_health, Route::open | Route::quick},
    {"GET", "/models", list_models, Route::quick},
    {"GET", "/models/*", show_model, Route::quick},
    {"POST", "/chat/completions", openai_chat_completions},
    {"POST", "/chat/completions/input_tokens", openai_chat_tokens},
    {"POST", "/completions", openai_completions},
    {"POST", "/embeddings", openai_embeddings},
    {"POST", "/embedding", openai_embeddings},
    {"POST", "/responses", openai_responses},
    {"POST", "/responses/input_tokens", openai_responses_tokens},
    {"POST", "/messages", anthropic_messages},
    {"POST", "/messages/count_tokens", anthropic_count_tokens},
    {"POST", "/api/generate", ollama_generate},
    {"POST", "/api/chat", ollama_chat},
    {"POST", "/api/embed", ollama_embed},
    {"POST", "/api/embeddings", ollama_embeddings},
    {"GET", "/api/tags", ollama_tags},
    {"GET", "/api/ps", ollama_ps},
    {"POST", "/api/show", ollama_show},
    {"GET", "/api/version", ollama_version, Route::quick},
    {"POST", "/completion", native_completion},
    {"POST", "/infill", native_infill},
    {"POST", "/tokenize", native_tokenize},
    {"POST", "/detokenize", native_detokenize},
    {"POST", "/apply-template", native_apply_template},
    {"GET", "/props", native_props},
    {"GET", "/slots", native_slots, Route::quick},
    {"GET", "/metrics", native_metrics, Route::quick},
    {"GET", "/devices", native_devices},
    {"POST", "/search", native_search},
    {"POST", "/rerank", native_rerank},
    {"POST", "/reranking", native_rerank},
};

std::string_view without_version(std::string_view path) {
  constexpr std::string_view kVersion = "/v1";
  const bool has_version = path.starts_with("/v1/") && path != "/v1/";  // which is not the page
  return has_version ? path.substr(kVersion.size()) : path;
}

bool matches(const Route& route, std::string_view path) {
  const std::string_view pattern = route.path;
  if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  return path == pattern;
}

}  // namespace

std::span<const Route> all_routes() { return kRoutes; }

const Route* find_route(const HttpRequest& request, int& status) {
  const std::string_view path = without_version(request.path);
  std::string_view method = request.method;
  if (method == "HEAD") method = "GET";
  status = 404;
  for (const Route& each : kRoutes) {
    if (!matches(each, path)) continue;
    if (method == each.method) return &each;
    status = 405;
  }
  return nullptr;
}

void answer(const Route& route, ApiContext& context, const HttpRequest& request,
            const HttpResponse& response) {
  try {
    Json body;
    if (request.method == "POST") {
      body = Json::parse(request.body);
      if (!body.is_object()) throw ApiError(400, "the body must be a JSON object");
    }
    route.handler({context, request, JsonView(body), response});
  } catch (...) {
    response.send(error_reply(request, ApiError::from(std::current_exception())));
  }
}

bool is_anthropic(const HttpRequest& request) {
  return without_version(request.path).starts_with("/messages") ||
         !request.header("anthropic-version").empty();
}

HttpReply error_reply(const HttpRequest& request, const ApiError& error) {
  if (request.path.starts_with("/api/")) return ollama_error(error);
  if (is_anthropic(request)) return anthropic_error(error);
  return openai_error(error);
}

HttpReply json_reply(const Json& json, int status) {
  return {status, {{"content-type", "application/json"}}, json.dump() + "\n"};
}

void send_json(const HttpResponse& response, const Json& json, int status) {
  response.send(json_reply(json, status));
}

std::string time_text(std::time_t seconds) {
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace prism::server
