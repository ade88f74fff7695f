// The cache folder: small files kept between runs, safe against crashes and other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

// 128-bit hash as 32 hexadecimal digits; stable across machines and runs.
std::string hash_text(std::string_view text);

// PRISM_CACHE_DIR, else XDG_CACHE_HOME/prism, else ~/.cache/prism (macOS: ~/Library/Caches/prism,
// Windows: %LOCALAPPDATA%\prism\cache). Not created until something is written.
std::filesystem::path cache_folder();

// A blob under (kind, key). Each file carries a checksum: a corrupt, truncated or foreign file
// counts as absent.
std::optional<std::vector<std::byte>> read_cached(std::string_view kind, std::string_view key);
// Written to a temporary name and renamed; a failure (full disk, no permission) is not an error:
// returns false.
bool write_cached(std::string_view kind, std::string_view key, std::span<const std::byte> content);

// PRISM_DUMP: the folder that receives kernel sources for inspection; empty when unset.
std::filesystem::path dump_folder();
// Writes a file into the dump folder. Returns its path; empty when there is no dump folder or the
// write fails.
std::filesystem::path dump_file(std::string_view name, std::span<const std::byte> content);
std::filesystem::path dump_file(std::string_view name, std::string_view text);
// The contents of PRISM_DUMP/replace/<name>, which replace a generated text; empty when there is no
// such file.
std::optional<std::string> replaced_text(std::string_view name);

}  // namespace prism
