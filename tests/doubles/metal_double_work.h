// What the double's devices and its queues share.
#pragma once

#include "doubles/host_kernels.h"
#include "doubles/metal_double_objects.h"

namespace prism::test::metal_double {

inline constexpr size_t kFence = 256;  // bytes beside a buffer that nobody may write

struct Buffer : Object {
  Buffer(size_t bytes, UInteger storage);
  Buffer(void* outside, size_t bytes);  // over memory of another, which stays that one's
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
