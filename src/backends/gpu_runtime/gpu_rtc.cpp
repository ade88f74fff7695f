// Compiles text to a binary and a log.
#include "backends/gpu_runtime/gpu_rtc.h"

#include <fmt/format.h>

#include "backends/gpu_runtime/gpu_api.h"
#include "prism/error.h"

namespace prism::gpu {

bool RunTimeCompiler::open(DynamicLibrary library, const std::string& prefix) {
  library_ = std::move(library);
  prefix_ = prefix;
  if (!library_) return false;
  FunctionTable get(library_);
  int (*version)(int*, int*) = nullptr;
  get(version, (prefix + "Version").c_str());
  get(error_text_, (prefix + "GetErrorString").c_str());
  get(create_, (prefix + "CreateProgram").c_str());
  get(destroy_, (prefix + "DestroyProgram").c_str());
  get(compile_, (prefix + "CompileProgram").c_str());
  get(log_size_, (prefix + "GetProgramLogSize").c_str());
  get(log_, (prefix + "GetProgramLog").c_str());
  if (!get.missing().empty() || version(&major_, &minor_) != 0) return false;
  library_.keep_open();  // it starts threads of its own
  return true;
}

Compiled RunTimeCompiler::compile(const std::string& text, const std::string& file,
                                  const std::vector<const char*>& options,
                                  const std::string& output) const {
  const auto fail = [&](const char* what, int result) {
    return Error(ErrorCode::kDriver, fmt::format("{} ({}): {} failed: {}", prefix_, library_.name(),
                                                 what, error_text_(result)));
  };
  Program program = nullptr;
  if (const int result = create_(&program, text.c_str(), file.c_str(), 0, nullptr, nullptr))
    throw fail("creating a program", result);
  struct Destroy {
    decltype(destroy_) destroy;
    Program* program;
    ~Destroy() { destroy(program); }
  } const guard{destroy_, &program};
  const int result = compile_(program, static_cast<int>(options.size()), options.data());

  Compiled compiled;
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
  FunctionTable get(library_);
  int (*size_of)(Program, size_t*) = nullptr;
  int (*content)(Program, char*) = nullptr;
  get(size_of, (prefix_ + "Get" + output + "Size").c_str());
  get(content, (prefix_ + "Get" + output).c_str());
  if (!get.missing().empty())
    throw Error(ErrorCode::kDriver,
                fmt::format("{} ({}): it has no {}", prefix_, library_.name(), get.missing()));
  if (const int got = size_of(program, &bytes)) throw fail("asking for the binary's size", got);
  compiled.binary.resize(bytes);
  if (const int got = content(program, reinterpret_cast<char*>(compiled.binary.data())))
    throw fail("fetching the binary", got);
  return compiled;
}

}  // namespace prism::gpu
