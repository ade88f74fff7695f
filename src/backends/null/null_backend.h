// A device that stores and computes nothing: for tests of the layers above drivers, and as a
// template for new backends.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_null_backend();

}  // namespace prism
