// Compiles HIP text in another process, with hiprtc or clang.
#include "support/front_ends/hiprtc_front_end.h"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

// Runs the command that `command` builds from the source and output paths.
CompileResult compile_by_process(
    const std::string& text,
    const std::function<std::vector<std::string>(const std::string& source,
                                                 const std::string& output)>& command) {
  const TemporaryFolder folder;
  const std::string source = (folder.path() / "kernel.hip").string();
  const std::string output = (folder.path() / "kernel.out").string();
  write_file(source, text);
  const ProcessResult process = run_process(command(source, output));
  if (process.status == 2)
    throw std::runtime_error("the HIP compiler is not available: " + process.output);
  CompileResult result{process.status == 0, process.output, {}};
  if (result.ok) result.code = read_file(output);
  if (process.status > 128)
    result.log += "\nthe compiler crashed, signal " + std::to_string(process.status - 128);
  return result;
}

}  // namespace

const char* hip_front_end(const std::string& arch) {
  // Debian's hiprtc (5.2) crashes on an unknown chip instead of rejecting it.
  constexpr std::array kKnown{"gfx803", "gfx900",  "gfx906", "gfx908",
                              "gfx90a", "gfx1010", "gfx1030"};
  return std::find(kKnown.begin(), kKnown.end(), arch) != kKnown.end() ? kHiprtc : kClang19;
}

CompileResult compile_hip(const std::string& text, const std::string& arch,
                          const std::vector<std::string>& options) {
  const std::string front_end_path = require_front_end(hip_front_end(arch));
  return compile_by_process(text, [&](const std::string& source, const std::string& output) {
    std::vector<std::string> command;
    if (hip_front_end(arch) == kHiprtc) {
      command = {(binary_dir() / "hiprtc_compile").string(), front_end_path, source, output};
    } else {
      // Stops at assembly: linking would need an lld with AMD support and would not test the text.
      command = {front_end_path, "-x", "hip",  "-nogpulib", "-nogpuinc", "--cuda-device-only",
                 "-O3",          "-S", source, "-o",        output};
    }
    command.push_back("--offload-arch=" + arch);
    command.insert(command.end(), options.begin(), options.end());
    return command;
  });
}

}  // namespace prism::test
