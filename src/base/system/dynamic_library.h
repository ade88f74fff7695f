// DynamicLibrary: a shared library opened at run time. Every driver is loaded this way.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace prism {

// This system's file name for a library: "libOpenCL.so", "libOpenCL.dylib", "OpenCL.dll".
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

  // Tries the names in order (bare names use the system's search path); empty when none opens.
  // *reason collects the system's error for each.
  static DynamicLibrary open_first(const std::vector<std::string>& names,
                                   std::string* reason = nullptr);

  explicit operator bool() const { return handle_ != nullptr; }
  void* symbol(const char* name) const;  // null when absent
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  const std::string& name() const { return name_; }
  // Keeps the library loaded for the life of the process; some drivers crash when unloaded.
  void keep_open();

 private:
  void* handle_ = nullptr;
  std::string name_;
  bool keep_ = false;
};

// Resolves functions of a library and remembers the first required one that is missing.
class FunctionTable {
 public:
  explicit FunctionTable(const DynamicLibrary& library) : library_(library) {}
  template <class Function>
  void operator()(Function& function, const std::string& name, bool needed = true) {
    function = library_.function<Function>(name.c_str());
    if (!function && needed && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }  // empty: nothing is missing

 private:
  const DynamicLibrary& library_;
  std::string missing_;
};

}  // namespace prism
