// Asks for a chat through each API, whole and streamed, and reads the answer into one form.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/running_server.h"

namespace prism::test {

using nlohmann::json;

inline const std::vector<std::string> kChatPaths = {"/v1/chat/completions", "/v1/responses",
                                                    "/v1/messages", "/api/chat"};

struct ChatQuestion {
  bool has_tools = false;  // get_weather(city) and get_time()
  bool has_single_calls = false;
  bool thinks = true;     // enable_thinking
  json schema = nullptr;  // of the answer; Anthropic's API has none
};

json chat_request(const std::string& path, const ChatQuestion& question);

struct ChatCall {
  std::string name;
  json arguments;  // as the API has them: Ollama and whole messages of Anthropic an object
  friend bool operator==(const ChatCall&, const ChatCall&) = default;
};

struct ChatAnswer {
  std::string content, reasoning, end;  // end: the API's reason
  std::vector<ChatCall> calls;
};

// Sends the request. A failure of the test if the answer is not of the API's form.
ChatAnswer ask(const RunningServer& server, const std::string& path, json request,
               bool is_streamed);

}  // namespace prism::test
