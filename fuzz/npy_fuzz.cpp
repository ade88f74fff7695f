// Fuzzes the header of .npy files: a header is rejected, or is the same after it was written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "prism/error.h"
#include "tensor/io/npy_header.h"

using namespace prism;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const NpyHeader read = parse_npy("file", {reinterpret_cast<const char*>(data), size});
    if (read.elements_at > size) std::abort();
    const NpyHeader again = parse_npy("file", npy_header_text("file", read.type, read.shape));
    if (again.type != read.type || again.shape != read.shape || again.fortran_order) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
