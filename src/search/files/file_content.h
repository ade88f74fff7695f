// What a file holds: code or prose, or nothing that can be searched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "prism/file_search.h"

namespace prism::search {

// How the structure of a text shows.
enum class Structure : uint8_t { braces, indents, markdown, prose };

struct ContentType {
  ContentKind kind;
  Structure structure;
};

// By the ending of the name; a file of an unknown kind is prose.
ContentType content_type(std::string_view path);

enum class Unsearchable : uint8_t { binary, large, minified };

// Larger files are logs and data. The largest hand-written sources have about 1 MB.
inline constexpr uint64_t kMaximumFileBytes = 4 << 20;

struct FileContent {
  std::string text;  // valid UTF-8, without carriage returns at the ends of lines
  std::optional<Unsearchable> unsearchable;
};

// Throws kNotFound and kIo.
FileContent read_content(const std::string& path);
// The same of bytes in memory.
FileContent content_of(std::string bytes);

}  // namespace prism::search
