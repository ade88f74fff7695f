// Escapes the characters that are not shown as themselves.
#include "base/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace prism {
namespace {

// Unicode's categories Cc, Zl and Zp and the property Bidi_Control.
bool is_hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    const char first = text[at];
    const bool breaks = first == '\n' || first == '\t';
    if (breaks && lines == Lines::escaped)
      result += first == '\n' ? "\\n" : "\\t";
    else if (!next.is_valid)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(first));
    else if (!breaks && is_hidden(next.code))
      result += fmt::format("\\u{:04x}", next.code);
    else
      result += text.substr(at, next.bytes);
    at += next.bytes;
  }
  return result;
}

}  // namespace prism
