// Reads Python's literals of text and of bytes, and writes them as GGUF has them.
#include "llm/convert/hf_rwkv_vocabulary.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/printable.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

void append_utf8(uint32_t code, std::string& to) {
  if (code < 0x80) {
    to += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  to += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) to += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

template <class T>
std::optional<T> number_of(std::string_view digits, int base) {
  T value{};
  const auto [end, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// The bytes of 'text', "text", b'bytes' or b"bytes"; nothing if it is none of them.
std::optional<std::string> literal(std::string_view from) {
  const bool is_bytes = from.starts_with('b');
  if (is_bytes) from.remove_prefix(1);
  if (from.size() < 2 || from.front() != from.back() || (from[0] != '\'' && from[0] != '"'))
    return std::nullopt;
  from = from.substr(1, from.size() - 2);
  std::string result;
  for (size_t at = 0; at < from.size(); ++at) {
    if (from[at] != '\\') {
      result += from[at];
      continue;
    }
    if (++at == from.size()) return std::nullopt;
    const char kind = from[at];
    const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits > 0) {
      const auto code = number_of<uint32_t>(from.substr(std::min(at + 1, from.size()), digits), 16);
      if (!code || at + digits >= from.size() || *code > 0x10ffff) return std::nullopt;
      if (is_bytes)
        result += static_cast<char>(*code);
      else
        append_utf8(*code, result);
      at += digits;
      continue;
    }
    constexpr std::string_view kNamed = "tnr\\'\"", kMeant = "\t\n\r\\'\"";
    const size_t found = kNamed.find(kind);
    if (found == kNamed.npos) return std::nullopt;
    result += kMeant[found];
  }
  return result;
}

// As Python shows bytes, without the quotes.
std::string shown(std::string_view bytes) {
  const bool has_both = bytes.find('\'') != bytes.npos && bytes.find('"') != bytes.npos;
  std::string text;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\\' || (c == '\'' && has_both))
      text += {'\\', c};
    else if (c == '\t' || c == '\n' || c == '\r')
      text += {'\\', c == '\t' ? 't' : c == '\n' ? 'n' : 'r'};
    else if (code < 0x20 || code >= 0x7f)
      text += fmt::format("\\x{:02x}", code);
    else
      text += c;
  }
  return text;
}

}  // namespace

void write_rwkv_vocabulary(std::string_view lines, HfVocabulary& vocabulary, GgufWriter& to) {
  vocabulary.add("<s>", 0);
  vocabulary.set_type(0, TokenType::control);
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    std::string_view line = lines.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t first = line.find(' '), last = line.rfind(' ');
    const auto id = number_of<int64_t>(line.substr(0, std::min(first, line.size())), 10);
    const auto bytes = first < last ? literal(line.substr(first + 1, last - first - 1))
                                    : std::optional<std::string>();
    const auto size = number_of<size_t>(line.substr(last == line.npos ? 0 : last + 1), 10);
    if (!id || !bytes || !size || bytes->size() != *size)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: the line \"{}\" is not a number, a token in Python's quotes and "
                              "its count of bytes",
                              kRwkvVocabulary, printable(line)));
    vocabulary.add(shown(*bytes), *id);
  }
  to.set("tokenizer.ggml.model", "rwkv");
  to.set("tokenizer.ggml.bos_token_id", uint32_t{0});
  to.set("tokenizer.ggml.eos_token_id", uint32_t{0});
  // Turns of chats end with an empty line.
  if (const auto empty_line = vocabulary.find("\\n\\n"))
    to.set("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(*empty_line));
}

}  // namespace prism::llm
