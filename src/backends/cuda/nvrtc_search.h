// Search for NVRTC, with a version that suits each card, and for cuBLAS.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/nvrtc.h"

namespace prism::cuda {

// All candidate paths of NVRTC, best first for this driver version. If PRISM_NVRTC_LIBRARY (a file,
// or a folder to search) is set, only that; else the system's search path, CUDA_PATH,
// /usr/local/cuda, the cache folder and Python packages. Generations up to the driver's come before
// newer ones.
std::vector<std::string> nvrtc_candidates(int driver_version);
// The same for libcublasLt (PRISM_CUBLASLT_LIBRARY).
std::vector<std::string> cublas_candidates(int driver_version);

// Opens compilers in turn, best first, until one suits the card: opening one costs milliseconds.
class Compilers {
 public:
  explicit Compilers(int driver_version);

  // Returns null and sets *reason if no compiler supports this compute capability (x10).
  std::shared_ptr<Nvrtc> find(int capability, Target* target, std::string* reason);
  const std::vector<std::shared_ptr<Nvrtc>>& opened() const { return opened_; }

 private:
  bool open_next();

  int driver_version_;
  std::vector<std::string> candidates_;
  size_t next_ = 0;
  std::vector<std::shared_ptr<Nvrtc>> opened_;
};

}  // namespace prism::cuda
