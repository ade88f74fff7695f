// Compiles printed text with the host compiler and runs it as fibers.
#include "support/kernels/shim.h"

#include <cstdlib>
#include <cstring>
#include <regex>
#include <stdexcept>

#include <fmt/format.h>

#include "print/printer.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/shared_library.h"

namespace prism::test {
namespace {

// The same struct as in tests/shim/fibers.h.
struct Launch {
  uint32_t groups[3];
  uint32_t group_size;
  uint32_t subgroup_size;
  void* const* buffers;
  const uint32_t* params;
};
using Run = const char* (*)(const Launch&);

// A textual replacement that macros cannot do: group memory becomes static.
std::string for_host(const std::string& dialect, std::string text) {
  const auto replace = [&](const char* what, const char* with) {
    text = std::regex_replace(text, std::regex(what, std::regex::multiline), with);
  };
  if (dialect == "cuda") replace(R"(^ *extern __shared__ .*$)", "");
  if (dialect == "hip")
    replace(R"(^  __attribute__\(\(shared, aligned\(16\)\)\) )",
            "  static __attribute__((aligned(16))) ");
  if (dialect == "opencl") replace(R"(^  __local )", "  static ");
  if (dialect == "metal") replace(R"(^  threadgroup )", "  static ");
  return text;
}

std::string shim_include(const std::string& dialect) {
  // These texts include their library themselves.
  return dialect == "metal" || dialect == "sycl" ? "" : fmt::format("#include \"{}.h\"\n", dialect);
}

std::vector<std::string> sanitizers(const std::string& compiler) {
  // clang links its run-time library into programs only; a trap needs none.
  if (compiler.find("clang") != std::string::npos)
    return {"-fsanitize=undefined", "-fsanitize-trap=undefined"};
  return {"-fsanitize=undefined", "-fno-sanitize-recover=undefined"};
}

struct Aligned {
  explicit Aligned(const std::vector<std::byte>& contents)
      : data(static_cast<std::byte*>(std::aligned_alloc(256, (contents.size() / 256 + 1) * 256)),
             &std::free) {
    std::memcpy(data.get(), contents.data(), contents.size());
  }
  std::unique_ptr<std::byte, void (*)(void*)> data;
};

}  // namespace

struct ShimLibrary::Impl {
  std::string text;
  std::vector<ir::Kernel> kernels;
  std::vector<Run> runs;
  std::unique_ptr<SharedLibrary> library;
};

ShimLibrary::ShimLibrary(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShimLibrary::ShimLibrary(ShimLibrary&&) noexcept = default;
ShimLibrary::~ShimLibrary() = default;

const std::string& ShimLibrary::text() const { return impl_->text; }

void ShimLibrary::run(size_t index, std::array<uint32_t, 3> groups,
                      std::vector<std::vector<std::byte>>& buffers,
                      std::span<const uint32_t> params) const {
  std::vector<Aligned> copies(buffers.begin(), buffers.end());
  std::vector<void*> pointers;
  for (const Aligned& copy : copies) pointers.push_back(copy.data.get());
  const ir::Kernel& kernel = impl_->kernels.at(index);
  const Launch launch{{groups[0], groups[1], groups[2]},
                      kernel.group_size,
                      kernel.subgroup_size,
                      pointers.data(),
                      params.data()};
  if (const char* failure = impl_->runs[index](launch))
    throw std::runtime_error(fmt::format("kernel {} under the shim: {}", kernel.name, failure));
  for (size_t i = 0; i < buffers.size(); ++i)
    std::memcpy(buffers[i].data(), copies[i].data.get(), buffers[i].size());
}

ShimLibrary compile_with_shim(const ir::Capabilities& capabilities,
                              const std::vector<ir::Kernel>& lowered,
                              const std::vector<std::string>& options) {
  auto impl = std::make_unique<ShimLibrary::Impl>();
  impl->kernels = lowered;
  impl->text = print_together(lowered, capabilities);
  std::string source =
      shim_include(capabilities.dialect) + for_host(capabilities.dialect, impl->text) + "\n";
  for (size_t i = 0; i < lowered.size(); ++i)
    source += fmt::format(
        "extern \"C\" __attribute__((visibility(\"default\"))) const char* shim_run_{}(const "
        "shim::Launch& launch) {{ return "
        "shim::run<&{}>(launch); }}\n",
        i, print(lowered[i], capabilities).entry);

  const TemporaryFolder folder;
  const auto file = folder.path() / "kernels.cpp", library = folder.path() / "kernels.so";
  write_file(file, source);
  const std::string compiler = host_compiler();
  const std::string shim = (source_dir() / "tests" / "shim").string();
  std::vector<std::string> command = {compiler,
                                      "-std=c++20",
                                      "-O0",
                                      "-w",
                                      "-shared",
                                      "-fPIC",
                                      "-ffp-contract=off",
                                      "-fvisibility=hidden",
                                      "-fno-strict-aliasing",
                                      "-DPRISM_SHIM",
                                      "-I" + shim,
                                      "-I" + shim + "/metal",
                                      "-I" + shim + "/sycl"};
  for (const std::string& option : sanitizers(compiler)) command.push_back(option);
  for (const std::string& option : options) command.push_back(option);
  for (const std::string& rest : {file.string(), std::string("-o"), library.string()})
    command.push_back(rest);
  const ProcessResult result = run_process(command);
  if (result.status != 0)
    throw std::runtime_error(fmt::format("the host compiler refused printed {} text:\n{}",
                                         capabilities.dialect, result.output.substr(0, 4000)));
  impl->library = std::make_unique<SharedLibrary>(library.string());
  for (size_t i = 0; i < lowered.size(); ++i)
    impl->runs.push_back(
        impl->library->function<const char*(const Launch&)>(fmt::format("shim_run_{}", i).c_str()));
  return ShimLibrary(std::move(impl));
}

}  // namespace prism::test
