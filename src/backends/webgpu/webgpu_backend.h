// The WebGPU backend: wgpu-native or Dawn, opened at run time.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// library: the file; if empty, PRISM_WEBGPU_LIBRARY, else the usual names.
std::unique_ptr<Backend> make_webgpu_backend(std::string library = "");

}  // namespace prism
