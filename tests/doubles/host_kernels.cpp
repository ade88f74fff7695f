// Compiles printed text with the host compiler against the shim of the printer tests.
#include "doubles/host_kernels.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <utility>
#include <vector>

namespace prism::test::doubles {

// Matches the declaration in the generated text.
struct Entry {
  const char* name;
  const char* arguments;
  const char* (*run)(const unsigned*, unsigned, void**);
};

struct HostKernel {
  const HostModule* module = nullptr;
  std::string entry;
  std::string arguments;
  const char* (*run)(const unsigned*, unsigned, void**) = nullptr;
};

struct HostModule {
  std::string text;
  std::map<std::string, HostKernel> kernels;
};

namespace {

std::string dialect_of(const std::string& text) {
  if (text.find("<metal_stdlib>") != std::string::npos) return "metal";
  return text.find("__attribute__((global") == std::string::npos ? "cuda" : "hip";
}

std::vector<std::string> entries_of(const std::string& text) {
  static const std::regex kSignature(
      R"(extern "C" (?:__global__ void (?:__launch_bounds__\(\d+(?:, \d+)?\) )?|__attribute__\(\(global.*\)\) void )(\w+)\(|^kernel void (\w+)\()",
      std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kSignature), end; at != end; ++at)
    names.push_back((*at)[1].matched ? (*at)[1] : (*at)[2]);
  return names;
}

// Makes group memory static, and replaces a kernel's inline assembly by C++.
std::string for_host(std::string text) {
  const auto replace = [&](const char* what, const char* with) {
    text = std::regex_replace(text, std::regex(what, std::regex::multiline), with);
  };
  replace(R"(^ *extern __shared__ .*$)", "");
  replace(R"(^  __attribute__\(\(shared, aligned\(16\)\)\) )",
          "  static __attribute__((aligned(16))) ");
  replace(R"re(asm\("ex2\.approx\.ftz\.f32 %0, %1;" : "=f"\((\w+)\) : "f"\((.*)\)\);$)re",
          "$1 = exp2f($2);");
  if (dialect_of(text) == "metal") replace(R"(^  threadgroup )", "  static ");
  return text;
}

std::string host_source(const std::string& text) {
  // Metal's text includes its library, which ends in macros that must be undefined again.
  const bool metal = dialect_of(text) == "metal";
  std::string source = (metal ? "" : "#include \"" + dialect_of(text) + ".h\"\n") +
                       "#line 1 \"kernel\"\n" + for_host(text) +
                       (metal ? "\n#undef kernel\n#undef device\n#undef constant\n"
                                "#undef thread\n#undef threadgroup\n"
                              : "") +
                       "\n#include \"doubles/host_kernels_device.h\"\n"
                       "extern \"C\" __attribute__((visibility(\"default\"))) const "
                       "prism_double::Entry* prism_entries() {\n"
                       "  static const prism_double::Entry entries[] = {\n";
  for (const std::string& name : entries_of(text))
    source += "    {\"" + name + "\", prism_double::kinds_of(&" + name + "), &prism_double::run<&" +
              name + ">},\n";
  return source + "    {nullptr, nullptr, nullptr}};\n  return entries;\n}\n";
}

constexpr const char* kOptions =
    " -std=c++20 -O1 -w -fPIC -ffp-contract=off -fvisibility=hidden -fno-strict-aliasing"
    " -DPRISM_SHIM -I" PRISM_SOURCE_DIR "/tests ";

// A process's build folder, with the shim's headers precompiled: they take most of the compile time
// of a small kernel.
class Workshop {
 public:
  Workshop() {
    folder_ = (std::filesystem::temp_directory_path() / "prism-double-XXXXXX").string();
    if (!mkdtemp(folder_.data())) folder_.clear();
  }
  ~Workshop() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // The loaded library of a source; null if the compiler rejects it, after its output on stderr.
  void* build(const std::string& dialect, const std::string& source_text) {
    if (folder_.empty()) return nullptr;
    prepare_headers(dialect);
    const std::string source = folder_ + "/kernel.cpp", log = folder_ + "/log";
    const std::string library = folder_ + "/kernel" + std::to_string(count_++) + ".so";
    std::ofstream(source) << source_text;
    void* handle = nullptr;
    if (compile(source + " -shared -o " + library, log))
      handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::error_code ignored;
    std::filesystem::remove(library, ignored);
    return handle;
  }

 private:
  bool compile(const std::string& rest, const std::string& log) const {
    // The folder comes first: the precompiled header replaces the one beside the sources.
    const std::string command = std::string(PRISM_CXX_COMPILER) + " -I" + folder_ +
                                " -I" PRISM_SOURCE_DIR "/tests/shim -I" PRISM_SOURCE_DIR
                                "/tests/shim/metal" +
                                kOptions + rest + " 2>" + log;
    if (std::system(command.c_str()) == 0) return true;
    std::ifstream said(log);
    for (std::string line; std::getline(said, line);)
      std::fprintf(stderr, "double: %s\n", line.c_str());
    return false;
  }

  void prepare_headers(const std::string& dialect) {
    bool& prepared = prepared_[dialect];
    if (std::exchange(prepared, true)) return;
    if (std::string(PRISM_CXX_COMPILER).find("clang") != std::string::npos) return;
    const std::string name = dialect == "metal" ? "metal_stdlib" : dialect + ".h";
    const std::string header = folder_ + "/" + name;
    std::ofstream(header) << "#include \"" PRISM_SOURCE_DIR "/tests/shim/"
                          << (dialect == "metal" ? "metal/" : "") << name << "\"\n";
    compile("-x c++-header " + header + " -o " + header + ".gch", folder_ + "/log");
  }

  std::string folder_;
  std::map<std::string, bool> prepared_;
  int count_ = 0;
};

// The library of a text, built once per process; it stays open.
void* build(const std::string& text) {
  static std::map<std::string, void*> built;
  static Workshop workshop;
  if (const auto known = built.find(text); known != built.end()) return known->second;
  return built[text] = workshop.build(dialect_of(text), host_source(text));
}

}  // namespace

HostModule* load_text(const std::string& text) {
  auto* module = new HostModule{text, {}};
  for (const std::string& name : entries_of(text))
    module->kernels[name] = {module, name, "", nullptr};
  return module;
}

void unload(HostModule* module) { delete module; }

HostKernel* find_sample_kernel(HostModule* module, const std::string& entry) {
  const auto found = module->kernels.find(entry);
  return found == module->kernels.end() ? nullptr : &found->second;
}

bool prepare(HostKernel& kernel) {
  if (kernel.run) return true;
  void* library = build(kernel.module->text);
  if (!library) return false;
  const auto entries = reinterpret_cast<const Entry* (*)()>(dlsym(library, "prism_entries"));
  for (const Entry* entry = entries(); entry->name; ++entry) {
    if (kernel.entry != entry->name) continue;
    kernel.arguments = entry->arguments;
    kernel.run = entry->run;
  }
  return kernel.run != nullptr;
}

const std::string& arguments_of(const HostKernel& kernel) { return kernel.arguments; }

const char* run(const HostKernel& kernel, const unsigned (&grid)[3], unsigned block,
                void** arguments) {
  return kernel.run(grid, block, arguments);
}

}  // namespace prism::test::doubles
