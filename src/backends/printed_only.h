// Backends whose kernels this version prints but does not run: each says what of it lies on this
// machine.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// name: hip, metal, sycl or webgpu.
std::unique_ptr<Backend> make_printed_only_backend(const std::string& name);

}  // namespace prism
