// SharedLibrary: a vendor's compiler library loaded at run time.
#pragma once

#include <string>

namespace prism::test {

// Stays open for the life of the process: these libraries start threads and register exit handlers,
// and crash if closed.
class SharedLibrary {
 public:
  // Throws std::runtime_error with the loader's reason.
  explicit SharedLibrary(std::string path);

  // The function `name`; throws std::runtime_error if the library does not have it.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  bool has(const char* name) const;
  const std::string& path() const { return path_; }

 private:
  void* symbol(const char* name) const;

  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace prism::test
