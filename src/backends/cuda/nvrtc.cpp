// The compiler's functions and the choice of what to compile for.
#include "backends/cuda/nvrtc.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace prism::cuda {

std::shared_ptr<Nvrtc> Nvrtc::from(DynamicLibrary library) {
  auto compiler = std::make_shared<Nvrtc>();
  compiler->library_ = std::move(library);
  if (!compiler->library_ || !compiler->bind()) return nullptr;
  compiler->library_.keep_open();  // it starts threads of its own
  int major = 0, minor = 0, count = 0;
  if (compiler->version_of_(&major, &minor) != 0) return nullptr;
  compiler->version_ = major * 1000 + minor * 10;
  if (compiler->architecture_count_(&count) != 0 || count <= 0) return nullptr;
  compiler->architectures_.resize(static_cast<size_t>(count));
  if (compiler->architecture_list_(compiler->architectures_.data()) != 0) return nullptr;
  std::sort(compiler->architectures_.begin(), compiler->architectures_.end());
  return compiler;
}

bool Nvrtc::bind() {
  bool complete = true;
  auto get = [&](auto& function, const char* name) {
    function = library_.function<std::remove_reference_t<decltype(function)>>(name);
    complete = complete && function;
  };
  get(version_of_, "nvrtcVersion");
  get(architecture_count_, "nvrtcGetNumSupportedArchs");
  get(architecture_list_, "nvrtcGetSupportedArchs");
  get(error_text_, "nvrtcGetErrorString");
  get(create_, "nvrtcCreateProgram");
  get(destroy_, "nvrtcDestroyProgram");
  get(compile_, "nvrtcCompileProgram");
  get(ptx_size_, "nvrtcGetPTXSize");
  get(ptx_, "nvrtcGetPTX");
  get(cubin_size_, "nvrtcGetCUBINSize");
  get(cubin_, "nvrtcGetCUBIN");
  get(log_size_, "nvrtcGetProgramLogSize");
  get(log_, "nvrtcGetProgramLog");
  return complete;
}

bool Nvrtc::target_for(int capability, int driver_version, Target* target,
                       std::string* reason) const {
  const auto name = [](int x10) { return fmt::format("{}.{}", x10 / 10, x10 % 10); };
  const auto version = fmt::format("{}.{}", version_ / 1000, version_ % 1000 / 10);
  if (std::binary_search(architectures_.begin(), architectures_.end(), capability)) {
    *target = {fmt::format("sm_{}", capability), true};
    // A cubin runs on every driver of its generation (11.x, 12.x, 13.x) and on newer ones.
    if (version_ / 1000 <= driver_version / 1000) return true;
    *reason = fmt::format("NVRTC {} is newer than the driver (CUDA {}.{})", version,
                          driver_version / 1000, driver_version % 1000 / 10);
    return false;
  }
  const auto above = std::upper_bound(architectures_.begin(), architectures_.end(), capability);
  if (above == architectures_.begin()) {
    *reason = fmt::format("NVRTC {} compiles for compute capability {} and newer, this card has {}",
                          version, name(architectures_.front()), name(capability));
    return false;
  }
  const int nearest = *(above - 1);
  if (version_ <= driver_version) {
    *target = {fmt::format("compute_{}", nearest), false};
    return true;
  }
  // The driver cannot read newer PTX, but a cubin for a smaller minor number of the same generation
  // runs.
  if (nearest / 10 == capability / 10 && version_ / 1000 <= driver_version / 1000) {
    *target = {fmt::format("sm_{}", nearest), true};
    return true;
  }
  *reason = fmt::format(
      "NVRTC {} does not know compute capability {}, and the driver (CUDA {}.{}) cannot read its "
      "PTX",
      version, name(capability), driver_version / 1000, driver_version % 1000 / 10);
  return false;
}

const std::vector<const char*>& Nvrtc::options() {
  // The kernel language rounds each operation once and keeps subnormals; text that is printed uses
  // no C++ library.
  static const std::vector<const char*> options = {"--std=c++17", "--fmad=false", "--prec-div=true",
                                                   "--prec-sqrt=true", "--ftz=false"};
  return options;
}

gpu::Compiled Nvrtc::compile(const std::string& text, const std::string& file,
                             const Target& target) const {
  const auto fail = [&](const char* what, int result) {
    return Error(ErrorCode::kDriver, fmt::format("NVRTC ({}): {} failed: {}", library_.name(), what,
                                                 error_text_(result)));
  };
  Program program = nullptr;
  if (const int result = create_(&program, text.c_str(), file.c_str(), 0, nullptr, nullptr))
    throw fail("creating a program", result);
  struct Destroy {
    decltype(destroy_) destroy;
    Program* program;
    ~Destroy() { destroy(program); }
  } const guard{destroy_, &program};

  const std::string architecture = "--gpu-architecture=" + target.architecture;
  std::vector<const char*> words = options();
  words.push_back(architecture.c_str());
  const int result = compile_(program, static_cast<int>(words.size()), words.data());

  gpu::Compiled compiled;
  size_t bytes = 0;
  if (log_size_(program, &bytes) == 0 && bytes > 1) {
    compiled.log.resize(bytes);
    if (log_(program, compiled.log.data()) != 0) compiled.log.clear();
    while (!compiled.log.empty() && (compiled.log.back() == '\0' || compiled.log.back() == '\n'))
      compiled.log.pop_back();
  }
  if (result != 0) {
    if (compiled.log.empty()) compiled.log = error_text_(result);
    return compiled;
  }
  const auto size_of = target.cubin ? cubin_size_ : ptx_size_;
  const auto content = target.cubin ? cubin_ : ptx_;
  if (const int got = size_of(program, &bytes)) throw fail("asking for the binary's size", got);
  compiled.binary.resize(bytes);
  if (const int got = content(program, reinterpret_cast<char*>(compiled.binary.data())))
    throw fail("fetching the binary", got);
  return compiled;
}

}  // namespace prism::cuda
