// Evaluates a chain on the CPU over pieces of contiguous results that fit the L1 cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tensor/chain/chain.h"

namespace prism {

// Elements of a piece: 1,024 f64 take 8 KiB, so a chain of a few steps fits 32 KiB.
inline constexpr int64_t kChainPiece = 1024;

// For one thread. The chain must outlive it.
class ChainPieces {
 public:
  // most: the largest number of elements of a run; at most kChainPiece.
  ChainPieces(const Chain& chain, int64_t most);

  int64_t most() const { return static_cast<int64_t>(most_); }

  struct Input {
    const std::byte* first = nullptr;
    int64_t stride = 0;  // in elements
  };
  // Computes n elements. to may be the memory of an input with the same element size and stride 1.
  void run(std::span<const Input> inputs, int64_t n, std::byte* to);

 private:
  template <class T>
  T* at(size_t step) {
    return static_cast<T*>(static_cast<void*>(registers_.get() + step * most_));
  }
  void write_constant(size_t step);
  void cast(const Chain::Step& step, void* to, size_t count);

  const Chain& chain_;
  size_t most_;
  bool stores_directly_;  // the last function writes its results to memory itself
  std::unique_ptr<double[]> registers_;
  std::vector<const void*> values_;  // of each step: its register, or the memory of an input
};

}  // namespace prism
