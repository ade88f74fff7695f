// What the SYCL plug-in offers: plain C, because SYCL speaks C++ and the program is built without
// it. The plug-in is built against SYCL's headers where there are some, and opened at run time like
// a driver.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

enum { kPrismSyclVersion = 1 };

struct PrismSyclDevice {
  char name[256], vendor[128], platform[128], driver[128];
  char card[64];  // PCI address or "uuid:...", where SYCL tells; else empty
  uint64_t total_bytes, largest_allocation, shared_bytes;
  uint32_t compute_units, largest_group;
  uint32_t subgroup_sizes[16];  // ends with 0
  uint8_t is_cpu, is_gpu, unified, f16, f64, graphs;
};

struct PrismSyclLaunch {
  void* kernel;
  uint32_t groups[3];   // x, y, z
  uint32_t group_size;  // in x
  void* const* buffers;
  size_t buffer_count;
  const uint32_t* params;
  size_t param_count;
};

// Functions return 0, or one of these with the words of SYCL in prism_sycl_message().
enum PrismSyclCode {
  kPrismSyclDone = 0,
  kPrismSyclFailed = 1,
  kPrismSyclMemory = 2,
  kPrismSyclLost = 3,
  kPrismSyclBuild = 4,
};

// Handles are pointers to objects of the plug-in, let go by release_*.
struct PrismSyclApi {
  uint32_t version;
  const char* (*message)();  // of the last failure of this thread

  // Every device; kept by the plug-in, the same at every call.
  int (*devices)(const PrismSyclDevice** list, size_t* count);
  uint64_t (*free_bytes)(size_t device);  // 0: not told

  int (*allocate)(size_t device, uint64_t bytes, void** memory);
  void (*release_memory)(size_t device, void* memory);

  // entries: the kernels to look up in the text, in order. options: of the compiler, ending with
  // null.
  int (*compile)(size_t device, const char* text, const char* const* options,
                 const char* const* entries, size_t count, void** kernels, const char** log);
  void (*release_kernel)(void* kernel);

  int (*make_queue)(size_t device, void** queue);  // in order, with times
  void (*release_queue)(void* queue);
  int (*copy)(void* queue, void* to, const void* from, uint64_t bytes);  // not waited for
  int (*launch)(void* queue, const PrismSyclLaunch* launch);
  int (*wait)(void* queue);

  int (*record_event)(void* queue, void** event);
  int (*wait_event)(void* event);
  int (*event_done)(void* event, int* done);
  int (*event_ns)(void* event, uint64_t* ns);  // when it was reached
  void (*release_event)(void* event);

  // Between the two, copies and launches are put into a graph.
  int (*begin_graph)(void* queue);
  int (*end_graph)(void* queue, void** graph);
  int (*run_graph)(void* queue, void* graph);
  void (*release_graph)(void* graph);
};

typedef const PrismSyclApi* (*PrismSyclEntry)();  // exported as prism_sycl_api

}  // extern "C"
