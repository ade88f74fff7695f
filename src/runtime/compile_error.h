// What every backend does with a kernel's text around its compiler: dump it, replace it, and report
// a refusal.
#pragma once

#include <functional>
#include <string>

#include "prism/error.h"
#include "prism/kernel_ir.h"
#include "runtime/driver.h"

namespace prism {

// The text of one kernel on its way to one device's compiler.
struct KernelText {
  std::string name;  // the same for the same kernel on the same device: "opencl-0.add.1a2b3c4d"
  std::string file;  // name and extension: "opencl-0.add.1a2b3c4d.cl"
  std::string text;  // what to compile
};

// Under PRISM_DUMP writes the IR (NAME.ir) and the text (NAME.extension); a file of that name under
// its replace folder becomes the text. extension: "cl", "cu".
KernelText kernel_text(const DeviceInfo& device, const ir::Kernel& lowered,
                       const std::string& printed, const std::string& extension);

// Under PRISM_DUMP writes what the compiler said (NAME.log); nothing when it said nothing.
void dump_log(const KernelText& kernel, const std::string& log);

// kCompile: device and kernel, the compiler's log, the numbered lines it speaks of and the file
// with the whole text (in PRISM_DUMP, else in the cache folder).
Error compile_error(const DeviceInfo& device, const ir::Kernel& lowered, const KernelText& kernel,
                    const std::string& log);

// Prints a kernel and has it compiled. compile gets the text and the name of its entry point, and
// returns the compiler's log where it refuses; that is thrown, and dumped.
void compile_text(
    const DeviceInfo& device, const ir::Kernel& lowered, const std::string& extension,
    const std::function<std::string(const KernelText& text, const std::string& entry)>& compile);

// The lines of a text with their numbers: all of a short one, of a longer one those near the lines
// a log names.
std::string numbered_source(const std::string& text, const std::string& log);

}  // namespace prism
