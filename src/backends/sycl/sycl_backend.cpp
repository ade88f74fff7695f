// Finds the plug-in and lists its devices.
#include "backends/sycl/sycl_backend.h"

#include <cstdlib>
#include <filesystem>

#include "base/cache_folder.h"
#include "runtime/discovery/driver_start.h"
#include "runtime/discovery/library_backend.h"
#include "runtime/discovery/plugins.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libprism_sycl.so";
constexpr const char* kGetOne =
    "install Intel's oneAPI runtime and headers and build Prism again (docs/backends.md); an Intel "
    "GPU is also used through Vulkan or OpenCL";

// Next to the program, in the library folder next to that, then the system's path.
std::vector<std::string> places() {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!folder.empty())
    for (const char* part : {".", "../lib", "../lib64"})
      names.push_back((folder / part / kLibrary).string());
  names.emplace_back(kLibrary);
  return names;
}

Discovery devices_of(const std::string& file) {
  // Keep SYCL's compiler cache in Prism's cache folder.
  if (const auto cached = cache_subfolder("sycl"); !cached.empty()) {
    setenv("SYCL_CACHE_PERSISTENT", "1", 0);
    setenv("SYCL_CACHE_DIR", cached.c_str(), 0);
  }
  Discovery found;
  const auto backend = open_plugin(file, &found.reason);
  if (!backend) return found;
  found = backend->discover();
  found.found = file;
  return found;
}

}  // namespace

std::unique_ptr<Backend> make_sycl_backend(const std::string& plugin) {
  // SYCL starts every OpenCL driver; PoCL 3.1 crashes if the OpenCL backend does so concurrently.
  return make_library_backend({"sycl", "SYCL", places(), "PRISM_SYCL_LIBRARY", plugin, kGetOne,
                               devices_of, &driver_start_mutex()});
}

}  // namespace prism
