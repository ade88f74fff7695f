// The sycl printer.
#include "base/error.h"
#include "print/c_family.h"

namespace prism {

PrintedKernel print_sycl(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the sycl printer is not built yet");
}

std::unique_ptr<CFamily> make_sycl_printer(const ir::Kernel&, const ir::Capabilities&) {
  throw Error(ErrorCode::kNotSupported, "the sycl printer is not built yet");
}

}  // namespace prism
