// Drives NVRTC and hiprtc: one program in, a log and a binary out.
#include "support/front_ends/rtc.h"

#include <stdexcept>

namespace prism::test {

RtcInterface::RtcInterface(const SharedLibrary& library, const std::string& prefix) {
  const auto load = [&](auto& member, const char* name) {
    member = library.function<std::remove_pointer_t<std::remove_reference_t<decltype(member)>>>(
        (prefix + name).c_str());
  };
  load(create, "CreateProgram");
  load(compile, "CompileProgram");
  load(log_size, "GetProgramLogSize");
  load(log, "GetProgramLog");
  load(destroy, "DestroyProgram");
  load(error_string, "GetErrorString");
}

CompileResult compile_rtc(const RtcInterface& rtc, const RtcCode& code, const std::string& text,
                          const std::string& name, const std::vector<std::string>& options) {
  RtcInterface::Program program = nullptr;
  if (int status = rtc.create(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr)) {
    throw std::runtime_error("creating a program for " + name + ": " + rtc.error_string(status));
  }
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const int status = rtc.compile(program, static_cast<int>(pointers.size()), pointers.data());

  CompileResult result;
  result.ok = status == 0;
  size_t bytes = 0;
  if (rtc.log_size(program, &bytes) == 0 && bytes > 1) {
    result.log.resize(bytes);
    rtc.log(program, result.log.data());
    while (!result.log.empty() && result.log.back() == '\0') result.log.pop_back();
  }
  if (!result.ok) result.log += std::string("\n") + rtc.error_string(status);
  if (result.ok && code.size(program, &bytes) == 0) {
    result.code.resize(bytes);
    code.get(program, result.code.data());
  }
  rtc.destroy(&program);
  return result;
}

}  // namespace prism::test
