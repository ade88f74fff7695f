// Learns the merges of byte-level BPE from a text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prism::llm {

struct BpeMerges {
  std::vector<std::string> tokens;                  // as bytes; the first 256 are the bytes
  std::vector<std::pair<int32_t, int32_t>> merges;  // ids of tokens, in order of rank
};

// Merges the most frequent pair of neighbours, again and again, until there are `most_tokens`
// tokens or no pair occurs twice. Equally frequent pairs: the one with the smaller ids first. Pairs
// do not cross the words of the pre-tokenizer `pre`; `separators` of the text belong to no word.
// The same text gives the same merges on every machine. Each position is changed once for each
// merge that touches it, so long words cost no more than short ones.
BpeMerges learn_bpe(std::string_view text, int64_t most_tokens, std::string_view pre,
                    std::string_view separator = {});

// The merges that make each character of the text one token, and nothing longer: those of several
// bytes are merged from left to right.
BpeMerges learn_characters(std::string_view text, std::string_view separator = {});

}  // namespace prism::llm
