// Types shared by the double's devices and queues.
#pragma once

#include "doubles/host_kernels.h"
#include "doubles/metal_double_objects.h"

namespace prism::test::metal_double {

inline constexpr size_t kFence = 256;  // guard bytes around a buffer, which must stay unchanged

struct Buffer : Object {
  Buffer(size_t bytes, UInteger storage);
  Buffer(void* outside, size_t bytes);  // over borrowed memory
  ~Buffer() override;
  unsigned char* data() const { return borrowed ? borrowed : memory + kFence; }
  void check_fences();
  size_t bytes;
  UInteger options;
  unsigned char* memory = nullptr;
  unsigned char* borrowed = nullptr;
};

struct Pipeline : Object {
  Pipeline(Object* function, doubles::HostKernel* kernel);
  ~Pipeline() override;
  Object* function;
  doubles::HostKernel* kernel;
};

Object* make_queue();

}  // namespace prism::test::metal_double
