// Clients of any server with OpenAI's API: streams chat answers and prints tokens per second.
//
//   server_load_bench PORT [CLIENTS] [TOKENS] [REQUESTS_EACH] [MODEL]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "support/server/load_clients.h"

namespace prism {
namespace {

constexpr const char* kQuestions[] = {
    "Why is the sky blue? Explain it to a child in a few sentences.",
    "Write a short story about a fox that learns to swim.",
    "List the planets of the solar system with one fact about each.",
    "How does a bicycle stay upright while somebody rides it?",
    "Describe how bread is made, from the field to the table.",
    "What should I pack for a week of walking in the mountains?"};

test::LoadRequest request(size_t client, int64_t number, int64_t tokens, const std::string& model) {
  const size_t which = (client + static_cast<size_t>(number)) % std::size(kQuestions);
  Json message = {{"role", "user"}, {"content", kQuestions[which]}};
  Json messages = Json::array();
  messages.push_back(std::move(message));
  Json body = {{"model", model},
               {"max_tokens", tokens},
               {"temperature", 0},
               {"ignore_eos", true},
               {"stream", true}};
  body["messages"] = std::move(messages);
  body["stream_options"]["include_usage"] = true;
  return {.path = "/v1/chat/completions", .body = body.dump()};
}

int64_t tokens_of(const test::ClientReply& reply) {
  for (const std::string& each : test::event_data(reply.body)) {
    if (each == "[DONE]") break;
    const Json event = Json::parse(each);
    if (const JsonView usage = JsonView(event)["usage"])
      return usage["completion_tokens"].integer_or(0);
  }
  return 0;
}

}  // namespace
}  // namespace prism

int main(int argc, char** argv) {
  using namespace prism;
  if (argc < 2) {
    fmt::print("usage: server_load_bench PORT [CLIENTS] [TOKENS] [REQUESTS_EACH] [MODEL]\n");
    return 2;
  }
  const auto number = [&](int index, int64_t otherwise) {
    return argc > index ? std::atoll(argv[index]) : otherwise;
  };
  const size_t clients = static_cast<size_t>(number(2, 4));
  const int64_t tokens = number(3, 128), each = number(4, 1);
  const std::string model = argc > 5 ? argv[5] : "smollm2";
  int64_t total = 0, failed = 0;
  std::vector<double> first;
  const auto begun = std::chrono::steady_clock::now();
  test::run_load({.port = static_cast<uint16_t>(number(1, 0)),
                  .clients = clients,
                  .next =
                      [&](size_t client, int64_t at) {
                        return at < each ? request(client, at, tokens, model) : test::LoadRequest{};
                      },
                  .on_answer =
                      [&](const test::LoadAnswer& answer) {
                        failed += answer.reply.status != 200;
                        total += tokens_of(answer.reply);
                        first.push_back(answer.first_seconds);
                      }});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::ranges::sort(first);
  fmt::print("{} clients, {} tokens in {:.2f} s: {:.1f} tokens/s; first byte {:.0f} ms (median)",
             clients, total, seconds, static_cast<double>(total) / seconds,
             first[first.size() / 2] * 1000);
  if (failed > 0) fmt::print("; {} requests FAILED", failed);
  fmt::print("\n");
  return failed > 0;
}
