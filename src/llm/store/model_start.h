// The check of the first bytes of a model file while it is downloaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace prism::llm {

inline constexpr const char* kModelMagic = "GGUF";  // the first bytes of every model file

// Returns the end of the last tensor that the header lists, or nothing if the header extends beyond
// the bytes given. Throws kCorruptFile naming `name` if no model begins so, or if the file of
// file_bytes cannot hold its tensors.
std::optional<uint64_t> model_bytes_by_start(const std::string& name,
                                             std::span<const std::byte> start,
                                             std::optional<uint64_t> file_bytes);

}  // namespace prism::llm
