// What the languages of the printers offer, whatever the device behind them.
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
