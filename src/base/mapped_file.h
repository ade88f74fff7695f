// Files seen as memory: nothing is read before it is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace prism {

struct MappedFile {
  // Private to the process: writing changes no file. Unmapped when the last holder lets go.
  std::shared_ptr<std::byte> data;
  uint64_t bytes = 0;
};

// Throws kNotFound or kIo with the system's reason. An empty file has no data.
MappedFile map_file(const std::string& path);

}  // namespace prism
