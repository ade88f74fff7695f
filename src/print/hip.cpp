// The hip printer.
#include "base/error.h"
#include "print/c_family.h"

namespace prism {

PrintedKernel print_hip(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the hip printer is not built yet");
}

std::unique_ptr<CFamily> make_hip_printer(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the hip printer is not built yet");
}

}  // namespace prism
