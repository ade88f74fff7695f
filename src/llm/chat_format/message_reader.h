// What the readers of all formats share: text that is held back, reasoning, the end of content.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "llm/chat_format/message_parser.h"

namespace prism::llm {

struct MessageParser::Reader {
  explicit Reader(MessageParserOptions given) : options(std::move(given)) {}
  virtual ~Reader() = default;
  // Uses what it can of `pending`. Returns false when it needs more text.
  virtual bool step() = 0;

  MessageParserOptions options;
  std::string pending;  // text not used yet
  MessageParts parts;
  bool at_end = false;   // no more text follows
  bool is_done = false;  // the message has ended

 protected:
  using Kind = MessagePart::Kind;
  static constexpr size_t kNone = std::string::npos;

  // Emits text, but holds white space back until more text of the same kind follows.
  void emit(Kind kind, std::string_view text);
  void drop_space() { space_.clear(); }
  void show_space();  // at the end of the content
  // Drops white space at the start of pending. Returns false if nothing is left.
  bool skip_space();
  std::string take(size_t count);  // from the start of pending
  // Ends a message that may have a single call.
  bool end_message();
  // The start of the first mark in pending, or kNone.
  size_t find(std::initializer_list<std::string_view> marks, std::string_view* which) const;
  // The length of the text in front that cannot be the start of a mark; everything at the end.
  size_t safe(std::initializer_list<std::string_view> marks) const;
  // Whether pending begins with the mark, or might once more text arrives.
  bool begins(std::string_view mark) const { return pending.starts_with(mark); }
  bool may_begin(std::string_view mark) const {
    return !at_end && mark.starts_with(std::string_view(pending).substr(0, mark.size()));
  }

 private:
  std::string space_;
  Kind space_kind_ = Kind::content;
};

std::unique_ptr<MessageParser::Reader> make_tagged_reader(const ChatFormat& format,
                                                          MessageParserOptions options);
std::unique_ptr<MessageParser::Reader> make_harmony_reader(MessageParserOptions options);

}  // namespace prism::llm
