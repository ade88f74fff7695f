// Split GGUF files: NAME-00001-of-00003.gguf and the other parts.
#pragma once

#include <cstdint>
#include <string>

#include "llm/gguf/gguf_header.h"

namespace prism::llm {

struct GgufSplit {
  uint32_t number = 0;  // from 0
  uint32_t count = 1;   // 1: a file that is not split
};

// Reads the split metadata of a part. Throws kCorruptFile if it is invalid or the file name does
// not follow the pattern.
GgufSplit gguf_split(const std::string& path, const GgufHeader& header);

// The path of another part (counted from 0) in the same folder.
std::string gguf_part_path(const std::string& path, uint32_t number, uint32_t count);

// Throw kCorruptFile if a part does not match its name, or tensors are missing.
void check_gguf_part(const std::string& path, const GgufHeader& header, const GgufSplit& wanted);
void check_gguf_split_tensors(const std::string& path, const GgufHeader& joined);

}  // namespace prism::llm
