// Checksums of model files, which identify their weights.
#pragma once

#include <span>
#include <string>

#include "prism/llm/gguf.h"

namespace prism::llm {

// 32 hexadecimal digits. Hashing reads all of the files, so the result is remembered in the cache
// folder for files of the same paths, sizes and times. Throws kNotFound and kIo.
std::string files_checksum(std::span<const std::string> paths);
inline std::string file_checksum(const GgufFile& file) { return files_checksum(file.parts()); }

}  // namespace prism::llm
