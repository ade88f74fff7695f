// A model for tests of the server that says given texts, one for each request, and keeps what it
// was asked.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "prism/llm/generation.h"
#include "server/server.h"

namespace prism::test {

// What a SayingModel says and was asked. Thread-safe.
class Sayings {
 public:
  // The next answers, in order. Further ones are the last again.
  void say(std::vector<std::string> texts);
  // Repeats this text in each answer until that is cancelled.
  void say_endlessly(const std::string& text);
  bool is_endless() const;
  // The prompts since say(), as text with control tokens.
  std::vector<std::string> prompts() const;
  // The options of the last request.
  llm::GenerationOptions options() const;

  std::string answer(std::string prompt, const llm::GenerationOptions& options);

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_, prompts_;
  llm::GenerationOptions options_;
  bool is_endless_ = false;
};

// A server with this chat template whose only model, "saying", says them. Pieces of a text have a
// few bytes, so that marks are cut. A text that does not follow the request's grammar fails.
server::ServerOptions saying_server(const std::filesystem::path& folder,
                                    const std::string& chat_template,
                                    std::shared_ptr<Sayings> sayings);

}  // namespace prism::test
