// The double's hiprtc: NVRTC's calls, with the chip instead of an architecture.
#include <cstring>
#include <string>
#include <vector>

#include "doubles/hip_double.h"
#include "doubles/hip_double_twins.h"

namespace {

using prism::test::hip_double::compiler_twins;
using prism::test::hip_double::forwarded_text;
using prism::test::hip_double::settings;
using prism::test::hip_double::told_to_fail;

struct Program {
  void* twin = nullptr;
  std::string log;  // of a rejection that does not reach the counterpart
};

}  // namespace

extern "C" {

int hiprtcVersion(int* major, int* minor) {
  *major = settings().hiprtc / 100;
  *minor = settings().hiprtc % 100;
  return 0;
}

const char* hiprtcGetErrorString(int result) {
  return result == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR";
}

int hiprtcCreateProgram(Program** program, const char* text, const char* name, int count,
                        const char* const* headers, const char* const* names) {
  if (const int told = told_to_fail(__func__)) return told;
  *program = new Program;
  const std::string own = settings().forward ? forwarded_text(text) : text;
  return compiler_twins()->create(&(*program)->twin, own.c_str(), name, count, headers, names);
}

int hiprtcDestroyProgram(Program** program) {
  compiler_twins()->destroy(&(*program)->twin);
  delete *program;
  *program = nullptr;
  return 0;
}

int hiprtcCompileProgram(Program* program, int count, const char* const* options) {
  if (const int told = told_to_fail(__func__)) return told;
  const std::string chip = "--offload-arch=" + settings().gfx;
  bool known = false;
  for (int i = 0; i < count; ++i) known = known || chip == options[i];
  if (settings().refuse_chip || !known) {
    program->log = "error: invalid target ID '" + settings().gfx + "'; format is a processor name";
    return 6;
  }
  const std::string arch = "--gpu-architecture=" + settings().architecture;
  std::vector<const char*> words = {arch.c_str(),      "--std=c++17",      "--fmad=false",
                                    "--prec-div=true", "--prec-sqrt=true", "--ftz=false"};
  return compiler_twins()->compile(program->twin, static_cast<int>(words.size()), words.data());
}

int hiprtcGetProgramLogSize(Program* program, size_t* bytes) {
  if (program->log.empty()) return compiler_twins()->log_size(program->twin, bytes);
  *bytes = program->log.size() + 1;
  return 0;
}

int hiprtcGetProgramLog(Program* program, char* log) {
  if (program->log.empty()) return compiler_twins()->log(program->twin, log);
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}

int hiprtcGetCodeSize(Program* program, size_t* bytes) {
  return compiler_twins()->code_size(program->twin, bytes);
}

int hiprtcGetCode(Program* program, char* code) {
  return compiler_twins()->code(program->twin, code);
}

}  // extern "C"
