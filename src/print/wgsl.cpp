// The wgsl printer.
#include "base/error.h"
#include "print/c_family.h"

namespace prism {

PrintedKernel print_wgsl(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the wgsl printer is not built yet");
}

}  // namespace prism
