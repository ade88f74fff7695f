// Implements the ASCII fast paths of the GPT-2, Llama 3 and Qwen 2 expressions.
#include "llm/tokenizer/ascii_splitter.h"

#include <array>
#include <cstdint>

#include "llm/tokenizer/pre_tokenizer_types.h"

namespace prism::llm {
namespace {

enum Class : uint8_t { kOther, kLetter, kDigit, kSpace, kNewline, kBeyond };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const int lower = c | 0x20;
    classes[static_cast<size_t>(c)] = c >= 0x80                         ? kBeyond
                                      : lower >= 'a' && lower <= 'z'    ? kLetter
                                      : c >= '0' && c <= '9'            ? kDigit
                                      : c == '\r' || c == '\n'          ? kNewline
                                      : c == ' ' || (c >= 9 && c <= 12) ? kSpace
                                                                        : kOther;
  }
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

// A text with the classes of its characters; the end has class kEnd.
constexpr uint8_t kEnd = 255;
struct Reader {
  std::string_view text;
  uint8_t operator()(size_t at) const {
    return at < text.size() ? kClasses[static_cast<unsigned char>(text[at])] : kEnd;
  }
  // The first position from `at` on with another class.
  size_t skip(size_t at, uint8_t kind) const {
    while ((*this)(at) == kind) ++at;
    return at;
  }
  size_t skip_spaces(size_t at) const {
    while ((*this)(at) == kSpace || (*this)(at) == kNewline) ++at;
    return at;
  }
  // The length of the contraction at an apostrophe: 's, 't, 're, 've, 'm, 'll, 'd; 0: none.
  size_t contraction(size_t at, bool any_case) const {
    const auto letter = [&](size_t i) -> char {
      if (at + i >= text.size()) return 0;
      const char c = text[at + i];
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    const char first = letter(1), second = letter(2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
        (first == 'l' && second == 'l'))
      return 3;
    return 0;
  }
  // A run of spaces leaves its last one to the following word.
  size_t end_of_spaces(size_t at, size_t end) const {
    return end < text.size() && end - at > 1 ? end - 1 : end;
  }
};

class Gpt2Splitter final : public AsciiSplitter {
 public:
  size_t split(std::string_view text, size_t at,
               std::vector<std::string_view>* words) const override {
    const Reader kind{text};
    while (at < text.size()) {
      size_t end = at;
      if (text[at] == '\'' && (end = at + kind.contraction(at, false)) > at) {
        words->push_back(text.substr(at, end - at));
        at = end;
        continue;
      }
      const size_t body = text[at] == ' ' ? at + 1 : at;
      switch (const uint8_t first = kind(body)) {
        case kLetter:
        case kDigit:
        case kOther:
          end = kind.skip(body, first);
          break;
        case kBeyond:
          return at;
        default:
          end = kind.skip_spaces(at);
          if (kind(end) == kBeyond) return at;  // may be another space
          end = kind.end_of_spaces(at, end);
      }
      if (kind(end) == kBeyond) return at;
      words->push_back(text.substr(at, end - at));
      at = end;
    }
    return at;
  }
};

// Llama 3 and Qwen 2, which differ in the number of digits per word.
class Llama3Splitter final : public AsciiSplitter {
 public:
  explicit Llama3Splitter(size_t most_digits) : most_digits_(most_digits) {}
  size_t split(std::string_view text, size_t at,
               std::vector<std::string_view>* words) const override {
    const Reader kind{text};
    while (at < text.size()) {
      const size_t end = end_of_word(kind, at);
      // The character after a word decides where it ends, so stop if that is not ASCII.
      if (end == at || kind(end) == kBeyond) return at;
      words->push_back(text.substr(at, end - at));
      at = end;
    }
    return at;
  }

 private:
  size_t end_of_word(const Reader& kind, size_t at) const {
    const uint8_t first = kind(at), second = kind(at + 1);
    if (first == kBeyond) return at;
    if (kind.text[at] == '\'') {
      // The long s folds to s, so 'ſ is a contraction too.
      if (second == kBeyond) return at;
      if (const size_t bytes = kind.contraction(at, true)) return at + bytes;
    }
    if (first == kLetter) return kind.skip(at, kLetter);
    if (first == kDigit) {
      size_t end = at;
      while (end - at < most_digits_ && kind(end) == kDigit) ++end;
      return end;
    }
    // Any character but a newline may precede the letters of a word.
    if (first != kNewline && second == kLetter) return kind.skip(at + 1, kLetter);
    if (first != kNewline && second == kBeyond) return at;
    const size_t body = kind.text[at] == ' ' ? at + 1 : at;
    if (kind(body) == kOther) {
      const size_t end = kind.skip(body, kOther);
      return kind(end) == kBeyond ? at : kind.skip(end, kNewline);
    }
    const size_t end = kind.skip_spaces(at);
    if (kind(end) == kBeyond) return at;
    // White space with a newline ends after its last newline.
    for (size_t last = end; last > at; --last)
      if (kind(last - 1) == kNewline) return last;
    return kind.end_of_spaces(at, end);
  }
  size_t most_digits_;
};

}  // namespace

const AsciiSplitter* ascii_splitter(std::string_view expression) {
  static const Gpt2Splitter gpt2;
  static const Llama3Splitter llama3(3), qwen2(1);
  if (expression == kGpt2Pattern) return &gpt2;
  if (expression == kLlama3Pattern) return &llama3;
  if (expression == kQwen2Pattern) return &qwen2;
  return nullptr;
}

}  // namespace prism::llm
