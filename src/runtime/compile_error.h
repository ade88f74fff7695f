// Kernel text handling shared by all backends: dump it, replace it, and report compile errors.
#pragma once

#include <functional>
#include <string>

#include "prism/error.h"
#include "prism/kernel_ir.h"
#include "runtime/driver.h"

namespace prism {

// The source text of one kernel for one device's compiler.
struct KernelText {
  std::string name;  // stable for a kernel on a device: "opencl-0.add.1a2b3c4d"
  std::string file;  // name with extension: "opencl-0.add.1a2b3c4d.cl"
  std::string text;  // the source to compile
};

// With PRISM_DUMP set, writes the IR (NAME.ir) and the text (NAME.extension). A file of the same
// name in the replace folder overrides the text. extension: "cl", "cu".
KernelText kernel_text(const DeviceInfo& device, const ir::Kernel& lowered,
                       const std::string& printed, const std::string& extension);

// With PRISM_DUMP set, writes the compiler's output (NAME.log) unless it is empty.
void dump_log(const KernelText& kernel, const std::string& log);

// A kCompile error with the device, the kernel, the compiler's log, the numbered lines that the log
// names and the path of the whole text (in PRISM_DUMP, else in the cache folder).
Error compile_error(const DeviceInfo& device, const ir::Kernel& lowered, const KernelText& kernel,
                    const std::string& log);

// Prints and compiles a kernel. compile gets the text and the name of its entry point, and returns
// the compiler's log on failure. The log is then dumped and thrown as compile_error().
void compile_text(
    const DeviceInfo& device, const ir::Kernel& lowered, const std::string& extension,
    const std::function<std::string(const KernelText& text, const std::string& entry)>& compile);

// The lines of a text with their numbers: all lines of a short text, else those near the lines that
// the log names.
std::string numbered_source(const std::string& text, const std::string& log);

}  // namespace prism
