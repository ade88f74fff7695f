// Implements UTF-8 decoding, validation and repair.
#include "base/utf8.h"

#include <cstring>

namespace prism {

Utf8Character utf8_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[at + i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const uint32_t length = utf8_length(static_cast<unsigned char>(lead));
  if (length == 1 || text.size() - at < length) return {0xfffd, 1, false};
  uint32_t code = lead & (0xffu >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0xfffd, 1, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (overlong || surrogate || code > 0x10ffff) return {0xfffd, 1, false};
  return {code, length, true};
}

size_t utf8_valid_end(std::string_view text, size_t from) {
  while (from < text.size()) {
    // Skip eight ASCII characters at a time.
    uint64_t word;
    if (text.size() - from >= 8 &&
        (std::memcpy(&word, text.data() + from, 8), (word & 0x8080808080808080u) == 0)) {
      from += 8;
      continue;
    }
    const Utf8Character next = utf8_at(text, from);
    if (!next.is_valid) return from;
    from += next.bytes;
  }
  return from;
}

size_t utf8_open_bytes(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t at = text.size() - back;
    const auto lead = static_cast<unsigned char>(text[at]);
    if ((lead & 0xc0) == 0x80) continue;
    if (utf8_length(lead) <= back) return 0;
    // The bytes must be completable: filled up, they form a valid character.
    for (const char fill : {'\x80', '\xbf'}) {
      std::string whole(text.substr(at));
      whole.resize(utf8_length(lead), fill);
      if (utf8_at(whole, 0).is_valid) return back;
    }
    return 0;
  }
  return 0;
}

void append_utf8(uint32_t code, std::string* to) {
  const auto put = [to](uint32_t byte) { to->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = utf8_valid_end(text, at);
    out.append(text, at, end - at);
    at = end;
    if (at == text.size()) break;
    append_utf8(0xfffd, &out);
    ++at;
  }
  return out;
}

}  // namespace prism
