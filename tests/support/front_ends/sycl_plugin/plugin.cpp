// Compiles SYCL text at run time and runs its kernels on Intel's CPU runtime. Built by plain g++
// when a test first needs it: SYCL's headers are installed by make test-devices, after the project
// was built.
#include "interface.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <sycl/sycl.hpp>

namespace {

namespace experimental = sycl::ext::oneapi::experimental;
using Executable = sycl::kernel_bundle<sycl::bundle_state::executable>;

// PoCL is visible to SYCL too but rejects the binaries of SYCL's compiler: select by the platform's
// name.
sycl::device intel_cpu() {
  std::string seen;
  for (const sycl::device& device : sycl::device::get_devices()) {
    const std::string platform = device.get_platform().get_info<sycl::info::platform::name>();
    if (platform == "Intel(R) OpenCL" && device.is_cpu()) return device;
    seen += " " + platform + ";";
  }
  throw std::runtime_error("no CPU device of platform Intel(R) OpenCL; platforms seen:" + seen);
}

sycl::queue& queue() {
  static auto* made = new sycl::queue(intel_cpu(), sycl::property::queue::in_order());
  return *made;
}

thread_local std::string g_message;

template <typename Work>
const char* errors_of(const Work& work) {
  try {
    work();
    return nullptr;
  } catch (const std::exception& error) {
    g_message = error.what();
  }
  return g_message.c_str();
}

struct FreeDeviceMemory {
  void operator()(void* memory) const { sycl::free(memory, queue()); }
};
using DeviceMemory = std::unique_ptr<void, FreeDeviceMemory>;

DeviceMemory copy_in(const void* data, size_t bytes) {
  // An empty buffer still needs a valid pointer.
  void* memory = sycl::malloc_device(bytes == 0 ? 4 : bytes, queue());
  if (memory == nullptr)
    throw std::runtime_error("no " + std::to_string(bytes) + " bytes of device memory");
  DeviceMemory owner(memory);
  queue().memcpy(memory, data, bytes).wait();
  return owner;
}

template <int Dimensions>
sycl::nd_range<Dimensions> range_of(const PrismSyclLaunch& launch) {
  sycl::range<Dimensions> global, local;
  for (int axis = 0; axis < Dimensions; ++axis) {
    // SYCL's last dimension varies fastest.
    const int dimension = Dimensions - 1 - axis;
    local[dimension] = launch.group_size[axis];
    global[dimension] = size_t{launch.groups[axis]} * launch.group_size[axis];
  }
  return {global, local};
}

void run(Executable& program, const PrismSyclLaunch& launch) {
  if (!program.ext_oneapi_has_kernel(launch.entry)) {
    throw std::runtime_error(std::string("the text has no kernel ") + launch.entry);
  }
  const sycl::kernel kernel = program.ext_oneapi_get_kernel(launch.entry);
  std::vector<DeviceMemory> memory;
  for (size_t i = 0; i < launch.buffer_count; ++i)
    memory.push_back(copy_in(launch.buffers[i], launch.buffer_bytes[i]));
  queue().submit([&](sycl::handler& handler) {
    int argument = 0;
    for (const DeviceMemory& buffer : memory) handler.set_arg(argument++, buffer.get());
    for (size_t i = 0; i < launch.param_count; ++i) handler.set_arg(argument++, launch.params[i]);
    if (launch.dimensions == 1) {
      handler.parallel_for(range_of<1>(launch), kernel);
    } else {
      handler.parallel_for(range_of<3>(launch), kernel);
    }
  });
  queue().wait_and_throw();
  for (size_t i = 0; i < launch.buffer_count; ++i) {
    queue().memcpy(launch.buffers[i], memory[i].get(), launch.buffer_bytes[i]).wait();
  }
}

}  // namespace

extern "C" {

const char* prism_sycl_device(const char** name) {
  return errors_of([&] {
    static const std::string kept = queue().get_device().get_info<sycl::info::device::name>();
    *name = kept.c_str();
  });
}

const char* prism_sycl_compile(const char* text, const char* const* options, size_t option_count,
                               void** program, const char** log) {
  return errors_of([&] {
    thread_local std::string kept;
    kept.clear();
    *log = "";
    auto source = experimental::create_kernel_bundle_from_source(
        queue().get_context(), experimental::source_language::sycl, std::string(text));
    const std::vector<std::string> all(options, options + option_count);
    *program = new Executable(experimental::build(
        source,
        experimental::properties{experimental::build_options{all}, experimental::save_log{&kept}}));
    *log = kept.c_str();
  });
}

void prism_sycl_release(void* program) { delete static_cast<Executable*>(program); }

const char* prism_sycl_run(void* program, const PrismSyclLaunch* launch) {
  return errors_of([&] { run(*static_cast<Executable*>(program), *launch); });
}

}  // extern "C"
