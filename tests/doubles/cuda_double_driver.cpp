// The double's driver: devices, contexts, memory and copies.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "doubles/cuda_double_state.h"

namespace prism::test::cuda_double {
namespace {

int copy(Stream* handle, std::function<void()> step) {
  Stream* stream = known_stream(handle);
  if (!stream) return kInvalidHandle;
  give(*stream, std::move(step), false);
  return 0;
}

}  // namespace
}  // namespace prism::test::cuda_double

using namespace prism::test::cuda_double;

extern "C" {

int cuInit(unsigned) {
  const Lock lock(mutex());
  if (settings().init) return settings().init;
  state().initialized = true;
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = settings().driver;
  return 0;
}

int cuGetErrorName(int result, const char** name) {
  switch (result) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      return 0;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return 0;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return 0;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

int cuGetErrorString(int result, const char** text) {
  *text = result == kIllegalAddress ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  *count = settings().devices;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < settings().devices ? 0 : 101;
}

int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Double of a GPU", static_cast<size_t>(bytes) - 1);
  return 0;
}

int cuDeviceGetAttribute(int* value, int which, int) {
  const int capability = settings().capability;
  const int kilobyte = 1024;
  switch (which) {
    case 1:
      *value = 1024;
      return 0;
    case 5:
      *value = 0x7fffffff;
      return 0;
    case 6:
    case 7:
      *value = 65535;
      return 0;
    case 8:
      *value = 48 * kilobyte;
      return 0;
    case 16:
      *value = 4;
      return 0;
    case 18:
      *value = 0;
      return 0;
    case 20:
      *value = settings().prohibited ? 2 : 0;
      return 0;
    case 75:
      *value = capability / 10;
      return 0;
    case 76:
      *value = capability % 10;
      return 0;
    case 97:
      *value = (capability >= 90   ? 227
                : capability >= 80 ? 163
                : capability >= 70 ? 96
                                   : 48) *
               kilobyte;
      return 0;
    default:
      return kInvalidValue;
  }
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = static_cast<size_t>(settings().memory);
  return 0;
}

int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<size_t>(bytes), "00000000:%02X:00.0", 0xA1 + device);
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Lock lock(mutex());
  if (state().lost) return state().lost;
  ++state().retained[static_cast<size_t>(device)];
  *context = reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1);
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  const Lock lock(mutex());
  --state().retained[static_cast<size_t>(device)];
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  current.push_back(static_cast<int>(reinterpret_cast<uintptr_t>(context)));
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = reinterpret_cast<void*>(static_cast<uintptr_t>(current.back()));
  current.pop_back();
  return 0;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  const long long used = prism_cuda_double_count("live_bytes");
  *total = static_cast<size_t>(settings().memory);
  *free = static_cast<size_t>(std::max(0ll, settings().memory - used));
  return 0;
}

int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (bytes == 0) return kInvalidValue;
  if (settings().fail_allocation && --settings().fail_allocation == 0) return kOutOfMemory;
  const long long used = prism_cuda_double_count("live_bytes");
  if (bytes > static_cast<size_t>(std::max(0ll, settings().memory - used))) return kOutOfMemory;
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.storage = std::make_unique_for_overwrite<unsigned char[]>(bytes + 2 * kFence);
  std::memset(allocation.storage.get(), kFenceByte, bytes + 2 * kFence);
  std::memset(allocation.data(), kFreshByte, bytes);
  *pointer = reinterpret_cast<uint64_t>(allocation.data());
  state().allocations[*pointer] = std::move(allocation);
  ++counter("allocations");
  return 0;
}

int cuMemFree_v2(uint64_t pointer) {
  const Lock lock(mutex());
  if (const int result = enter(); result && !state().lost) return result;
  for (Stream* stream : state().streams)
    drain(*stream);  // like the driver, which waits for the device
  const auto found = state().allocations.find(pointer);
  if (found == state().allocations.end()) {
    ++counter("misuses");
    return kInvalidValue;
  }
  const Allocation& allocation = found->second;
  const unsigned char* start = allocation.storage.get();
  for (size_t i = 0; i < kFence; ++i)
    if (start[i] != kFenceByte || start[kFence + allocation.bytes + i] != kFenceByte) {
      ++counter("overruns");
      break;
    }
  state().allocations.erase(found);
  return state().lost;
}

int cuMemGetAddressRange_v2(uint64_t* start, size_t* bytes, uint64_t pointer) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  const Allocation* found = allocation_of(pointer, 1);
  if (!found) return kNotFound;
  *start = reinterpret_cast<uint64_t>(found->data());
  *bytes = found->bytes;
  return 0;
}

int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  *pointer = std::malloc(bytes);
  state().host.insert(*pointer);
  return 0;
}

int cuMemFreeHost(void* pointer) {
  const Lock lock(mutex());
  if (!state().host.erase(pointer)) return kInvalidValue;
  std::free(pointer);
  return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!allocation_of(to, bytes)) return kInvalidValue;
  return copy(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!allocation_of(from, bytes)) return kInvalidValue;
  return copy(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!allocation_of(to, bytes) || !allocation_of(from, bytes)) return kInvalidValue;
  return copy(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}

}  // extern "C"
