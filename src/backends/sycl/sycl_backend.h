// The SYCL backend: loads a plug-in library at run time, so that the program itself needs no SYCL.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// plugin: the library's path; if empty, PRISM_SYCL_LIBRARY, else the library next to the program.
std::unique_ptr<Backend> make_sycl_backend(const std::string& plugin);
inline std::unique_ptr<Backend> make_sycl_backend() { return make_sycl_backend(""); }

}  // namespace prism
