// Kernels and their blocks in two halves, for callers that cannot pass a body as a function.
//
//   const std::unique_ptr<Builder> builder = begin_kernel("add", 256);
//   OpenBlock block = begin_if(global_id() < count);
//   ...
//   end_block(std::move(block));
//   const Kernel add = end_kernel(*builder);
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "dsl/builder.h"
#include "prism/kernel.h"

namespace prism::dsl {

// A statement whose block is being written. A block that is given up needs Builder::end_block().
struct OpenBlock {
  ir::Inst inst;
  ir::Value index = ir::kNone;  // of begin_for: the loop's index
};

// The builder is the current one of this thread until it is destroyed.
std::unique_ptr<Builder> begin_kernel(const std::string& name, uint32_t group_size,
                                      const Where& where = {});
Kernel end_kernel(Builder& builder);  // verifies the kernel

OpenBlock begin_if(Operand condition, const Where& where = {});
OpenBlock begin_else(const Where& where = {});  // of the if that ended last
OpenBlock begin_for(Operand start, Operand end, Operand step, bool unroll, const Where& where = {});
// condition: writes the block that is run before each turn.
OpenBlock begin_while(const std::function<Value()>& condition, const Where& where = {});
void end_block(OpenBlock block);

// raw() with a number of arguments that is known at run time.
Value raw_with(const std::string& dialect, const std::string& text,
               std::span<const Value> arguments, Type type, const std::function<Value()>& meaning,
               const Where& where);

}  // namespace prism::dsl
