// cuBLASLt, NVIDIA's library of dense products: found at run time, optional.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/cuda/cuda_context.h"
#include "base/handle.h"
#include "base/system/dynamic_library.h"
#include "runtime/native_product.h"

namespace prism::cuda {

// Size of the workspace. NVIDIA's documentation recommends 32 MiB on Hopper.
inline constexpr size_t kProductWorkspace = 32u << 20;

// Opens the library at the first query. Not thread-safe, like all drivers.
class Cublas {
 public:
  explicit Cublas(std::shared_ptr<CudaContext> context);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // "cuBLASLt 13.0 (libcublasLt.so.13)", or why there is none.
  std::string describe();
  bool supports(const NativeProduct& product, std::string* why);
  // Enqueues the product on the stream, which may be capturing. workspace has kProductWorkspace
  // bytes. Returns 0 or a cuBLAS status.
  int run(const NativeProduct& product, DevicePointer a, DevicePointer b, DevicePointer c,
          DevicePointer workspace, Stream stream);

 private:
  using Library = struct LibraryTag*;
  struct Functions;
  struct Prepared;

  bool open();   // loads the library and its functions
  bool start();  // also creates a handle on the device
  Prepared* prepare(const NativeProduct& product, std::string* why);

  std::shared_ptr<CudaContext> context_;
  bool tried_ = false, failed_to_start_ = false;
  DynamicLibrary library_;
  std::unique_ptr<Functions> call_;
  Library handle_ = nullptr;
  std::string absence_;
  size_t version_ = 0;
  std::map<NativeProduct, std::unique_ptr<Prepared>> prepared_;  // null: not supported
};

}  // namespace prism::cuda
