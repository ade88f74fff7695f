// Memory-mapped files: pages are read on first access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace prism {

enum class MapAccess {
  read,   // writing faults; pages stay shared with the page cache, and devices may read them in
          // place
  write,  // private to the process: writes do not change the file
};

struct MappedFile {
  std::shared_ptr<std::byte> data;  // unmapped when the last owner releases it
  uint64_t bytes = 0;
};

// Throws kNotFound or kIo with the system's reason. An empty file has null data.
MappedFile map_file(const std::string& path, MapAccess access);

// The path of the mapped file whose pages contain the address, or null. Safe in a signal handler of
// the thread that read the address: when a file shrinks, the pages behind its new end raise SIGBUS.
const char* mapped_file_at(const void* address) noexcept;

// What follows the path in a message about such an address.
inline constexpr std::string_view kMappedFileIsGone =
    ": the file became shorter or its disk failed while it was in use; restore the file and start "
    "again";

}  // namespace prism
