// Decodes UTF-16 and Windows-1252.
#include "search/files/text_encoding.h"

#include <cstdint>

#include "base/utf8.h"

namespace prism::search {
namespace {

// The characters 0x80 to 0x9f of Windows-1252; five are not assigned.
constexpr uint16_t kWindows[32] = {0x20ac, 0xfffd, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                   0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0xfffd, 0x017d, 0xfffd,
                                   0xfffd, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                   0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0xfffd, 0x017e, 0x0178};

std::string from_utf16(std::string_view bytes, bool is_big_endian) {
  std::string text;
  const auto unit = [&](size_t at) -> uint32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return is_big_endian ? first << 8 | second : second << 8 | first;
  };
  for (size_t at = 2; at + 1 < bytes.size(); at += 2) {
    uint32_t code = unit(at);
    if (code >= 0xd800 && code < 0xe000) {  // one half of a pair
      const uint32_t low = code < 0xdc00 && at + 3 < bytes.size() ? unit(at + 2) : 0;
      const bool is_pair = low >= 0xdc00 && low < 0xe000;
      code = is_pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
      at += is_pair ? 2 : 0;
    }
    append_utf8(code, &text);
  }
  return text;
}

}  // namespace

std::string as_utf8(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe")) return from_utf16(bytes, false);
  if (bytes.starts_with("\xfe\xff")) return from_utf16(bytes, true);
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = utf8_valid_end(bytes, at);
    text.append(bytes.substr(at, end - at));
    if (end == bytes.size()) break;
    const auto byte = static_cast<unsigned char>(bytes[end]);
    append_utf8(byte < 0xa0 ? kWindows[byte - 0x80] : byte, &text);
    at = end + 1;
  }
  return text;
}

}  // namespace prism::search
