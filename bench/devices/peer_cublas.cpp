// Times cuBLAS through its C interface, loaded at run time.
#include "peer_cublas.h"

#include "bench.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/cache_folder.h"
#include "base/system/dynamic_library.h"
#include "prism/dtype.h"

namespace prism::bench {
namespace {

// The few entry points in use, with the types of cuda.h and cublas_api.h.
using Pointer = unsigned long long;
using Status = int;
struct Driver {
  Status (*init)(unsigned);
  Status (*device)(int*, int);
  Status (*retain)(void**, int);
  Status (*set_context)(void*);
  Status (*allocate)(Pointer*, size_t);
  Status (*free)(Pointer);
  Status (*copy_to)(Pointer, const void*, size_t);
  Status (*event_create)(void**, unsigned);
  Status (*event_record)(void*, void*);
  Status (*event_wait)(void*);
  Status (*event_ms)(float*, void*, void*);
};
struct Cublas {
  Status (*create)(void**);
  Status (*destroy)(void*);
  Status (*gemm)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*,
                 int, int, const void*, void*, int, int, int, int);
};
constexpr int kNoTranspose = 0, kF32 = 0, kF16 = 2, kCompute32 = 68, kDefaultAlgorithm = -1;

template <class F>
bool load(const DynamicLibrary& library, F& function, const char* name) {
  function = library.function<F>(name);
  return function != nullptr;
}

DynamicLibrary open_cublas() {
  std::vector<std::string> names;
  for (const char* file :
       {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"}) {
    names.emplace_back(file);
    if (const char* root = std::getenv("CUDA_PATH"))
      names.push_back(std::string(root) + "/lib64/" + file);
    names.push_back(std::string("/usr/local/cuda/lib64/") + file);
  }
  return DynamicLibrary::open_first(names);
}

double seconds_of(const Driver& driver, const std::vector<void*>& events, const auto& work) {
  work();
  double best = 1e9;
  // Rounds as long as those of our kernels: a card clocks lower under sustained load.
  int calls = 1;
  for (int run = 0; run < 3;) {
    driver.event_record(events[0], nullptr);
    for (int i = 0; i < calls; ++i) work();
    driver.event_record(events[1], nullptr);
    driver.event_wait(events[1]);
    float ms = 0;
    driver.event_ms(&ms, events[0], events[1]);
    if (run == 0 && ms < 100 && calls < (1 << 20)) {
      calls *= 2;
      continue;
    }
    best = std::min(best, static_cast<double>(ms) * 1e-3 / calls);
    ++run;
  }
  return best;
}

}  // namespace

std::optional<CublasRates> cublas_rates(uint32_t n, std::string* note) {
  static DynamicLibrary cuda = DynamicLibrary::open_first({"libcuda.so.1"}), blas = open_cublas();
  cuda.keep_open();
  blas.keep_open();
  if (!cuda || !blas) {
    *note = "no peer: libcublas was not found";
    return std::nullopt;
  }
  Driver driver{};
  Cublas cublas{};
  const bool loaded =
      load(cuda, driver.init, "cuInit") && load(cuda, driver.device, "cuDeviceGet") &&
      load(cuda, driver.retain, "cuDevicePrimaryCtxRetain") &&
      load(cuda, driver.set_context, "cuCtxSetCurrent") &&
      load(cuda, driver.allocate, "cuMemAlloc_v2") && load(cuda, driver.free, "cuMemFree_v2") &&
      load(cuda, driver.copy_to, "cuMemcpyHtoD_v2") &&
      load(cuda, driver.event_create, "cuEventCreate") &&
      load(cuda, driver.event_record, "cuEventRecord") &&
      load(cuda, driver.event_wait, "cuEventSynchronize") &&
      load(cuda, driver.event_ms, "cuEventElapsedTime") &&
      load(blas, cublas.create, "cublasCreate_v2") &&
      load(blas, cublas.destroy, "cublasDestroy_v2") && load(blas, cublas.gemm, "cublasGemmEx");
  int device = 0;
  void *context = nullptr, *handle = nullptr;
  if (!loaded || driver.init(0) || driver.device(&device, 0) || driver.retain(&context, device) ||
      driver.set_context(context) || cublas.create(&handle)) {
    *note = "no peer: cuBLAS could not be started";
    return std::nullopt;
  }
  const uint64_t elements = static_cast<uint64_t>(n) * n;
  const std::vector<float> values = random_values(elements);
  std::vector<uint16_t> halves(elements);
  for (size_t i = 0; i < elements; ++i) halves[i] = f16_from_f32(values[i]);
  Pointer a = 0, b = 0, c = 0;
  std::vector<void*> events(2);
  if (driver.allocate(&a, elements * 4) || driver.allocate(&b, elements * 4) ||
      driver.allocate(&c, elements * 4) || driver.event_create(&events[0], 0) ||
      driver.event_create(&events[1], 0)) {
    *note = "no peer: no memory for cuBLAS";
    return std::nullopt;
  }
  const float one = 1, zero = 0;
  const int size = static_cast<int>(n);
  const auto as_pointer = [](Pointer p) { return reinterpret_cast<void*>(p); };
  Status status = 0;
  const auto gemm = [&](int type) {
    // CUBLAS_COMPUTE_32F: plain f32 arithmetic; tf32 needs another compute type.
    status |= cublas.gemm(handle, kNoTranspose, kNoTranspose, size, size, size, &one, as_pointer(a),
                          type, size, as_pointer(b), type, size, &zero, as_pointer(c), type, size,
                          kCompute32, kDefaultAlgorithm);
  };
  CublasRates rates;
  const double operations = 2.0 * n * n * n;
  driver.copy_to(a, values.data(), elements * 4);
  driver.copy_to(b, values.data(), elements * 4);
  rates.f32 = operations / seconds_of(driver, events, [&] { gemm(kF32); });
  driver.copy_to(a, halves.data(), elements * 2);
  driver.copy_to(b, halves.data(), elements * 2);
  rates.f16 = operations / seconds_of(driver, events, [&] { gemm(kF16); });
  for (const Pointer p : {a, b, c}) driver.free(p);
  cublas.destroy(handle);
  if (status) {
    *note = "no peer: cuBLAS refused the product";
    return std::nullopt;
  }
  return rates;
}

}  // namespace prism::bench
