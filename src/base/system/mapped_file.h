// Files seen as memory: nothing is read before it is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace prism {

enum class MapAccess {
  read,   // writing ends the process; pages are the system's own, which devices may read in place
  write,  // private to the process: writing changes no file
};

struct MappedFile {
  std::shared_ptr<std::byte> data;  // unmapped when the last holder lets go
  uint64_t bytes = 0;
};

// Throws kNotFound or kIo with the system's reason. An empty file has no data.
MappedFile map_file(const std::string& path, MapAccess access);

}  // namespace prism
