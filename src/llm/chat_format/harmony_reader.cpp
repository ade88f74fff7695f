// The format of gpt-oss: messages with a channel each, for reasoning, answers and tool calls.
#include "llm/chat_format/message_reader.h"

namespace prism::llm {
namespace {

constexpr std::string_view kStart = "<|start|>", kMessage = "<|message|>", kEnd = "<|end|>",
                           kCall = "<|call|>", kReturn = "<|return|>", kTo = "to=functions.";

class HarmonyReader : public MessageParser::Reader {
 public:
  using Reader::Reader;

  bool step() override {
    if (pending.empty()) {
      if (at_end) show_space();
      return false;
    }
    return in_body_ ? body() : header();
  }

 private:
  bool header() {
    std::string_view mark;
    const size_t at = find({kMessage}, &mark);
    if (at == kNone) {
      // Text without a header is an answer as it stands.
      const bool is_header = pending.find("<|") != kNone || pending.find(kTo) != kNone;
      if (!at_end && (is_header || pending.size() < 64)) return false;
      if (is_header) return pending.clear(), false;
      kind_ = Kind::content;
      return in_body_ = true;
    }
    const std::string head = take(at);
    take(kMessage.size());
    const size_t to = head.find(kTo);
    if (to != kNone && !options.tools.empty()) {
      const size_t first = to + kTo.size(), end = head.find_first_of(" <", first);
      drop_space();
      add_part(parts, Kind::call_begin, head.substr(first, end - first));
      kind_ = Kind::call_arguments;
    } else {
      const bool thinks = head.find("analysis") != kNone && options.splits_reasoning;
      kind_ = thinks ? Kind::reasoning : Kind::content;
    }
    return in_body_ = true;
  }

  bool body() {
    std::string_view mark;
    const size_t at = find({kEnd, kCall, kReturn, kStart}, &mark);
    const size_t length = at != kNone ? at : safe({kEnd, kCall, kReturn, kStart});
    const std::string text = take(length);
    if (kind_ == Kind::call_arguments)
      add_part(parts, kind_, text);
    else
      emit(kind_, text);
    if (at == kNone) return false;
    if (mark != kStart) take(mark.size());
    in_body_ = false;
    if (kind_ == Kind::call_arguments && options.is_single_call) return end_message();
    return true;
  }

  bool in_body_ = false;
  Kind kind_ = Kind::content;
};

}  // namespace

std::unique_ptr<MessageParser::Reader> make_harmony_reader(MessageParserOptions options) {
  return std::make_unique<HarmonyReader>(std::move(options));
}

}  // namespace prism::llm
