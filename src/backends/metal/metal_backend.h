// Apple's GPUs, and the AMD and Intel ones of older Macs, through the Metal framework.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_metal_backend();

}  // namespace prism
