// Chooses the reader of a format and implements what readers share.
#include "llm/chat_format/message_parser.h"

#include <algorithm>
#include <utility>

#include "llm/chat_format/message_reader.h"

namespace prism::llm {
namespace {

constexpr std::string_view kSpace = " \n\r\t";

}  // namespace

void MessageParser::Reader::emit(Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (kind != space_kind_) space_.clear();
  space_kind_ = kind;
  const size_t last = text.find_last_not_of(kSpace);
  if (last == text.npos) {
    space_ += text;
    return;
  }
  add_part(parts, kind, std::exchange(space_, ""));
  add_part(parts, kind, text.substr(0, last + 1));
  space_ = text.substr(last + 1);
}

void MessageParser::Reader::show_space() {
  if (space_kind_ == Kind::content) add_part(parts, Kind::content, space_);
  space_.clear();
}

bool MessageParser::Reader::skip_space() {
  pending.erase(0, std::min(pending.find_first_not_of(kSpace), pending.size()));
  return !pending.empty();
}

std::string MessageParser::Reader::take(size_t count) {
  std::string front = pending.substr(0, count);
  pending.erase(0, count);
  return front;
}

bool MessageParser::Reader::end_message() {
  is_done = true;
  pending.clear();
  return false;
}

size_t MessageParser::Reader::find(std::initializer_list<std::string_view> marks,
                                   std::string_view* which) const {
  size_t first = kNone;
  for (const std::string_view mark : marks) {
    const size_t at = pending.find(mark);
    if (at < first) first = at, *which = mark;
  }
  return first;
}

size_t MessageParser::Reader::safe(std::initializer_list<std::string_view> marks) const {
  if (at_end) return pending.size();
  size_t held = 0;
  for (const std::string_view mark : marks)
    for (size_t n = std::min(mark.size() - 1, pending.size()); n > held; --n)
      if (pending.ends_with(mark.substr(0, n))) held = n;
  return pending.size() - held;
}

MessageParser::MessageParser(const ChatFormat& format, MessageParserOptions options)
    : reader_(format.calls == CallFormat::harmony && !options.is_call
                  ? make_harmony_reader(std::move(options))
                  : make_tagged_reader(format, std::move(options))) {}
MessageParser::~MessageParser() = default;
MessageParser::MessageParser(MessageParser&&) noexcept = default;
MessageParser& MessageParser::operator=(MessageParser&&) noexcept = default;

MessageParts MessageParser::feed(std::string_view text) {
  if (reader_->is_done) return {};
  reader_->pending += text;
  while (reader_->step()) {
  }
  return std::exchange(reader_->parts, {});
}

bool MessageParser::is_done() const { return reader_->is_done; }

MessageParts MessageParser::finish() {
  reader_->at_end = true;
  return feed("");
}

}  // namespace prism::llm
