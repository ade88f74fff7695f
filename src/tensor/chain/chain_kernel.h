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
  int rank = 0;          // axes of a walk by strides; 0: straight on
  bool by_four = false;  // four elements a lane, straight on only
  int taken_over = -1;   // the input whose memory is the output's: element i becomes element i

  std::string key() const;
  // The number of 32-bit parameters besides the constants.
  size_t params(size_t inputs) const;
};

// Buffers: the inputs without the one taken over, then the output. Params: count; with strides the
// lengths of axes 1 to rank - 1, then rank strides and the offset of each input; the constants of
// chain_params(). Grid: count / 256 groups (1,024 elements a group by four), rounded up.
ir::Kernel chain_kernel(const Chain& chain, const ChainAccess& access);

// The constants that are parameters of the kernel, in order. 64-bit constants and truth values are
// part of its code.
std::vector<ir::Param> chain_params(const Chain& chain);
bool is_chain_param(const Chain::Step& step);
std::string chain_kernel_key(const Chain& chain, const ChainAccess& access);

// The value of a chain for loaded inputs, in the register type of its output. For kernels that fuse
// chains into their loads and stores.
dsl::Value emit_chain(const Chain& chain, std::span<const dsl::Value> inputs,
                      std::span<const dsl::Value> constants);

dsl::Value emit_scalar_op(ScalarOp op, dsl::Value a, dsl::Value b, dsl::Value c);

// Loads and stores of tensor elements. bool is a byte of 0 or 1.
DType kernel_type(DType stored);  // the buffer's: u8 for bool
dsl::Value load_element(const dsl::In& from, dsl::Value index, DType stored);
dsl::Value from_loaded(dsl::Value loaded, DType stored);  // a loaded element as a register
dsl::Value to_stored(dsl::Value value, DType stored);     // a register as what a store takes
// The value rounded or wrapped to a stored type.
dsl::Value emit_cast(dsl::Value value, DType stored);

// Why a device cannot compute with a type; empty if it can.
std::string lacks_type(const ir::Capabilities& capabilities, DType stored);

}  // namespace prism
