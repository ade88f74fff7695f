// The formats with <think> for reasoning and a mark in front of each tool call.
#include "base/json.h"
#include "llm/chat_format/json_scanner.h"
#include "llm/chat_format/message_reader.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>", kPython = "<|python_tag|>",
                           kCall = "<tool_call>", kCallEnd = "</tool_call>",
                           kFunction = "<function=", kFunctionEnd = "</function>",
                           kParameter = "<parameter=", kParameterEnd = "</parameter>",
                           kMistral = "[TOOL_CALLS]", kMistralArguments = "[ARGS]",
                           kGranite = "<|tool_call|>", kDeepseek = "<｜tool▁call▁begin｜>",
                           kDeepseekSeparator = "<｜tool▁sep｜>",
                           kDeepseekEnd = "<｜tool▁call▁end｜>",
                           kDeepseekAll = "<｜tool▁calls▁begin｜>",
                           kDeepseekAllEnd = "<｜tool▁calls▁end｜>";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n\r\t");
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(" \n\r\t") - first + 1);
}

class TaggedReader : public MessageParser::Reader {
 public:
  TaggedReader(const ChatFormat& format, MessageParserOptions given)
      : Reader(std::move(given)), format_(format) {
    if (options.is_call)
      begin_call("");
    else if (options.begins_thinking && options.splits_reasoning)
      state_ = State::reasoning;
  }

  bool step() override {
    switch (state_) {
      case State::start:
        return start();
      case State::reasoning:
        return reasoning();
      case State::content:
        return content();
      case State::json_call:
        return json_call();
      case State::named_call:
        return named_call();
      case State::arguments:
        return arguments();
      case State::xml_call:
        return xml_call();
      case State::after_call:
        return after_call();
    }
    return false;
  }

 private:
  enum class State {
    start,
    reasoning,
    content,
    json_call,
    named_call,
    arguments,
    xml_call,
    after_call
  };

  bool start() {
    if (!format_.thinks || !options.splits_reasoning) return go_on(State::content);
    const size_t first = pending.find_first_not_of(" \n\r\t");
    if (first == kNone) return at_end && go_on(State::content);
    const std::string_view text = std::string_view(pending).substr(first);
    if (text.starts_with(kThink)) {
      take(first + kThink.size());
      return go_on(State::reasoning);
    }
    if (!at_end && kThink.starts_with(text)) return false;
    return go_on(State::content);
  }

  bool reasoning() {
    if (!thought_ && !skip_space()) return false;
    thought_ = true;
    std::string_view mark;
    const size_t at = find({kThinkEnd}, &mark);
    emit(Kind::reasoning, take(at != kNone ? at : safe({kThinkEnd})));
    if (at == kNone) return false;
    take(kThinkEnd.size());
    drop_space();
    skips_space_ = true;
    return go_on(State::content);
  }

  bool content() {
    if (skips_space_ && !skip_space()) return false;
    skips_space_ = false;
    if (options.tools.empty()) {
      add_part(parts, Kind::content, take(pending.size()));
      return false;
    }
    if (format_.calls == CallFormat::json && !answered_) {
      const size_t first = pending.find_first_not_of(" \n\r\t");
      if (first == kNone && !at_end) return false;
      if (first != kNone && pending[first] == '{') {
        take(first);
        return begin_call("");
      }
    }
    std::string_view mark;
    size_t at = kNone, length = 0;
    const auto look = [&](std::initializer_list<std::string_view> marks) {
      at = find(marks, &mark);
      length = at != kNone ? at : safe(marks);
    };
    switch (format_.calls) {
      case CallFormat::json:
        look({kPython, kCall});
        break;
      case CallFormat::mistral:
        look({kMistral});
        break;
      case CallFormat::granite:
        look({kGranite, kCall});
        break;
      case CallFormat::deepseek:
        look({kDeepseek, kDeepseekAll, kDeepseekAllEnd});
        break;
      default:
        look({kCall});
    }
    answered_ = answered_ || length > 0;
    emit(Kind::content, take(length));
    if (at == kNone) {
      if (at_end && !called_) show_space();
      return false;
    }
    take(mark.size());
    if (mark == kDeepseekAll || mark == kDeepseekAllEnd) return true;
    return begin_call(mark);
  }

  bool begin_call(std::string_view mark) {
    mark_ = mark;
    JsonCallsOptions reading = {.is_single = options.is_single_call};
    // Without a mark an object may also be the answer.
    if (mark.empty() && !options.is_call) reading.tools = options.tools;
    json_ = JsonCalls(reading);
    if (format_.calls == CallFormat::xml && !options.is_call) return go_on(State::xml_call);
    if (format_.calls == CallFormat::deepseek && !options.is_call) return go_on(State::named_call);
    return go_on(State::json_call);
  }

  // Makes content of text that is no call after all.
  bool give_up(std::string text) {
    add_part(parts, Kind::content, std::string(mark_) + std::move(text));
    answered_ = true;
    return go_on(State::content);
  }

  bool json_call() {
    if (format_.calls == CallFormat::mistral && !json_.has_calls() && json_.text().empty()) {
      if (!skip_space()) return at_end && give_up("");
      if (pending[0] != '[' && pending[0] != '{') return go_on(State::named_call);
    }
    take(json_.feed(pending, parts));
    called_ = called_ || json_.has_calls();
    if (json_.has_calls()) drop_space();
    if (json_.is_done()) return go_on(State::after_call);
    if (!json_.is_broken() && !at_end) return false;
    if (!json_.has_calls()) return !json_.text().empty() && give_up(json_.text());
    return json_.is_broken() && go_on(State::after_call);
  }

  // NAME[ARGS]{...}, or function<sep>NAME ```json {...} ```, or NAME<sep>{...}.
  bool named_call() {
    const size_t at = pending.find('{');
    if (at == kNone) return at_end && !pending.empty() && give_up(take(pending.size()));
    std::string head = pending.substr(0, at);
    if (const size_t fence = head.find("```"); fence != kNone) head.resize(fence);
    if (const size_t end = head.find(kMistralArguments); end != kNone) head.resize(end);
    if (const size_t end = head.find(kDeepseekSeparator); end != kNone) {
      const std::string_view tail =
          trimmed(std::string_view(head).substr(end + kDeepseekSeparator.size()));
      head = tail.empty() ? head.substr(0, end) : std::string(tail);
    }
    const std::string name(trimmed(head));
    if (name.empty()) return give_up(take(at + 1));
    take(at);
    drop_space();
    add_part(parts, Kind::call_begin, name);
    called_ = true;
    end_ = {};
    return go_on(State::arguments);
  }

  bool arguments() {
    add_part(parts, Kind::call_arguments, take(end_.feed(pending)));
    return end_.is_done() && go_on(State::after_call);
  }

  bool xml_call() {
    const size_t end = pending.find(kFunctionEnd);
    if (end == kNone) return at_end && !pending.empty() && give_up(take(pending.size()));
    std::string text = take(end + kFunctionEnd.size());
    const size_t first = text.find(kFunction), close = text.find('>', first);
    if (first == kNone || close == kNone) return give_up(std::move(text));
    const std::string name(
        trimmed(text.substr(first + kFunction.size(), close - first - kFunction.size())));
    Json values = Json::object();
    for (size_t at = text.find(kParameter, close); at != kNone; at = text.find(kParameter, at)) {
      const size_t key_end = text.find('>', at), value_end = text.find(kParameterEnd, at);
      if (key_end == kNone || value_end == kNone || key_end > value_end) break;
      const std::string key(
          trimmed(text.substr(at + kParameter.size(), key_end - at - kParameter.size())));
      std::string value = text.substr(key_end + 1, value_end - key_end - 1);
      if (value.starts_with('\n')) value.erase(0, 1);
      if (value.ends_with('\n')) value.pop_back();
      values[key] = typed(name, key, value);
      at = value_end;
    }
    drop_space();
    add_part(parts, Kind::call_begin, name);
    add_part(parts, Kind::call_arguments, values.dump());
    called_ = true;
    return go_on(State::after_call);
  }

  // A value without a type is JSON where it can be, unless the tool wants a string.
  Json typed(const std::string& tool, const std::string& key, const std::string& text) const {
    try {
      for (const Tool& each : options.tools) {
        if (each.name != tool || each.parameters.empty()) continue;
        const Json schema = Json::parse(each.parameters);
        if (JsonView(schema)["properties"][key]["type"].string_or("") == "string") return text;
      }
      return Json::parse(text);
    } catch (const Error&) {
      return text;
    }
  }

  bool after_call() {
    if (options.is_single_call) return end_message();
    if (!skip_space()) return false;
    for (const std::string_view mark : {kCallEnd, kDeepseekEnd, std::string_view("```")}) {
      if (begins(mark)) return take(mark.size()), true;
      if (may_begin(mark)) return false;
    }
    skips_space_ = true;
    answered_ = false;
    return go_on(State::content);
  }

  bool go_on(State state) {
    state_ = state;
    return true;
  }

  ChatFormat format_;
  State state_ = State::start;
  bool thought_ = false;      // reasoning has begun
  bool skips_space_ = false;  // at the start of the content
  bool answered_ = false;     // content has begun
  bool called_ = false;
  std::string_view mark_;  // of the current call
  JsonCalls json_;
  JsonEnd end_;
};

}  // namespace

std::unique_ptr<MessageParser::Reader> make_tagged_reader(const ChatFormat& format,
                                                          MessageParserOptions options) {
  return std::make_unique<TaggedReader>(format, std::move(options));
}

}  // namespace prism::llm
