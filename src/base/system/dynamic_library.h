// A shared library opened at run time, as every driver is.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace prism {

// What this system calls the library of that name: "libOpenCL.so", "libOpenCL.dylib", "OpenCL.dll".
inline std::string library_file(const std::string& name) {
#if defined(_WIN32)
  return name + ".dll";
#elif defined(__APPLE__)
  return "lib" + name + ".dylib";
#else
  return "lib" + name + ".so";
#endif
}

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  // Tries the names in order (bare names by the system's search, else paths); empty when none
  // opens. *reason collects what the system said of each.
  static DynamicLibrary open_first(const std::vector<std::string>& names,
                                   std::string* reason = nullptr);

  explicit operator bool() const { return handle_ != nullptr; }
  void* symbol(const char* name) const;  // null when absent
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  const std::string& name() const { return name_; }
  // Leaves the library loaded for the life of the process (drivers that do not like to be closed).
  void keep_open();

 private:
  void* handle_ = nullptr;
  std::string name_;
  bool keep_ = false;
};

// Takes functions out of a library and remembers the first that is needed and not there.
class FunctionTable {
 public:
  explicit FunctionTable(const DynamicLibrary& library) : library_(library) {}
  template <class Function>
  void operator()(Function& function, const std::string& name, bool needed = true) {
    function = library_.function<Function>(name.c_str());
    if (!function && needed && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }  // empty: all is there

 private:
  const DynamicLibrary& library_;
  std::string missing_;
};

}  // namespace prism
