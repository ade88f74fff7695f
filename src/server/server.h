// The server: HTTP in front, the engine behind, and the APIs between them.
//
//   Server server({.models = {{"stories", "stories.gguf"}}});
//   server.run([&] { std::cout << server.url() << "\n"; });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "prism/file_search.h"
#include "prism/llm/language_model.h"
#include "server/access/access.h"
#include "server/engine/engine.h"
#include "server/http/http_server.h"

namespace prism::server {

struct ServerOptions {
  struct NamedModel {
    std::string name, path;
  };
  std::vector<NamedModel> models;
  NamedModel embedder = {};  // makes embeddings where a chat model is asked for them; no path: none
  std::string chat_template = {};         // replaces those of the files; empty: theirs
  std::string template_variables = {};    // JSON, see ServedModel::Options
  ServedModel::Defaults generation = {};  // of requests that give no options
  llm::LoadOptions load = {};             // slots are set by `parallel`
  HttpOptions http = {};                  // its address is also that of `access`
  AccessOptions access = {};
  int64_t parallel = 0;  // texts at once; 0: as many as memory allows
  int64_t max_queue = 256;
  double timeout_seconds = 0;
  double idle_unload_seconds = 0;
  std::string file_index = {};  // of files, for /search; empty: none
  // Loads the model that embeds questions; may return null.
  std::function<std::shared_ptr<const search::PassageEmbedder>()> load_embedder = {};
  bool has_page = true;     // the chat page at /
  bool is_verbose = false;  // chat completions also hold their prompt
  bool loads_first = true;  // load the first model without a request
  // Called on the engine's thread when a model was loaded, or has moved to other devices.
  std::function<void(const ServedModel&, const EngineModel::Facts&)> on_load = {};
  // Replaces loading, for tests.
  std::function<std::unique_ptr<EngineModel>(const ServedModel&)> load_model = {};
};

class Server {
 public:
  // Listens. Throws what HttpServer and Access throw.
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string url() const;
  uint16_t port() const;
  // Serves until it is stopped. With loads_first the first model is loaded meanwhile, and requests
  // wait for it. If that fails, the server ends and this throws what LanguageModel::load throws.
  // on_ready: called on this thread when the model is there; without loads_first at once.
  void run(std::function<void()> on_ready = {});
  void stop(double grace_seconds);
  EngineState state() const;
  size_t connections() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace prism::server
