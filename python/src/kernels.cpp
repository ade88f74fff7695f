// Kernel: written between the entry and the exit of a `with` block, then printed, interpreted and
// run.
#include <algorithm>

#include <nanobind/stl/string.h>

#include "kernel_call.h"
#include "kernel_handles.h"
#include "lower/lower.h"
#include "print/printer.h"

namespace prism::python {
namespace {

template <class Class>
void bind_context(Class& type) {
  using T = typename Class::Type;
  type.def(
      "__exit__",
      [](T& self, nb::handle error, nb::handle, nb::handle) { self.leave(!error.is_none()); },
      nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none(),
      nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> None"));
}

// --- a finished kernel
nb::object source(const KernelHandle& handle, const std::string& dialect) {
  const Kernel& kernel = handle.kernel();
  if (dialect == "ir") return nb::str(ir::to_text(kernel).c_str());
  const auto& known = dialects();
  if (std::find(known.begin(), known.end(), dialect) == known.end()) {
    std::string names = "ir";
    for (const std::string& each : known) names += ", " + each;
    throw nb::value_error(("source: no dialect '" + dialect + "'; use " + names).c_str());
  }
  const ir::Capabilities capabilities = typical_capabilities(dialect);
  const PrintedKernel printed = print(lower(kernel, capabilities), capabilities);
  if (printed.words.empty()) return nb::str(printed.text.c_str());
  return nb::bytes(printed.words.data(), printed.words.size() * sizeof(uint32_t));
}

void bind_finished(nb::class_<KernelHandle>& type) {
  type.def_prop_ro("name", &KernelHandle::name)
      .def_prop_ro("group_size", &KernelHandle::group_size)
      .def("source", &source, nb::arg("dialect") = "ir",
           nb::sig("def source(self, dialect: str = 'ir') -> str | bytes"),
           "The kernel as IR, or in the language of a device: cuda, hip, opencl, metal, sycl, wgsl "
           "or spirv (bytes).")
      .def(
          "run",
          [](const KernelHandle& k, nb::handle groups, nb::handle device, nb::kwargs arguments) {
            return run_kernel(k.kernel(), groups, device_argument(device), arguments);
          },
          nb::arg("groups"), nb::arg("device") = nb::none(), nb::arg("arguments"),
          nb::sig("def run(self, groups: int | Sequence[int], device: DeviceLike | None = None, "
                  "**arguments: object) -> typing.Any"),
          "Runs the kernel on a device. Buffers and parameters are given by name: arrays or "
          "tensors, the length or "
          "shape of a buffer that is only written, and numbers. Returns the written buffers as "
          "tensors.")
      .def(
          "interpret",
          [](const KernelHandle& k, nb::handle groups, nb::kwargs arguments) {
            return interpret_kernel(k.kernel(), groups, arguments);
          },
          nb::arg("groups"), nb::arg("arguments"),
          nb::sig("def interpret(self, groups: int | Sequence[int], **arguments: object) -> "
                  "typing.Any"),
          "The same in the interpreter, which checks bounds, races, barriers and reads of "
          "unwritten memory.")
      .def("__repr__", [](const KernelHandle& k) {
        return k.is_built() ? ir::to_text(k.kernel())
                            : "kernel(" + k.name() + ", under construction)";
      });
}

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_kernel_values(m);
  bind_kernel_fragments(m);
  nb::class_<BlockHandle> block(m, "KernelBlock", "A block of a kernel, for `with`.");
  block.def("__enter__", &BlockHandle::enter, nb::sig("def __enter__(self) -> KernelValue"));
  bind_context(block);
  nb::class_<KernelHandle> type(m, "Kernel",
                                "A kernel: written once inside `with`, run on any device.");
  type.def(nb::init<std::string, uint32_t>(), nb::arg("name"), nb::arg("group_size") = 256);
  type.def(
      "__enter__",
      [](nb::handle_t<KernelHandle> self) {
        nb::inst_ptr<KernelHandle>(self)->enter();
        return nb::borrow(self);
      },
      nb::sig("def __enter__(self) -> Kernel"));
  bind_context(type);
  bind_kernel_functions(type);
  bind_finished(type);
}

}  // namespace prism::python
