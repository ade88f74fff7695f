// Computes and remembers the checksums of model files.
#include "llm/gguf/file_checksum.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/fast_hash.h"

namespace prism::llm {

std::string files_checksum(std::span<const std::string> paths) {
  namespace fs = std::filesystem;
  std::string facts;
  for (const std::string& path : paths) {
    std::error_code ignored;
    facts += fmt::format("{}\n{}\n{}\n", fs::absolute(path).string(), fs::file_size(path, ignored),
                         fs::last_write_time(path, ignored).time_since_epoch().count());
  }
  constexpr const char* kKind = "model-checksums";
  if (const auto known = read_cached(kKind, facts); known && known->size() == 32)
    return {reinterpret_cast<const char*>(known->data()), known->size()};
  const std::string checksum = fast_hash_of_files(paths);
  write_cached(kKind, facts, std::as_bytes(std::span(checksum)));
  return checksum;
}

}  // namespace prism::llm
