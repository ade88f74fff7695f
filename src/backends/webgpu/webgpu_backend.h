// WebGPU through a library found at run time: wgpu-native or Dawn.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// library: the file; empty for the one that PRISM_WEBGPU_LIBRARY names, else the usual names.
std::unique_ptr<Backend> make_webgpu_backend(std::string library = "");

}  // namespace prism
