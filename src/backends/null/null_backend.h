// A device with no memory and no work: for tests of everything above a driver, and the start of a
// new backend.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_null_backend();

}  // namespace prism
