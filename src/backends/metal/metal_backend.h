// The Metal backend: Apple GPUs, and AMD and Intel GPUs in older Macs.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_metal_backend();

}  // namespace prism
