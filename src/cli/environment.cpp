// Reads each setting once with the function that the library uses.
#include "cli/environment.h"

#include "ir/interpreter/interpreter.h"
#include "runtime/fallback.h"
#include "tensor/cpu_pool.h"

namespace prism::cli {

void check_environment() {
  (void)fallback_setting();
  (void)threads_setting();
  (void)ir::kernels_are_checked();
}

}  // namespace prism::cli
