// cuBLAS as the peer of matrix products, loaded at run time in the bench only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::bench {

struct CublasRates {
  double f32 = 0;  // operations per second of SGEMM, tf32 off
  double f16 = 0;  // f16 operands, f32 accumulation and result
};

// Square products of size n; nullopt, with the reason in *note, if the library or a card is
// missing.
std::optional<CublasRates> cublas_rates(uint32_t n, std::string* note);

}  // namespace prism::bench
