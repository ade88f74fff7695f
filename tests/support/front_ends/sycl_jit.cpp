// Builds the SYCL plug-in on first use, loads it, and passes kernels to it.
#include "support/front_ends/sycl_jit.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>
#include <stdexcept>

#include "support/front_ends/sycl_plugin/interface.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/shared_library.h"

namespace prism::test {

// Keyed by all its inputs, so that an upgrade or an edit triggers a build and an unchanged plug-in
// is reused.
std::filesystem::path build_sycl_plugin(const std::filesystem::path& folder,
                                        const std::vector<std::filesystem::path>& linked) {
  namespace fs = std::filesystem;
  const std::string root = require_front_end(kSyclRoot);
  const auto time_of = [](const fs::path& file) {
    return std::to_string(fs::last_write_time(file).time_since_epoch().count());
  };
  std::string key = root + time_of(root + "/include/sycl/sycl.hpp");
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path());
  std::vector<std::string> words = {"g++",
                                    "-std=c++20",
                                    "-O1",
                                    "-shared",
                                    "-fPIC",
                                    "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING",
                                    "-isystem",
                                    root + "/include",
                                    "-I" + folder.string(),
                                    "-I" + (source_dir() / "src").string(),
                                    "-I" + (source_dir() / "include").string()};
  for (const fs::path& file : files) {
    key += read_file(file);
    if (file.extension() == ".cpp") words.push_back(file.string());
  }
  for (const fs::path& library : linked) {
    key += library.string() + time_of(library);
    words.push_back(library.string());
  }
  const std::filesystem::path plugin =
      binary_dir() /
      ("libprism_test_sycl-" + std::to_string(std::hash<std::string>{}(key)) + ".so");
  if (std::filesystem::exists(plugin)) return plugin;

  const std::string building = plugin.string() + "." + std::to_string(getpid());
  for (const std::string& word :
       {std::string("-o"), building, "-L" + root + "/lib", std::string("-lsycl"),
        "-Wl,-rpath," + root + "/lib", std::string("-lfmt"), std::string("-Wl,--exclude-libs,ALL")})
    words.push_back(word);
  const ProcessResult process = run_process(words);
  if (process.status != 0)
    throw std::runtime_error("building the SYCL plug-in failed:\n" + process.output);
  std::filesystem::rename(building, plugin);
  return plugin;
}

namespace {

struct Plugin {
  explicit Plugin(const SharedLibrary& library)
      : device(library.function<PrismSyclDevice>("prism_sycl_device")),
        compile(library.function<PrismSyclCompile>("prism_sycl_compile")),
        release(library.function<PrismSyclRelease>("prism_sycl_release")),
        run(library.function<PrismSyclRun>("prism_sycl_run")) {}

  PrismSyclDevice* device;
  PrismSyclCompile* compile;
  PrismSyclRelease* release;
  PrismSyclRun* run;
};

const Plugin& plugin() {
  static const Plugin* opened = [] {
    // A second run of the same text takes a tenth of the time.
    setenv("SYCL_CACHE_PERSISTENT", "1", 0);
    setenv("SYCL_CACHE_DIR", (binary_dir() / "sycl-cache").c_str(), 0);
    return new Plugin(SharedLibrary(
        build_sycl_plugin(source_dir() / "tests/support/front_ends/sycl_plugin").string()));
  }();
  return *opened;
}

}  // namespace

std::string sycl_device_name() {
  const char* name = nullptr;
  if (const char* error = plugin().device(&name))
    throw std::runtime_error(std::string("SYCL: ") + error);
  return name;
}

SyclProgram::SyclProgram(const std::string& text, const std::vector<std::string>& options) {
  sycl_device_name();  // throws if there is no device, so that errors below concern the text
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const char* words = "";
  if (const char* error =
          plugin().compile(text.c_str(), pointers.data(), pointers.size(), &program_, &words)) {
    log_ = error;
  } else {
    log_ = words;
  }
}

SyclProgram::~SyclProgram() {
  if (program_ != nullptr) plugin().release(program_);
}

CompileResult SyclProgram::run(const Launch& launch, std::vector<std::vector<uint8_t>>& buffers,
                               const std::vector<uint32_t>& params) {
  if (!ok()) return {false, log_, {}};
  std::vector<void*> pointers;
  std::vector<size_t> bytes;
  for (std::vector<uint8_t>& buffer : buffers) {
    pointers.push_back(buffer.data());
    bytes.push_back(buffer.size());
  }
  PrismSyclLaunch call{};
  call.entry = launch.entry.c_str();
  call.dimensions = launch.dimensions;
  for (size_t axis = 0; axis < 3; ++axis) {
    call.groups[axis] = launch.group_counts[axis];
    call.group_size[axis] = launch.group_size[axis];
  }
  call.buffers = pointers.data();
  call.buffer_bytes = bytes.data();
  call.buffer_count = pointers.size();
  call.params = params.data();
  call.param_count = params.size();
  if (const char* error = plugin().run(program_, &call)) return {false, error, {}};
  return {true, log_, {}};
}

CompileResult run_sycl(const std::string& text, const SyclProgram::Launch& launch,
                       std::vector<std::vector<uint8_t>>& buffers,
                       const std::vector<uint32_t>& params) {
  return SyclProgram(text).run(launch, buffers, params);
}

}  // namespace prism::test
