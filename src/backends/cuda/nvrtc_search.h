// Finding NVRTC's library, one that suits each card, and cuBLAS's.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/nvrtc.h"

namespace prism::cuda {

// Every place NVRTC may be, best first for a driver of that version: PRISM_NVRTC_LIBRARY alone
// where set (a file, or a folder that is searched), else the system's search, CUDA_PATH,
// /usr/local/cuda, the cache folder, Python's packages. A generation that is not newer than the
// driver comes before one that is.
std::vector<std::string> nvrtc_candidates(int driver_version);
// The same for libcublasLt (PRISM_CUBLASLT_LIBRARY).
std::vector<std::string> cublas_candidates(int driver_version);

// Opens compilers one after another, best first, until a card is served: opening one costs
// milliseconds.
class Compilers {
 public:
  explicit Compilers(int driver_version);

  // Null with the reason when no compiler here can serve that compute capability (x10).
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
