// Makes printed CUDA text runnable: the host compiler builds it against cuda_double_device.h.
#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "base/dtype.h"
#include "doubles/cuda_double.h"

namespace prism::test::cuda_double {

// As the generated text declares it.
struct Entry {
  const char* name;
  const char* arguments;
  void (*call)(void**);
};

struct HostKernel {
  const HostModule* module = nullptr;
  std::string entry;
  std::string arguments;
  void (*call)(void**) = nullptr;
  void (*run_grid)(void (*)(void**), const unsigned*, unsigned, void**) = nullptr;
};

struct HostModule {
  std::string text;
  std::map<std::string, HostKernel> kernels;
};

namespace {

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> names;
  static const std::string kStart = "extern \"C\" __global__ void ";
  for (size_t start = text.find(kStart); start != std::string::npos;
       start = text.find(kStart, start + 1)) {
    size_t name = start + kStart.size();
    static const std::string kBounds = "__launch_bounds__(";
    if (text.compare(name, kBounds.size(), kBounds) == 0) name = text.find(')', name) + 2;
    names.push_back(text.substr(name, text.find('(', name) - name));
  }
  return names;
}

std::string host_source(const std::string& text) {
  std::string source =
      "#include \"doubles/cuda_double_device.h\"\n#line 1 \"kernel.cu\"\n" + text +
      "\nstruct Entry { const char* name; const char* arguments; void (*call)(void**); };\n"
      "extern \"C\" const Entry* prism_entries() {\n  static const Entry entries[] = {\n";
  for (const std::string& name : entries_of(text))
    source += "    {\"" + name + "\", prism_fibers::kinds_of(&" + name +
              "), prism_fibers::caller<&" + name + ">(&" + name + ")},\n";
  return source +
         "    {nullptr, nullptr, nullptr}};\n  return entries;\n}\n"
         "extern \"C\" void prism_run_grid(void (*kernel)(void**), const unsigned* grid, unsigned "
         "threads, void** values) {\n"
         "  prism_fibers::run_grid(kernel, grid, threads, values);\n}\n";
}

// The library of a text, built once a process; it stays open.
void* build(const std::string& text) {
  static std::map<std::string, void*> built;
  if (const auto known = built.find(text); known != built.end()) return known->second;
  std::string folder = (std::filesystem::temp_directory_path() / "prism-double-XXXXXX").string();
  if (!mkdtemp(folder.data())) return nullptr;
  const std::string source = folder + "/kernel.cpp", library = folder + "/kernel.so",
                    log = folder + "/log";
  std::ofstream(source) << host_source(text);
  const std::string command =
      std::string(PRISM_CXX_COMPILER) +
      " -std=c++20 -O1 -w -shared -fPIC -ffp-contract=off -I" PRISM_SOURCE_DIR
      "/tests -I" PRISM_SOURCE_DIR "/src " +
      source + " " PRISM_SOURCE_DIR "/src/base/dtype.cpp -o " + library + " 2>" + log;
  void* handle = nullptr;
  if (std::system(command.c_str()) == 0) {
    handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) {
      *static_cast<float (**)(uint16_t)>(dlsym(handle, "prism_double_widen")) = f32_from_f16;
      *static_cast<uint16_t (**)(float)>(dlsym(handle, "prism_double_narrow")) = f16_from_f32;
    }
  } else {
    std::ifstream said(log);
    for (std::string line; std::getline(said, line);)
      std::fprintf(stderr, "cuda double: %s\n", line.c_str());
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return built[text] = handle;
}

}  // namespace

HostModule* load_text(const std::string& text) {
  auto* module = new HostModule{text, {}};
  for (const std::string& name : entries_of(text))
    module->kernels[name] = {module, name, "", nullptr, nullptr};
  return module;
}

void unload(HostModule* module) { delete module; }

HostKernel* find_kernel(HostModule* module, const std::string& entry) {
  const auto found = module->kernels.find(entry);
  return found == module->kernels.end() ? nullptr : &found->second;
}

bool prepare(HostKernel& kernel) {
  if (kernel.call) return true;
  void* library = build(kernel.module->text);
  if (!library) return false;
  const auto entries = reinterpret_cast<const Entry* (*)()>(dlsym(library, "prism_entries"));
  for (const Entry* entry = entries(); entry->name; ++entry) {
    if (kernel.entry != entry->name) continue;
    kernel.arguments = entry->arguments;
    kernel.call = entry->call;
    kernel.run_grid = reinterpret_cast<decltype(kernel.run_grid)>(dlsym(library, "prism_run_grid"));
  }
  return kernel.call != nullptr;
}

const std::string& arguments_of(const HostKernel& kernel) { return kernel.arguments; }

void run(const HostKernel& kernel, const unsigned (&grid)[3], unsigned block, unsigned,
         void** arguments) {
  kernel.run_grid(kernel.call, grid, block, arguments);
}

}  // namespace prism::test::cuda_double
