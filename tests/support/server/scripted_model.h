// A model for tests of the server that computes nothing: its answer is a function of the digits in
// the prompt, so that a client can check that it got its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/engine/engine_model.h"
#include "server/server.h"

namespace prism::test {

struct Script {
  int64_t parallel = 4;                         // texts that get a token in a step; the others wait
  int64_t tokens = 16;                          // of an answer without max_tokens
  std::function<bool()> before_step = {};       // returns whether the step gives tokens
  std::function<void()> before_embedding = {};  // each text is a piece of the work
};

std::unique_ptr<server::EngineModel> scripted_model(const Script& script);

// The answer of `tokens` tokens to a prompt with these digits, one word for each token.
std::string scripted_answer(std::string_view digits, int64_t tokens);

// Writes a model file that has a tokenizer of letters and digits, but no weights.
std::string write_tokenizer_file(const std::filesystem::path& folder);

// A server whose only model is scripted.
server::ServerOptions scripted_server(const std::string& tokenizer_file, const Script& script);

}  // namespace prism::test
