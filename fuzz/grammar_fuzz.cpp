// Fuzzes the grammar parser and matcher: token masks and acceptance must agree.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "llm/grammar/vocabulary_trie.h"
#include "prism/error.h"
#include "prism/llm/grammar.h"

using namespace prism;
using namespace prism::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto trie = std::make_shared<const VocabularyTrie>(std::vector<std::string>{
      "<end>", "a", "b", "ab", "\"", "\xC3", "\xA9", "\xC3\xA9", "{", "}", "0", "12", " ", "\n"});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    GrammarMatcher matcher(Grammar::parse(text), trie, {0});
    for (int step = 0; step < 8; ++step) {
      const uint64_t mask = matcher.allowed()[0];
      if ((mask & 1) != (matcher.may_end() ? 1u : 0u)) __builtin_trap();
      int32_t next = 0;
      for (int32_t token = 1; token < 14; ++token)
        if (mask >> token & 1) next = token;
      if (next == 0) break;
      if (!matcher.accept(next)) __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}
