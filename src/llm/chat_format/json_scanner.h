// Reads JSON while it arrives in pieces: where a value ends, and the name and arguments of tool
// calls.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "llm/chat_format/chat_format.h"
#include "llm/chat_format/message_part.h"

namespace prism::llm {

// Finds the end of one JSON value. It checks brackets and strings only.
class JsonEnd {
 public:
  // Returns how many characters of text belong to the value; is_done() says whether it ended. A
  // number or word ends before the character that follows it.
  size_t feed(std::string_view text);
  bool is_done() const { return done_; }

 private:
  int depth_ = 0;
  bool begun_ = false, scalar_ = false, in_string_ = false, escaped_ = false, done_ = false;
};

struct JsonCallsOptions {
  std::span<const Tool> tools = {};  // that may be called; empty: any name
  bool is_single = false;            // of an array only the first call is read
};

// Reads {"name": ..., "arguments": {...}}, or an array of such objects. "parameters" is another
// name of "arguments". Arguments are passed on as they arrive once the name is known.
class JsonCalls {
 public:
  explicit JsonCalls(const JsonCallsOptions& options = {}) : options_(options) {}
  // Returns how many characters were used: all of them until is_done() or is_broken().
  size_t feed(std::string_view text, MessageParts& parts);
  bool is_done() const { return state_ == State::done; }
  // The text is not a tool call. If has_calls() is false, all of it is in text().
  bool is_broken() const { return state_ == State::broken; }
  bool has_calls() const { return calls_ > 0; }
  const std::string& text() const { return text_; }

 private:
  enum class State {
    start,
    before_object,
    before_key,
    in_key,
    before_value,
    in_value,
    done,
    broken
  };
  void put(char c, MessageParts& parts);
  void end_value(MessageParts& parts);
  void end_object(MessageParts& parts);
  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

  JsonCallsOptions options_;
  State state_ = State::start;
  bool in_array_ = false, escaped_ = false, named_ = false, passes_on_ = false, argued_ = false;
  std::string text_, key_, value_, name_, arguments_;
  JsonEnd end_;
  int calls_ = 0;
};

}  // namespace prism::llm
