// The CUDA functions behind the HIP double: those of the CUDA double or NVIDIA's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prism::test::hip_double {

struct Twins {
  int (*init)(unsigned);
  int (*device_count)(int*);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*device_total)(size_t*, int);
  int (*device_pci)(char*, int, int);
  int (*context_retain)(void**, int);
  int (*context_push)(void*);
  int (*context_pop)(void**);
  int (*memory_info)(size_t*, size_t*);
  int (*memory_allocate)(uint64_t*, size_t);
  int (*memory_free)(uint64_t);
  int (*host_allocate)(void**, size_t, unsigned);
  int (*host_free)(void*);
  int (*copy_to_device)(uint64_t, const void*, size_t, void*);
  int (*copy_to_host)(void*, uint64_t, size_t, void*);
  int (*copy_on_device)(uint64_t, uint64_t, size_t, void*);
  int (*module_load)(void**, const void*);
  int (*module_unload)(void*);
  int (*module_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*stream_create)(void**, unsigned);
  int (*stream_destroy)(void*);
  int (*stream_synchronize)(void*);
  int (*stream_begin_capture)(void*, int);
  int (*stream_end_capture)(void*, void**);
  int (*event_create)(void**, unsigned);
  int (*event_destroy)(void*);
  int (*event_record)(void*, void*);
  int (*event_query)(void*);
  int (*event_synchronize)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*graph_instantiate)(void**, void*, unsigned long long);
  int (*graph_destroy)(void*);
  int (*graph_exec_destroy)(void*);
  int (*graph_launch)(void*, void*);
};

struct CompilerTwins {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(void**);
  int (*compile)(void*, int, const char* const*);
  int (*code_size)(void*, size_t*);
  int (*code)(void*, char*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
};

// Null when forwarding if NVIDIA's library is missing or lacks a function.
const Twins* twins();
const CompilerTwins* compiler_twins();

}  // namespace prism::test::hip_double
