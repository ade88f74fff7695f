// A Model Context Protocol server over lines of JSON-RPC: tools for agents.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/json.h"

namespace prism::cli {

struct McpTool {
  std::string name, title, description;
  Json arguments;  // a JSON schema of an object
  // Returns the result: its text for the model, and the same as an object. What it throws becomes
  // a result with isError, which the model can read and mend.
  struct Result {
    std::string text;
    Json structured;
  };
  std::function<Result(const JsonView& arguments)> call;
};

struct McpServer {
  std::string name, version, instructions;
  std::vector<McpTool> tools;

  // Answers requests until the input ends. Requests are answered in their order, one at a time; one
  // that is cancelled before its turn is not answered.
  void run(std::istream& input, std::ostream& output) const;
  // The answer to one message; null for a notification.
  Json answer(const Json& message) const;
};

}  // namespace prism::cli
