// The CPU backend: the interpreter runs whole groups of a kernel on all cores.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace prism
