// The extension module prismrt._core.
#include "bindings.h"

NB_MODULE(_core, m) {
  using namespace prism::python;
  m.doc() = "Prism's C++ API: devices, tensors, kernels and language models.";
  // Tensors in global variables outlive the module at the end of a process, which is no leak.
  nb::set_leak_warnings(false);
  bind_errors(m);
  bind_types(m);
  bind_devices(m);
  bind_tensors(m);
  bind_creation(m);
  bind_functions(m);
  bind_layers(m);
  bind_nearest(m);
  bind_gradients(m);
  bind_kernels(m);
  bind_models(m);
  bind_search(m);
  bind_scalars(m);
  bind_modules(m);
  bind_optimizers(m);
  bind_training(m);
  bind_lora(m);
  bind_program(m);
  m.attr("__version__") = PRISM_VERSION;
}
