// The double's NVRTC: its binary is the text itself after a magic line.
#include <cstring>
#include <string>

#include "doubles/cuda_double.h"

namespace {

using prism::test::cuda_double::counter;
using prism::test::cuda_double::kBinaryMagic;
using prism::test::cuda_double::settings;

struct Program {
  std::string text, name, log, binary;
};

constexpr int kArchitectures[] = {50, 52, 53, 60, 61, 70, 72, 75, 80, 86, 87, 89, 90, 100, 120};

template <class Use>
void each_architecture(Use&& use) {
  for (const int architecture : kArchitectures)
    if (architecture >= settings().oldest && architecture <= settings().newest) use(architecture);
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = settings().nvrtc / 1000;
  *minor = settings().nvrtc % 1000 / 10;
  return 0;
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = 0;
  each_architecture([&](int) { ++*count; });
  return 0;
}

int nvrtcGetSupportedArchs(int* list) {
  each_architecture([&](int architecture) { *list++ = architecture; });
  return 0;
}

const char* nvrtcGetErrorString(int result) {
  return result == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

int nvrtcCreateProgram(Program** program, const char* text, const char* name, int,
                       const char* const*, const char* const*) {
  *program = new Program{text, name, "", ""};
  return 0;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  ++counter("compiles");
  std::string architecture;
  for (int i = 0; i < count; ++i)
    if (std::strncmp(options[i], "--gpu-architecture=", 19) == 0) architecture = options[i] + 19;
  bool known = false;
  each_architecture([&](int a) {
    known = known || architecture == "sm_" + std::to_string(a) ||
            architecture == "compute_" + std::to_string(a);
  });
  if (!known) {
    program->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return 5;
  }
  if (settings().fail_compile || program->text.find("#error") != std::string::npos) {
    program->log =
        program->name + "(2): error: the double was told to refuse\n\n1 error detected.\n";
    return 6;
  }
  program->binary = kBinaryMagic + program->text;
  return 0;
}

int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}

int nvrtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}

int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->binary.size() + 1;
  return 0;
}

int nvrtcGetCUBIN(Program* program, char* binary) {
  std::memcpy(binary, program->binary.c_str(), program->binary.size() + 1);
  return 0;
}

int nvrtcGetPTXSize(Program* program, size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
int nvrtcGetPTX(Program* program, char* text) { return nvrtcGetCUBIN(program, text); }

}  // extern "C"
