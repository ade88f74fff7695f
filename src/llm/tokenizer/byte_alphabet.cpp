// GPT-2's alphabet.
#include "llm/tokenizer/byte_alphabet.h"

#include "base/utf8.h"

namespace prism::llm {

ByteAlphabet::ByteAlphabet() {
  bytes.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    const uint32_t code = printable ? byte : next++;
    append_utf8(code, &characters[byte]);
    bytes[code] = static_cast<int16_t>(byte);
  }
}

std::string ByteAlphabet::spell(std::string_view text) const {
  std::string spelled;
  for (const char c : text) spelled += characters[static_cast<unsigned char>(c)];
  return spelled;
}

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

}  // namespace prism::llm
