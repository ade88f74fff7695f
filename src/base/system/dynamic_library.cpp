// dlopen on Unix, LoadLibrary on Windows.
#include "base/system/dynamic_library.h"

#include <utility>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace prism {
namespace {

void* open_library(const char* name, std::string* reason) {
#ifdef _WIN32
  void* handle = reinterpret_cast<void*>(LoadLibraryA(name));
  if (!handle && reason) *reason += std::string(name) + ": cannot be opened; ";
#else
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle && reason) {
    const char* said = dlerror();
    *reason += std::string(said ? said : name) + "; ";
  }
#endif
  return handle;
}

}  // namespace

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      name_(std::move(other.name_)),
      keep_(other.keep_) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  std::swap(keep_, other.keep_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (!handle_ || keep_) return;
#ifdef _WIN32
  FreeLibrary(static_cast<HMODULE>(handle_));
#else
  dlclose(handle_);
#endif
}

DynamicLibrary DynamicLibrary::open_first(const std::vector<std::string>& names,
                                          std::string* reason) {
  DynamicLibrary library;
  for (const std::string& name : names) {
    library.handle_ = open_library(name.c_str(), reason);
    if (library.handle_) {
      library.name_ = name;
      break;
    }
  }
  return library;
}

void* DynamicLibrary::symbol(const char* name) const {
  if (!handle_) return nullptr;
#ifdef _WIN32
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), name));
#else
  return dlsym(handle_, name);
#endif
}

void DynamicLibrary::keep_open() { keep_ = true; }

}  // namespace prism
