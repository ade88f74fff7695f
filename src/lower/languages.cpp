// Features of the printers' languages, independent of the device.
#include "lower/passes.h"

namespace prism::lower_detail {

bool language_scans(const ir::Capabilities& capabilities) {
  return capabilities.dialect == "opencl" || capabilities.dialect == "spirv" ||
         capabilities.dialect == "interpreter";
}

bool language_has_words(const ir::Capabilities& capabilities) {
  return capabilities.dialect != "wgsl";
}

}  // namespace prism::lower_detail
