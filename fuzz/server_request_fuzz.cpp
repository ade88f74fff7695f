// Fuzzes the requests of every API: the first byte chooses the route, the others are the body. The
// engine has no room, so a request that is right is answered with status 429.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "llm/architectures/architecture.h"
#include "memory_connection.h"
#include "prism/error.h"
#include "runtime/driver.h"
#include "server/api/routes.h"
#include "support/server/scripted_model.h"

using namespace prism;
using namespace prism::server;

// Devices and architectures are not under test.
void prism::llm::check_architecture(const GgufFile&) {}

const std::vector<BackendReport>& prism::discover_backends() {
  static const std::vector<BackendReport> none;
  return none;
}

namespace {

void expect(bool is_right) {
  if (!is_right) __builtin_trap();
}

struct Api {
  Api() : folder("/tmp/prism-request-fuzz-XXXXXX") {
    expect(mkdtemp(folder.data()) != nullptr);
    models.add(std::make_shared<ServedModel>("letters", test::write_tokenizer_file(folder)));
    EngineOptions options;
    options.load = [](const ServedModel&) -> std::unique_ptr<EngineModel> {
      throw Error(ErrorCode::kOutOfMemory, "no model is loaded here");
    };
    options.post = [](std::function<void()> event) { event(); };
    options.parallel = options.max_queue = 0;
    engine = std::make_unique<Engine>(options);
    context = std::make_unique<ApiContext>(ApiContext{*engine, models, options, 0});
  }
  std::string folder;
  ModelList models;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ApiContext> context;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Api api;
  if (size < 1) return 0;
  const Route& route = all_routes()[data[0] % all_routes().size()];
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string path = route.path;
  if (path.ends_with('*')) path.back() = 'x';
  MemoryConnection client({}, [&](const HttpRequest& request, const HttpResponse& response) {
    answer(route, *api.context, request, response);
  });
  client.send(std::string(route.method) + " " + path +
              " HTTP/1.1\r\nhost: localhost\r\ncontent-length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  // Commands run in order, each released before the next, and so do events: after this one the
  // engine's thread soon holds nothing of the request. Most requests never reach the engine: they
  // are answered, and nobody holds their body. An answer may take several turns.
  for (int turn = 0; turn < 1000 && (client.output().empty() || client.held_bytes() > 0); ++turn) {
    static std::atomic<bool> is_over;  // outlives the engine's call of notify_one
    is_over = false;
    api.engine->load(api.models.all().front(), [](const std::exception_ptr&) {
      is_over = true;
      is_over.notify_one();
    });
    is_over.wait(false);
    client.drain();
  }
  // Never an internal error: a mistake of the client is named as such.
  expect(client.output().starts_with("HTTP/1.1 "));
  const std::string_view status = std::string_view(client.output()).substr(9, 3);
  if (status[0] == '2' || status[0] == '4' || status == "501" || status == "503") return 0;
  std::fprintf(stderr, "%s %s: %s\n", route.method, path.c_str(), client.output().c_str());
  __builtin_trap();
}
