// A backend without devices that reports why: disabled, or not able to run kernels in this version.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_unavailable_backend(std::string name, std::string label,
                                                  std::string reason, std::string next_step);

}  // namespace prism
