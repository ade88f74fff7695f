// The metal printer.
#include "base/error.h"
#include "print/c_family.h"

namespace prism {

PrintedKernel print_metal(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the metal printer is not built yet");
}

std::unique_ptr<CFamily> make_metal_printer(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the metal printer is not built yet");
}

}  // namespace prism
