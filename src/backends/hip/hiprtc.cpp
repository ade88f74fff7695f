// Finds the compiler that matches the runtime, probes it, and compiles.
#include "backends/hip/hiprtc.h"

#include <cstdlib>

#include <fmt/format.h>

#include "backends/hip/hip_api.h"
#include "base/system/probe_library.h"

namespace prism::hip {
namespace {

constexpr const char* kVariable = "PRISM_HIPRTC_LIBRARY";

// The compiler library in the runtime's folder, with the same version.
std::string beside(std::string runtime) {
  static const std::string kRuntime = "amdhip64";
  const size_t at = runtime.rfind(kRuntime);
  if (at != std::string::npos) runtime.replace(at, kRuntime.size(), "hiprtc");
  return runtime;
}

}  // namespace

std::shared_ptr<Hiprtc> Hiprtc::open(const DynamicLibrary& runtime, std::string* reason) {
  std::vector<std::string> names = library_names(kVariable, "libhiprtc");
  if (const char* named = std::getenv(kVariable); !named || !*named) {
    names.insert(names.begin(), beside(runtime.name()));
    names.push_back(runtime.name());
  }
  for (const std::string& name : names) {
    auto compiler = std::make_shared<Hiprtc>();
    if (compiler->compiler_.open(DynamicLibrary::open_first({name}), "hiprtc")) return compiler;
  }
  *reason = "hiprtc, the compiler for its kernels, is missing";
  return nullptr;
}

std::string Hiprtc::refusal_of(const std::string& gfx) const {
  const std::string file = find_library({library()});
  if (file.empty()) return "";  // not in a known folder: the first kernel will show
  const auto compile_one = [&](const std::string&) -> std::string {
    const gpu::Compiled compiled =
        compile("extern \"C\" __attribute__((global)) void prism_trial(unsigned* x) { *x = 1u; }\n",
                "trial.hip", gfx);
    return compiled.binary.empty() ? "refused: " + compiled.log : "";
  };
  return probe_library(file, fmt::format("hiprtc {} {}", version_text(), gfx), compile_one).reason;
}

const std::vector<const char*>& Hiprtc::options() {
  // The kernel language rounds each operation once and keeps subnormals, which older chips flush by
  // default.
  static const std::vector<const char*> options = {"-std=c++17", "-O3", "-ffp-contract=off",
                                                   "-fno-gpu-flush-denormals-to-zero"};
  return options;
}

gpu::Compiled Hiprtc::compile(const std::string& text, const std::string& file,
                              const std::string& gfx) const {
  const std::string architecture = "--offload-arch=" + gfx;
  std::vector<const char*> words = options();
  words.push_back(architecture.c_str());
  return compiler_.compile(text, file, words, "Code");
}

}  // namespace prism::hip
