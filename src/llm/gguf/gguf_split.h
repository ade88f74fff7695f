// Split GGUF files: NAME-00001-of-00003.gguf and its fellows.
#pragma once

#include <cstdint>
#include <string>

#include "llm/gguf/gguf_header.h"

namespace prism::llm {

struct GgufSplit {
  uint32_t number = 0;  // from 0
  uint32_t count = 1;   // 1: a file that is not split
};

// What the metadata of a part says; throws kCorruptFile where that cannot be, or where the file's
// name does not follow the rule.
GgufSplit gguf_split(const std::string& path, const GgufHeader& header);

// The path of another part (from 0) beside one part's.
std::string gguf_part_path(const std::string& path, uint32_t number, uint32_t count);

// Throw kCorruptFile where a part is not the one its name says, or tensors are missing.
void check_gguf_part(const std::string& path, const GgufHeader& header, const GgufSplit& wanted);
void check_gguf_split_tensors(const std::string& path, const GgufHeader& joined);

}  // namespace prism::llm
