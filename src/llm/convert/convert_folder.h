// Converts a Hugging Face folder to a GGUF file, one tensor after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace prism::llm {

struct ConvertOptions {
  std::string type = {};  // a name of quantise_mix(): "F16", "Q8_0" ...; empty: as in the folder
  std::string name = {};  // general.name; empty: the folder's name
  std::function<void(const std::string& tensor, uint64_t written_bytes, uint64_t all_bytes)>
      progress = {};
};

struct ConvertResult {
  std::string architecture;  // general.architecture
  std::string type;          // of most tensors
  uint64_t tensors = 0, bytes = 0;
};

// Holds a few megabytes at a time. The file is checked as if it were loaded, and appears under its
// name only when it is right. Throws kNotFound for missing files, kNotSupported naming what Prism
// or GGUF cannot express (an architecture, a setting, a tokenizer, a tensor that nothing uses),
// kCorruptFile for files that contradict themselves or each other, kIo for a full disk.
ConvertResult convert_folder(const std::string& folder, const std::string& to,
                             const ConvertOptions& options = {});

}  // namespace prism::llm
