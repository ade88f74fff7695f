// Connects HTTP, the APIs and the engine.
#include "server/server.h"

#include <atomic>
#include <optional>
#include <utility>

#include "prism/error.h"
#include "server/api/openai.h"
#include "server/api/request_fields.h"
#include "server/api/routes.h"
#include "server/searched_files.h"
#include "server/work_queue.h"

namespace prism::server {
namespace {

constexpr size_t kWorkThreads = 2;
// For the errors to requests that waited for a model that cannot be loaded.
constexpr double kLastSeconds = 1;

}  // namespace

struct Server::Core {
  explicit Core(ServerOptions given)
      : options(std::move(given)), access(options.access), models(model_list(options)) {
    HttpOptions http_options = options.http;
    http_options.address = options.access.address;
    http_options.on_grace_over = [this] {
      is_ending = true;
      engine->end_all();
    };
    http_options.error = [](const HttpRequest& request, int status, const std::string& message) {
      return error_reply(request, ApiError(status, message));
    };
    http_options.check = [this](const HttpRequest& request) { return check(request); };
    http.emplace(std::move(http_options), [this](HttpRequest request, HttpResponse response) {
      handle(std::move(request), std::move(response));
    });
    engine.emplace(engine_options());
    if (!options.file_index.empty()) files.emplace(options.file_index, options.load_embedder);
    context.emplace(ApiContext{*engine, models, engine_options(), unix_seconds(),
                               options.is_verbose, options.loads_first});
    if (files)
      context->search_files = [this](const JsonView& request) { return files->answer(request); };
    work.emplace(kWorkThreads);
  }

  ~Core() {
    is_ending = true;
    http->close();
    work.reset();
    http->close();  // tells the handlers that began last that their clients have gone
  }

  static ModelList model_list(const ServerOptions& options) {
    if (!options.chat_template.empty()) llm::ChatTemplate{options.chat_template};  // or throws
    ModelList list;
    for (const ServerOptions::NamedModel& each : options.models)
      list.add(std::make_shared<ServedModel>(
          each.name, each.path,
          ServedModel::Options{options.chat_template, options.template_variables,
                               options.generation}));
    if (!options.embedder.path.empty())
      list.set_embedder(
          std::make_shared<ServedModel>(options.embedder.name, options.embedder.path));
    return list;
  }

  // The context and the adapters that the user chose are those of the chat models.
  llm::LoadOptions load_options(const ServedModel& model) const {
    llm::LoadOptions load = options.load;
    if (model.makes_embeddings()) load.fit.context.reset(), load.adapters.clear();
    return load;
  }

  // Throws ServerEnded soon after the end of the server.
  std::unique_ptr<EngineModel> load(const ServedModel& model) {
    llm::LoadOptions load = load_options(model);
    load.progress = [this, tell = std::move(load.progress)](const llm::LoadProgress& at) {
      return (!tell || tell(at)) && !is_ending;
    };
    try {
      std::unique_ptr<EngineModel> loaded = load_engine_model(model.path(), load, options.parallel);
      // Later loads have a client that waits for its own text only.
      if (std::exchange(is_starting, false) && !model.makes_embeddings())
        loaded->warm_up(default_options(model), [this] { return !is_ending; });
      return loaded;
    } catch (const std::exception&) {
      if (is_ending) throw ServerEnded();
      throw;
    }
  }

  EngineOptions engine_options() {
    EngineOptions result;
    result.load = options.load_model ? options.load_model
                                     : [this](const ServedModel& model) { return load(model); };
    if (!options.load_model)
      result.has_room = [this](const ServedModel& model) {
        return has_room_for(model.file(), load_options(model));
      };
    result.on_load = options.on_load;
    result.post = [this](std::function<void()> event) { http->post(std::move(event)); };
    result.parallel = options.parallel;
    result.max_queue = options.max_queue;
    result.timeout_seconds = options.timeout_seconds;
    result.idle_unload_seconds = options.idle_unload_seconds;
    return result;
  }

  void run(const std::function<void()>& on_ready) {
    const auto ready = [this, on_ready] {
      context->is_loading = false;
      if (on_ready) on_ready();
    };
    if (options.loads_first)
      engine->load(models.all().front(), [this, ready](std::exception_ptr failure) {
        if (!failure) return ready();
        if (is_ending) return;  // which has ended the load
        load_failure = std::move(failure);
        http->stop(kLastSeconds);
      });
    else
      ready();
    http->run();
    is_ending = true;
    if (load_failure) std::rethrow_exception(load_failure);
  }

  // Null with a status if the request has no route here.
  const Route* route_of(const HttpRequest& request, int& status) const {
    const Route* route = find_route(request, status);
    if (!route || options.has_page || !(route->flags & Route::page)) return route;
    status = 404;
    return nullptr;
  }

  // Decides on a request by its header.
  HttpCheck check(const HttpRequest& request) const {
    HttpCheck result;
    result.add = access.cors_headers(request);
    int status = 0;
    const Route* route = route_of(request, status);
    if (const auto refusal = access.check(request, route && (route->flags & Route::open))) {
      result.reply = error_reply(request, ApiError(refusal->status, refusal->message));
    } else if (request.method == "OPTIONS") {
      result.reply = HttpReply{.status = 200};
    } else if (!route) {
      result.reply = error_reply(
          request, status == 405
                       ? ApiError(405, request.path + " has no method " + request.method)
                       : ApiError(404, "there is no " + request.path + " on this server"));
    } else if (const std::string_view encoding = request.header("content-encoding");
               !encoding.empty() && encoding != "identity") {
      result.reply =
          error_reply(request, ApiError(415, "the body is encoded as \"" + std::string(encoding) +
                                                 "\"; send it as plain JSON, not compressed"));
    }
    return result;
  }

  void handle(HttpRequest request, HttpResponse response) {
    int status = 0;
    const Route* route = route_of(request, status);
    if (!route) return;
    if (route->flags & Route::quick) return answer(*route, *context, request, response);
    work->add([this, route, request = std::move(request), response = std::move(response)] {
      answer(*route, *context, request, response);
    });
  }

  ServerOptions options;
  std::atomic<bool> is_ending = false;     // loads are given up
  bool is_starting = options.loads_first;  // the first model was not loaded yet; for the engine
  std::exception_ptr load_failure;         // of the first model
  Access access;
  ModelList models;
  // Destroyed in reverse: all users of the HTTP server end before it.
  std::optional<HttpServer> http;
  std::optional<Engine> engine;
  std::optional<SearchedFiles> files;
  std::optional<ApiContext> context;
  std::optional<WorkQueue> work;
};

Server::Server(ServerOptions options) : core_(std::make_unique<Core>(std::move(options))) {}
Server::~Server() = default;
std::string Server::url() const { return core_->http->url(); }
uint16_t Server::port() const { return core_->http->port(); }
void Server::run(std::function<void()> on_ready) { core_->run(on_ready); }
void Server::stop(double grace_seconds) { core_->http->stop(grace_seconds); }
EngineState Server::state() const { return core_->engine->state(); }
size_t Server::connections() const { return core_->http->connections(); }

}  // namespace prism::server
