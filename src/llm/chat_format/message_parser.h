// Splits the text of an assistant into content, reasoning and tool calls while it is generated.
//
//   MessageParser parser(ChatFormat::of(template_text), {.tools = tools});
//   for (const MessagePart& part : parser.feed("<think>The user")) ...
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "llm/chat_format/chat_format.h"
#include "llm/chat_format/message_part.h"

namespace prism::llm {

struct MessageParserOptions {
  std::vector<Tool> tools = {};  // empty: tool calls stay content
  bool begins_thinking = false;  // the prompt ended with <think>
  bool is_call = false;          // the answer was held to a call by forced_call()
  bool splits_reasoning = true;  // false: <think> stays content
  bool is_single_call = false;   // the message ends with its first call
};

// One parser for each text. Text that looks like a call and is none becomes content.
class MessageParser {
 public:
  explicit MessageParser(const ChatFormat& format, MessageParserOptions options = {});
  ~MessageParser();
  MessageParser(MessageParser&&) noexcept;
  MessageParser& operator=(MessageParser&&) noexcept;

  MessageParts feed(std::string_view text);
  MessageParts finish();  // what was held back
  bool is_done() const;   // the message has ended, and further text is ignored

  struct Reader;  // the reader of one format

 private:
  std::unique_ptr<Reader> reader_;
};

}  // namespace prism::llm
