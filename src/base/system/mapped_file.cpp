// Maps files on POSIX systems and on Windows.
#include "base/system/mapped_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "prism/error.h"

#ifdef _WIN32
#define NOMINMAX
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace prism {

#ifdef _WIN32

MappedFile map_file(const std::string& path, MapAccess access) {
  const auto fail = [&](const char* doing) {
    const DWORD code = GetLastError();
    const bool missing = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    throw Error(missing ? ErrorCode::kNotFound : ErrorCode::kIo,
                path + ": cannot be " + doing + " (Windows error " + std::to_string(code) + ")");
  };
  const HANDLE file = CreateFileA(path.c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) fail("opened");
  LARGE_INTEGER size;
  if (!GetFileSizeEx(file, &size)) {
    CloseHandle(file);
    fail("measured");
  }
  if (size.QuadPart == 0) {
    CloseHandle(file);
    return {};
  }
  const bool writes = access == MapAccess::write;
  const HANDLE mapping =
      CreateFileMappingA(file, nullptr, writes ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0, nullptr);
  CloseHandle(file);
  if (!mapping) fail("mapped");
  void* const data = MapViewOfFile(mapping, writes ? FILE_MAP_COPY : FILE_MAP_READ, 0, 0, 0);
  CloseHandle(mapping);
  if (!data) fail("mapped");
  return {std::shared_ptr<std::byte>(static_cast<std::byte*>(data),
                                     [](std::byte* view) { UnmapViewOfFile(view); }),
          static_cast<uint64_t>(size.QuadPart)};
}

const char* mapped_file_at(const void*) noexcept { return nullptr; }

#else

namespace {

// One place of the list of mappings, which signal handlers read without a lock. Places are reused
// and never freed. begin is 0 in a free place; it is written last and cleared first.
struct Mapping {
  std::atomic<uintptr_t> begin = 0, end = 0;
  std::string path;
  std::atomic<Mapping*> next = nullptr;
};

std::atomic<Mapping*> first_mapping = nullptr;

std::mutex& mappings_mutex() {
  static auto& mutex = *new std::mutex;  // mappings may end after static destructors
  return mutex;
}

Mapping* add_mapping(const void* data, uint64_t bytes, const std::string& path) {
  const std::scoped_lock lock(mappings_mutex());
  Mapping* place = first_mapping;
  while (place && place->begin != 0) place = place->next;
  if (!place) {
    place = new Mapping;
    place->next = first_mapping.load();
    first_mapping = place;
  }
  place->path = path;
  place->end = reinterpret_cast<uintptr_t>(data) + bytes;
  place->begin = reinterpret_cast<uintptr_t>(data);
  return place;
}

struct Unmap {
  Mapping* place;  // null: not in the list
  uint64_t bytes;
  void operator()(std::byte* data) const noexcept {
    if (place) place->begin = 0;
    munmap(data, bytes);
  }
};

}  // namespace

MappedFile map_file(const std::string& path, MapAccess access) {
  const auto fail = [&](const char* doing) {
    const int reason = errno;
    throw Error(reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                path + ": cannot be " + doing + ": " + std::strerror(reason));
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not block
  if (file < 0) fail("opened");
  struct stat facts;
  if (fstat(file, &facts) != 0) {
    close(file);
    fail("measured");
  }
  if (!S_ISREG(facts.st_mode)) {
    close(file);
    throw Error(ErrorCode::kIo, path + ": is not a plain file");
  }
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  if (bytes == 0) {
    close(file);
    return {};
  }
  const bool writes = access == MapAccess::write;
  void* const data = mmap(nullptr, bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ,
                          writes ? MAP_PRIVATE : MAP_SHARED, file, 0);
  close(file);
  if (data == MAP_FAILED) fail("mapped");
  MappedFile result{{static_cast<std::byte*>(data), Unmap{nullptr, bytes}}, bytes};
  std::get_deleter<Unmap>(result.data)->place = add_mapping(data, bytes, path);
  return result;
}

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Mapping* each = first_mapping; each; each = each->next) {
    const uintptr_t begin = each->begin;
    if (begin != 0 && begin <= at && at < each->end) return each->path.c_str();
  }
  return nullptr;
}

#endif

}  // namespace prism
