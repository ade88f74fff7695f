// Parsing of the text headers of tensor files.
#include "tensor/io/header_text.h"

#include <limits>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

namespace {

void append_utf8(std::string& text, uint32_t code) {
  const auto tail = [&](uint32_t shift) {
    text += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

void HeaderText::fail(const std::string& what) const {
  throw Error(ErrorCode::kCorruptFile,
              fmt::format("{}: the header is broken at byte {}: {}", path_, at_, what));
}

void HeaderText::skip_spaces() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

char HeaderText::next_char() {
  if (at_ == text_.size()) fail("it ends too early");
  return text_[at_++];
}

bool HeaderText::take(char wanted) {
  skip_spaces();
  if (at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

void HeaderText::expect(char wanted) {
  if (!take(wanted)) fail(fmt::format("'{}' is missing", wanted));
}

void HeaderText::expect_end() {
  skip_spaces();
  if (at_ != text_.size()) fail("text after its end");
}

uint32_t HeaderText::hex_digits() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = next_char();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail("\\u without four hexadecimal digits");
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

void HeaderText::append_escaped(std::string& text) {
  constexpr std::string_view kCodes = "bfnrt", kMeanings = "\b\f\n\r\t";
  const char c = next_char();
  if (c == '"' || c == '\'' || c == '\\' || c == '/') {
    text += c;
  } else if (const size_t found = kCodes.find(c); found != kCodes.npos) {
    text += kMeanings[found];
  } else if (c == 'u') {
    uint32_t code = hex_digits();
    if (code >= 0xd800 && code < 0xdc00) {  // the first half of a surrogate pair
      const bool pair = next_char() == '\\' && next_char() == 'u';
      const uint32_t low = pair ? hex_digits() : 0;
      if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(text, code);
  } else {
    fail("an unknown escape in a string");
  }
}

std::string HeaderText::quoted() {
  skip_spaces();
  const char quote = next_char();
  if (quote != '"' && quote != '\'') fail("a string is missing");
  std::string text;
  for (char c = next_char(); c != quote; c = next_char()) {
    if (c == '\\')
      append_escaped(text);
    else
      text += c;
  }
  return text;
}

int64_t HeaderText::number() {
  skip_spaces();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t value = 0;
  const size_t first = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const int64_t digit = text_[at_] - '0';
    if (value > (kMost - digit) / 10) fail("a number above 2^63");
    value = value * 10 + digit;
    ++at_;
  }
  if (at_ == first) fail("a number is missing");
  return value;
}

bool HeaderText::truth() {
  skip_spaces();
  const std::string_view rest = text_.substr(at_);
  const bool yes = rest.starts_with("True");
  if (!yes && !rest.starts_with("False")) fail("True or False is missing");
  at_ += yes ? 4 : 5;
  return yes;
}

Shape HeaderText::lengths(char open, char close) {
  // Tensors count elements and bytes in int64_t, so lengths must leave room for 16 bytes each.
  int64_t room = std::numeric_limits<int64_t>::max() / 16;
  Shape shape;
  expect(open);
  while (!take(close)) {
    const int64_t length = number();
    if (shape.rank() == kMaxRank) fail(fmt::format("a shape of more than {} axes", kMaxRank));
    if (length > room) fail("a shape with more elements than any file holds");
    if (length > 0) room /= length;
    shape.append(length);
    if (!take(',')) {
      expect(close);
      break;
    }
  }
  return shape;
}

void fail_loading(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, fmt::format("loading {}: {}", path, what));
}

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

}  // namespace prism
