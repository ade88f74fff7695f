// The program `prism` as a function of the module, so that a wheel has the library once.
#include <csignal>
#include <new>

#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "cli/app.h"
#include "cli/fatal_errors.h"

namespace prism::python {
namespace {

// Never returns to code that relies on Python's signal handlers: the program's stay in place.
int run_program(const std::vector<nb::bytes>& words) {
  std::vector<const char*> pointers;
  for (const nb::bytes& each : words) pointers.push_back(each.c_str());
#ifndef _WIN32
  // Python ignores these; the program ends by them, as in `prism devices | head -1`.
  for (const int each : {SIGPIPE, SIGXFSZ}) std::signal(each, SIG_DFL);
#endif
  const nb::gil_scoped_release release;
  cli::report_fatal_errors();
  try {
    return cli::run(static_cast<int>(pointers.size()), pointers.data());
  } catch (const std::bad_alloc&) {
    return cli::report_out_of_memory();
  }
}

}  // namespace

void bind_program(nb::module_& m) { m.def("_run_program", &run_program, nb::arg("words")); }

}  // namespace prism::python
