// WebGPU through a library found at run time: wgpu-native or Dawn.
#pragma once

#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

std::unique_ptr<Backend> make_webgpu_backend();  // PRISM_WEBGPU_LIBRARY, else by the usual names
std::unique_ptr<Backend> make_webgpu_backend(std::string library);  // this file

}  // namespace prism
