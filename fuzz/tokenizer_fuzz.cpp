// Fuzzes the tokenizer: decoding the tokens of a text must restore it as far as the vocabulary
// allows.
//
// The first byte selects the kind, the second the pre-type, the third the switches; then lines:
// tokens, an empty line, merges, an empty line, the text.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "llm/tokenizer/pre_tokenizer.h"
#include "prism/error.h"
#include "prism/llm/tokenizer.h"

using namespace prism;
using namespace prism::llm;

namespace {

std::vector<std::string_view> take_lines(std::string_view* rest) {
  std::vector<std::string_view> lines;
  while (!rest->empty()) {
    const size_t end = std::min(rest->find('\n'), rest->size());
    const std::string_view line = rest->substr(0, end);
    rest->remove_prefix(std::min(end + 1, rest->size()));
    if (line.empty()) break;
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> byte_names() {
  std::vector<std::string> names;
  for (int byte = 0; byte < 256; ++byte) names.push_back(fmt::format("<0x{:02X}>", byte));
  return names;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  static const std::vector<std::string_view> types = pre_tokenizer_types();
  std::string_view rest(reinterpret_cast<const char*>(data) + 3, size - 3);
  TokenizerTables tables;
  static const std::vector<std::string> models = {"llama", "gpt2", "gemma4", "bert",
                                                  "t5",    "rwkv", "plamo2"};
  tables.model = models[data[0] % models.size()];
  tables.pre = types[data[1] % types.size()];
  tables.tokens = take_lines(&rest);
  for (size_t i = 0; i < tables.tokens.size(); ++i) {
    tables.scores.push_back(static_cast<float>(data[i % size]) - 100);
    tables.types.push_back(static_cast<TokenType>((data[2] & 1) ? data[i % size] % 7 : 1));
  }
  // PLaMo needs the tokens of all bytes.
  static const std::vector<std::string> bytes = byte_names();
  for (size_t i = 0; tables.model == "plamo2" && i < bytes.size(); ++i) {
    tables.tokens.push_back(bytes[i]);
    tables.scores.push_back(0);
    tables.types.push_back(TokenType::byte);
  }
  tables.break_repeated = data[1] % 4;
  tables.break_spaces = data[1] % 3;
  tables.merges = take_lines(&rest);
  tables.add_space_prefix = (data[2] & 2) != 0;
  tables.add_bos = (data[2] & 4) != 0;
  tables.bos = data[2];
  tables.character_map.assign(data, data + size);
  try {
    const Tokenizer tokenizer(tables);
    const std::vector<int32_t> ids = tokenizer.encode(
        rest, {.add_special = (data[2] & 8) != 0, .parse_special = (data[2] & 16) != 0});
    TextStream stream(tokenizer, {.special = false, .at_start = true});
    std::string streamed;
    for (const int32_t id : ids) {
      const std::string part = stream.put(id);
      if (utf8_valid_end(part, 0) != part.size()) __builtin_trap();
      streamed += part;
    }
    streamed += stream.finish();
    if (tokenizer.model() != "bert" && streamed != repair_utf8(tokenizer.decode(ids)))
      __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
