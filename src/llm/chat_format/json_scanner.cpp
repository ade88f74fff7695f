// Implements the incremental readers of JSON values and tool calls.
#include "llm/chat_format/json_scanner.h"

#include <algorithm>

#include "base/json.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The text of a JSON string, or nothing if it is not one.
std::string decoded(const std::string& text) {
  try {
    return JsonView(Json::parse(text)).string();
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

void add_part(MessageParts& parts, MessagePart::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool joins = kind != MessagePart::Kind::call_begin;
  if (joins && !parts.empty() && parts.back().kind == kind)
    parts.back().text += text;
  else
    parts.push_back({kind, std::string(text)});
}

size_t JsonEnd::feed(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (done_) return i;
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        in_string_ = false;
      done_ = !in_string_ && depth_ == 0;
      continue;
    }
    if (scalar_ && (is_space(c) || c == ',' || c == '}' || c == ']')) {
      done_ = true;
      return i;
    }
    if (c == '"') {
      in_string_ = begun_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_, begun_ = true;
    } else if (c == '}' || c == ']') {
      done_ = --depth_ <= 0;
    } else if (!is_space(c) && !begun_) {
      scalar_ = begun_ = true;
    }
  }
  return text.size();
}

size_t JsonCalls::feed(std::string_view text, MessageParts& parts) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_done() || is_broken()) return i;
    text_ += text[i];
    put(text[i], parts);
  }
  return text.size();
}

void JsonCalls::put(char c, MessageParts& parts) {
  switch (state_) {
    case State::start:
      if (is_space(c)) return;
      if (c == '[') {
        in_array_ = true;
        state_ = State::before_object;
      } else {
        state_ = c == '{' ? State::before_key : State::broken;
      }
      return;
    case State::before_object:
      if (is_space(c) || c == ',') return;
      state_ = c == '{' ? State::before_key : c == ']' ? State::done : State::broken;
      return;
    case State::before_key:
      if (is_space(c) || c == ',') return;
      if (c == '}') return end_object(parts);
      key_.clear();
      state_ = c == '"' ? State::in_key : State::broken;
      return;
    case State::in_key:
      if (c == '"')
        state_ = State::before_value;
      else
        key_ += c;
      return;
    case State::before_value:
      if (is_space(c) || c == ':') return;
      value_.clear();
      end_ = {};
      // A string of JSON is decoded as a whole.
      passes_on_ = is_arguments() && named_ && c != '"';
      state_ = State::in_value;
      [[fallthrough]];
    case State::in_value: {
      const bool used = end_.feed(std::string_view(&c, 1)) == 1;
      if (used && passes_on_)
        add_part(parts, MessagePart::Kind::call_arguments, std::string_view(&c, 1));
      if (used) value_ += c;
      if (!end_.is_done()) return;
      end_value(parts);
      if (!used && !is_broken()) put(c, parts);  // it ended a number or word
      return;
    }
    case State::done:
    case State::broken:
      return;
  }
}

void JsonCalls::end_value(MessageParts& parts) {
  state_ = State::before_key;
  // An object that begins otherwise is an answer in JSON, not a call.
  if (!named_ && !is_arguments() && key_ != "name" && key_ != "type" && key_ != "id") {
    state_ = State::broken;
  } else if (key_ == "name" && !named_) {
    name_ = decoded(value_);
    const bool is_known =
        options_.tools.empty() ||
        std::ranges::find(options_.tools, name_, &Tool::name) != options_.tools.end();
    if (name_.empty() || !is_known) {
      state_ = State::broken;
      return;
    }
    named_ = true;
    ++calls_;
    add_part(parts, MessagePart::Kind::call_begin, name_);
    add_part(parts, MessagePart::Kind::call_arguments, arguments_);
    argued_ = !arguments_.empty();
  } else if (is_arguments()) {
    if (passes_on_) {
      argued_ = true;
      return;
    }
    const std::string arguments = value_.starts_with('"') ? decoded(value_) : value_;
    if (named_) {
      add_part(parts, MessagePart::Kind::call_arguments, arguments);
      argued_ = !arguments.empty();
    } else {
      arguments_ = arguments;
    }
  }
}

void JsonCalls::end_object(MessageParts& parts) {
  if (!named_) {
    state_ = State::broken;
    return;
  }
  if (!argued_) add_part(parts, MessagePart::Kind::call_arguments, "{}");
  named_ = argued_ = false;
  arguments_.clear();
  state_ = in_array_ && !options_.is_single ? State::before_object : State::done;
}

}  // namespace prism::llm
