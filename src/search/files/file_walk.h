// Finds the files of a folder that are worth reading.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prism::search {

struct WalkedFile {
  std::string path;
  uint64_t bytes = 0;
  int64_t modified = 0;  // nanoseconds
};

struct UnreadablePath {
  std::string path, reason;
};

struct Walk {
  std::vector<WalkedFile> files;     // sorted by path
  std::vector<std::string> folders;  // that were entered
  std::vector<UnreadablePath> unreadable;
};

// All plain files in a folder and below, or the file itself. Leaves out what .gitignore, .ignore
// and .git/info/exclude name (also those of the folders around it, up to that of the repository),
// and hidden files and folders; the root is taken as it is. Symbolic links are not followed, so the
// walk stays in the folder and ends. `keep_going` is asked now and then and may be empty. Throws
// kNotFound for a missing root.
Walk walk_files(const std::string& root, const std::function<bool()>& keep_going = {});

// Absolute, without links, "." and "..". A path that does not exist is made absolute.
std::string whole_path(const std::string& path);
// Whether path is `folder` or inside it; both are whole.
bool is_under(std::string_view path, std::string_view folder);

}  // namespace prism::search
