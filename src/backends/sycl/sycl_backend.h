// Devices reached through SYCL: a plug-in library around SYCL's C++ is opened at run time, so that
// the program needs no SYCL.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// plugin: the library's path; empty for the one that PRISM_SYCL_LIBRARY names, else the one beside
// the program.
std::unique_ptr<Backend> make_sycl_backend(const std::string& plugin);
inline std::unique_ptr<Backend> make_sycl_backend() { return make_sycl_backend(""); }

}  // namespace prism
