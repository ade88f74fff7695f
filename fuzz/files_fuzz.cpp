// Fuzzes what reads a person's files: ignore patterns, the test for text, the splitter and the
// words. Each word of a text is in a passage, and passages keep to the limit.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "search/files/file_content.h"
#include "search/files/ignore_rules.h"
#include "search/files/splitter.h"
#include "search/files/words.h"

using namespace prism::search;

namespace {

constexpr size_t kMostSplit = 8192, kMostPattern = 256;

// The text up to the first zero byte is an ignore file, the rest a path.
void match(std::string_view input) {
  input = input.substr(0, kMostPattern);
  const size_t end = std::min(input.find('\0'), input.size());
  const IgnoreRules rules(input.substr(0, end));
  const std::string_view path = input.substr(std::min(end + 1, input.size()));
  if (rules.empty() && rules.verdict(path, true) != IgnoreRules::Verdict::none) std::abort();
  rules.verdict(path, false);
}

void split(const std::string& text, Structure structure, uint64_t limit) {
  size_t end = 0;
  for (const Passage& each :
       split_text(text, structure, {.max_tokens = limit, .count_tokens = {}})) {
    const auto begin = static_cast<size_t>(each.text.data() - text.data());
    if (begin > end && text.find_first_not_of(" \t\n\r\f\v", end) < begin) std::abort();
    if (each.first_line > each.last_line || each.text.empty()) std::abort();
    if (estimated_tokens(each.text) + estimated_tokens(each.context) + 2 > limit) std::abort();
    end = begin + each.text.size();
  }
  if (text.find_first_not_of(" \t\n\r\f\v", end) != text.npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  match(input);
  const FileContent content = content_of(std::string(input.substr(0, kMostSplit)));
  if (content.unsearchable) return 0;
  const uint64_t limit = 32 + size % 300;
  for (const auto structure :
       {Structure::braces, Structure::indents, Structure::markdown, Structure::prose})
    split(content.text, structure, limit);
  each_word(content.text, [&](const std::string&, size_t begin, size_t end) {
    if (begin >= end || end > content.text.size()) std::abort();
  });
  return 0;
}
