// Search paths for NVRTC and cuBLAS: the system, NVIDIA's toolkit, the cache folder, Python
// packages.
#include "backends/cuda/nvrtc_search.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/cache_folder.h"

namespace prism::cuda {
namespace {

namespace fs = std::filesystem;

struct Generation {
  int major;
  const char* file;
};

// An NVIDIA library that is not part of the driver.
struct Wanted {
  const char* variable;  // environment variable that names a file or folder instead of the search
  std::vector<Generation> generations;
  const char* plain;                // file name without a generation; empty if there is none
  std::vector<const char*> wheels;  // subfolders of a Python package folder or an unpacked wheel
};

#ifdef _WIN32
const Wanted kNvrtc = {
    "PRISM_NVRTC_LIBRARY",
    {{13, "nvrtc64_130_0.dll"}, {12, "nvrtc64_120_0.dll"}, {11, "nvrtc64_112_0.dll"}},
    "",
    {"nvidia/cu13/bin/x86_64", "nvidia/cuda_nvrtc/bin"}};
const Wanted kCublas = {
    "PRISM_CUBLASLT_LIBRARY",
    {{13, "cublasLt64_13.dll"}, {12, "cublasLt64_12.dll"}, {11, "cublasLt64_11.dll"}},
    "",
    {"nvidia/cu13/bin/x86_64", "nvidia/cublas/bin"}};
constexpr const char* kToolkitFolders[] = {"bin/x64", "bin"};
#else
const Wanted kNvrtc = {
    "PRISM_NVRTC_LIBRARY",
    {{13, "libnvrtc.so.13"}, {12, "libnvrtc.so.12"}, {11, "libnvrtc.so.11.2"}},
    "libnvrtc.so",
    {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cu12/lib", "nvidia/cu11/lib"}};
const Wanted kCublas = {
    "PRISM_CUBLASLT_LIBRARY",
    {{13, "libcublasLt.so.13"}, {12, "libcublasLt.so.12"}, {11, "libcublasLt.so.11"}},
    "libcublasLt.so",
    {"nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cu12/lib", "nvidia/cu11/lib"}};
constexpr const char* kToolkitFolders[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                           "targets/aarch64-linux/lib"};
#endif

// Moves the libraries that this driver can use to the front; otherwise keeps the order.
std::vector<std::string> fitting_first(const Wanted& wanted, std::vector<std::string> found,
                                       int driver_version) {
  std::stable_partition(found.begin(), found.end(), [&](const std::string& path) {
    const std::string file = fs::path(path).filename().string();
    for (const Generation& generation : wanted.generations)
      if (file == generation.file) return generation.major <= driver_version / 1000;
    return true;
  });
  return found;
}

fs::path from_environment(const char* value) {
  return value && *value ? fs::path(value) : fs::path();
}

// The package folders of all python3.* (and Python3*) subfolders.
void add_python_packages(const fs::path& library_folder, std::vector<fs::path>* folders) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(library_folder, failed)) {
    if (entry.path().filename().string().rfind("python3", 0) != 0) continue;
    folders->push_back(entry.path() / "site-packages");
    folders->push_back(entry.path() / "dist-packages");
  }
}

std::vector<fs::path> python_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const fs::path root = from_environment(std::getenv(variable));
    if (root.empty()) continue;
    folders.push_back(root / "Lib" / "site-packages");
    add_python_packages(root / "lib", &folders);
  }
  if (const fs::path home = from_environment(std::getenv("HOME")); !home.empty())
    add_python_packages(home / ".local" / "lib", &folders);
#ifndef _WIN32
  add_python_packages("/usr/local/lib", &folders);
  add_python_packages("/usr/lib", &folders);
#endif
  return folders;
}

void add_existing(const fs::path& folder, const Wanted& wanted, std::vector<std::string>* found) {
  std::error_code failed;
  for (const Generation& generation : wanted.generations)
    if (const fs::path path = folder / generation.file; fs::exists(path, failed))
      found->push_back(path.string());
}

// Searches the folder itself, the wheel locations in it, and those in its subfolders.
void add_wheels(const fs::path& folder, const Wanted& wanted, std::vector<std::string>* found) {
  add_existing(folder, wanted, found);
  for (const char* inside : wanted.wheels) add_existing(folder / inside, wanted, found);
}

void add_wheels_below(const fs::path& folder, const Wanted& wanted,
                      std::vector<std::string>* found) {
  add_wheels(folder, wanted, found);
  std::vector<fs::path> subfolders;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.is_directory(failed)) subfolders.push_back(entry.path());
  std::sort(subfolders.rbegin(), subfolders.rend());
  for (const fs::path& subfolder : subfolders) add_wheels(subfolder, wanted, found);
}

std::vector<std::string> candidates(const Wanted& wanted, int driver_version) {
  std::vector<std::string> found;
  if (const fs::path named = from_environment(std::getenv(wanted.variable)); !named.empty()) {
    std::error_code failed;
    if (!fs::is_directory(named, failed)) return {named.string()};
    add_wheels_below(named, wanted, &found);
    return fitting_first(wanted, found, driver_version);
  }
  for (const Generation& generation : wanted.generations) found.push_back(generation.file);
  if (*wanted.plain) found.push_back(wanted.plain);
  for (const fs::path& root :
       {from_environment(std::getenv("CUDA_PATH")), from_environment(std::getenv("CUDA_HOME")),
        fs::path("/usr/local/cuda")}) {
    if (root.empty()) continue;
    for (const char* folder : kToolkitFolders) add_existing(root / folder, wanted, &found);
  }
  if (const fs::path cached = cache_subfolder("cuda"); !cached.empty())
    add_wheels_below(cached, wanted, &found);
  for (const fs::path& folder : python_folders()) add_wheels(folder, wanted, &found);
  return fitting_first(wanted, found, driver_version);
}

}  // namespace

std::vector<std::string> nvrtc_candidates(int driver_version) {
  return candidates(kNvrtc, driver_version);
}

std::vector<std::string> cublas_candidates(int driver_version) {
  return candidates(kCublas, driver_version);
}

Compilers::Compilers(int driver_version)
    : driver_version_(driver_version), candidates_(nvrtc_candidates(driver_version)) {}

std::shared_ptr<Nvrtc> Compilers::find(int capability, Target* target, std::string* reason) {
  std::string why;  // the first compiler's reason: the one the user knows
  for (size_t i = 0; i < opened_.size() || open_next(); ++i) {
    std::string said;
    if (opened_[i]->target_for(capability, driver_version_, target, &said)) return opened_[i];
    if (why.empty()) why = said;
  }
  if (why.empty()) {
    const char* named = std::getenv("PRISM_NVRTC_LIBRARY");
    why =
        named && *named
            ? fmt::format("NVRTC, the compiler for its kernels, is not at {} (PRISM_NVRTC_LIBRARY)",
                          named)
            : std::string(
                  "NVRTC, the compiler for its kernels, is missing (it is not part of the driver)");
  }
  *reason = why;
  return nullptr;
}

bool Compilers::open_next() {
  while (next_ < candidates_.size()) {
    if (auto compiler = Nvrtc::from(DynamicLibrary::open_first({candidates_[next_++]}))) {
      opened_.push_back(std::move(compiler));
      return true;
    }
  }
  return false;
}

}  // namespace prism::cuda
