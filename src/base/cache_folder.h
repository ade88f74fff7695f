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

// Returns a 128-bit hash as 32 hexadecimal digits, stable across machines and runs.
std::string hash_text(std::string_view text);

// PRISM_CACHE_DIR, else XDG_CACHE_HOME/prism, else ~/.cache/prism (macOS: ~/Library/Caches/prism,
// Windows: %LOCALAPPDATA%\prism\cache), else prism-cache-UID in the system's temporary folder. Not
// created until something is written.
//
// Compiled kernels and models in it are trusted, so it must belong to this user: a folder that is a
// symbolic link, belongs to someone else (root is trusted) or is writable by everyone is not used.
// The result is then empty, and a warning says so once.
std::filesystem::path cache_folder();
// The same, but creates the folder. Throws kIo with the folder and the reason if it cannot be
// trusted.
std::filesystem::path required_cache_folder();
// Returns a folder of that name in it, or an empty path if there is no cache folder. Not created.
std::filesystem::path cache_subfolder(std::string_view name);

// Makes a folder for files that only this user may write. Throws kIo if that fails, or if other
// users could write them; `what` names the folder's use, `advice` says what to do.
void make_private_folder(const std::filesystem::path& folder, const std::string& what,
                         const std::string& advice);

// A blob under (kind, key). Each file carries a checksum: a corrupt, truncated or foreign file
// counts as absent.
std::optional<std::vector<std::byte>> read_cached(std::string_view kind, std::string_view key);
// Writes to a temporary name and renames. A failure (full disk, no permission) is not an error:
// returns false.
bool write_cached(std::string_view kind, std::string_view key, std::span<const std::byte> content);

// The bytes of a cache file before its content, and the content of a whole file; absent for a file
// that is damaged or belongs to another key.
std::string cache_file_head(std::string_view key, std::span<const std::byte> content);
std::optional<std::span<const std::byte>> cached_content(std::string_view key,
                                                         std::span<const std::byte> file);

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
