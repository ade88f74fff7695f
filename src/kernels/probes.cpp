// Builds the probes.
#include "kernels/probes.h"

#include "dsl/dsl.h"

namespace prism {

ir::Kernel fma_probe() {
  using namespace dsl;
  return kernel("check_fma", 32, [] {
    auto x = inout("x", f32);
    if_(local_id() == 0u, [&] { x[3u] = fma(x[0u], x[1u], x[2u]); });
  });
}

}  // namespace prism
