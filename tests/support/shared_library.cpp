// Opens shared libraries with dlopen.
#include "support/shared_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <utility>

namespace prism::test {

SharedLibrary::SharedLibrary(std::string path) : path_(std::move(path)) {
  // Local: two WebGPU libraries in one process export the same names.
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw std::runtime_error("cannot open " + path_ + ": " + dlerror());
}

bool SharedLibrary::has(const char* name) const { return dlsym(handle_, name) != nullptr; }

void* SharedLibrary::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) throw std::runtime_error(path_ + " has no function " + name);
  return found;
}

}  // namespace prism::test
