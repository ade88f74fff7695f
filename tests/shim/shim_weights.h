// Loads of weights, whose printed text only the vendor's compiler accepts.
#pragma once

#include <cstdint>
#include <cstring>

#include "fibers.h"

// Converts to the vector type, which the printed text declares after this header.
struct prism_loaded_weights {
  const unsigned* from;
  template <class Vector>
  operator Vector() const {
    if (reinterpret_cast<uintptr_t>(from) % sizeof(Vector))
      shim::machine.failure = "weights are not aligned to a load";
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
};
inline prism_loaded_weights prism_load_weights(const unsigned* from) { return {from}; }
inline unsigned prism_load_word(const unsigned* from) { return *from; }
