// Kernels made from chains of elementwise functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel.h"
#include "tensor/chain/chain.h"

namespace prism {

// How a kernel addresses the operands of a chain: linearly, if all have the output's layout, or by
// the strides and the offset of every input.
struct ChainAccess {
  int rank = 0;          // strided axes; 0: linear
  bool by_four = false;  // four neighbours along the last axis per lane
  int taken_over = -1;   // the input whose memory the output reuses, element by element
  // By four and strided, for each input: whether the four have one element, instead of four
  // adjacent ones that begin at a multiple of four.
  std::vector<bool> repeated = {};

  std::string key() const;
  // The number of 32-bit parameters besides the constants.
  size_t params(size_t inputs) const;
};

// Buffers: the inputs except the one taken over, then the output. Params: count; if strided, the
// lengths of axes 1 to rank - 1, then rank strides and the offset of each input; the constants of
// chain_params(). By four and strided, everything is counted in fours: the count, the last length,
// and the strides and offsets of inputs that are not repeated. Grid: one group per 256 elements
// (1,024 by four), rounded up.
ir::Kernel chain_kernel(const Chain& chain, const ChainAccess& access);

// The constants that are kernel parameters, in order. 64-bit and b1 constants are part of the code.
std::vector<ir::Param> chain_params(const Chain& chain);
bool is_chain_param(const Chain::Step& step);
std::string chain_kernel_key(const Chain& chain, const ChainAccess& access);

// The value of a chain for loaded inputs, in the register type of its output. For kernels that fuse
// chains into their loads and stores.
dsl::Value emit_chain(const Chain& chain, std::span<const dsl::Value> inputs,
                      std::span<const dsl::Value> constants);

dsl::Value emit_scalar_op(ScalarOp op, dsl::Value a, dsl::Value b, dsl::Value c);

// Loads and stores of tensor elements. bool is a byte of 0 or 1.
DType kernel_type(DType stored);  // of the buffer: u8 for bool
dsl::Value load_element(const dsl::In& from, dsl::Value index, DType stored);
dsl::Value from_loaded(dsl::Value loaded, DType stored);  // from memory to register type
dsl::Value to_stored(dsl::Value value, DType stored);     // from register to memory type
// The value rounded or wrapped to a stored type.
dsl::Value emit_cast(dsl::Value value, DType stored);

// Why a device cannot compute with a type; empty if it can.
std::string lacks_type(const ir::Capabilities& capabilities, DType stored);

}  // namespace prism
