// Prints CUDA C++ without includes. cuda_prelude.cpp has the functions that kernels call.
//
// The text must be compiled with --fmad=false (no contraction) and NVRTC's default, correctly
// rounded division and square root. capabilities.dialect_level is ten times the compute capability.
#include <fmt/format.h>

#include "print/cuda_printer.h"

namespace prism {

using ir::Memory;
using ir::Op;
using ir::Space;

namespace {

constexpr CTable kTable = {
    {"bool", "int", "unsigned", "int", "unsigned", "int", "unsigned", "long long",
     "unsigned long long", "float", "float", "float", "double"},
    {"unsigned", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned",
     "long long", "unsigned long long", "unsigned short", "unsigned short", "float", "double"},
    "{}f",
    "{}",
    "{}f",
    "",
    "",
    "",
    nullptr,
    " __restrict__"};

constexpr uint64_t kStaticSharedBytes = 48 << 10;  // beyond this CUDA needs dynamic shared memory

}  // namespace

CudaPrinter::CudaPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
    : FragmentPrinter(kernel, capabilities, kTable, {8, 4, true}) {
  if (capabilities.dependent_launch)
    ir::walk(kernel.body,
             [&](const Inst& inst) { overlaps_ = overlaps_ || inst.op == Op::wait_previous; });
}

std::vector<PreludeItem> CudaPrinter::prelude() const {
  return cuda_prelude(kTable, capabilities_.dialect_level);
}

// A restricted const pointer lets the compiler load early and through the non-coherent cache, which
// is wrong for data that a running launch is still writing.
bool CudaPrinter::restricted(const Memory& memory) const {
  return CFamily::restricted(memory) && (memory.constant || !overlaps_);
}

std::string CudaPrinter::signature() {
  // No second group fits beside one with so much shared memory: it may use all registers. By
  // itself ptxas leaves registers for others: 64 instead of 129 for the scan of RWKV 7, and 128
  // instead of 152 for decode attention, which then loads operands later.
  const bool alone = 2 * kernel_.shared_bytes() > capabilities_.shared_bytes;
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) {}({})",
                     kernel_.group_size, alone ? ", 1" : "", entry(), arguments());
}

std::string CudaPrinter::leaf(Op op, uint32_t axis) {
  const char name = "xyz"[axis];
  if (op == Op::group_id) return fmt::format("blockIdx.{}", name);
  if (op == Op::group_count) return fmt::format("gridDim.{}", name);
  if (op == Op::local_id) return "threadIdx.x";
  return op == Op::subgroup_id ? "threadIdx.x / 32u" : "threadIdx.x % 32u";
}

std::string CudaPrinter::shared_memory() {
  if (kernel_.shared_bytes() <= kStaticSharedBytes) return CFamily::shared_memory();
  std::string text = "  extern __shared__ __align__(16) unsigned char prism_dynamic_shared[];\n";
  uint64_t offset = 0;
  for (size_t i = 0; i < kernel_.memories.size(); ++i) {
    const Memory& memory = kernel_.memories[i];
    if (memory.space != Space::shared) continue;
    const char* type = stored_type(memory);
    text += fmt::format("  {0}* const {1} = ({0}*)(prism_dynamic_shared + {2});\n", type,
                        memory_names_[i], offset);
    offset += (memory.length * dtype_bytes(memory.element) + 15) / 16 * 16;
  }
  return text;
}

std::string CudaPrinter::shared_array(const Memory& memory, const std::string& name) {
  return "__shared__ __align__(16) " + array(memory, name) + ";";
}

std::string CudaPrinter::bitcast(Type to, Type, const std::string& text) {
  return fmt::format("prism_bitcast<{}>({})", value_type(to), text);
}

std::string CudaPrinter::load_scalar(const Memory& memory, const std::string& name,
                                     const std::string& index) {
  if (memory.space == Space::buffer && memory.constant && memory.element == DType::u32 && overlaps_)
    return fmt::format("prism_load_word(&{}[{}])", name, index);
  // The explicit read-only path, if the buffer is constant for the whole plan.
  if (memory.space == Space::buffer && memory.constant && memory.element != DType::b1)
    return widen(memory.element, fmt::format("__ldg(&{}[{}])", name, index));
  return CFamily::load_scalar(memory, name, index);
}

// Weights are read once, so they bypass the L1 cache. They do not use the read-only path: the
// compiler moves such loads past the wait to save registers. Nor do single words, such as entries
// of a table: it also moves them to uniform registers, for which a kernel waits at once.
std::string CudaPrinter::load_vector_of_words(const Memory& memory, uint32_t width,
                                              const std::string& address) {
  if (memory.space == Space::buffer && memory.constant && width == 4 && overlaps_)
    return fmt::format("prism_load_weights({})", address);
  return CFamily::load_vector_of_words(memory, width, address);
}

std::string CudaPrinter::subgroup_function(const std::string& name, DType type) const {
  const bool word = type == DType::u32 || type == DType::i32;
  static const std::string kReduce = "prism_reduce_";
  if (word && capabilities_.dialect_level >= 80 && name.rfind(kReduce, 0) == 0)
    return "prism_reduce_word_" + name.substr(kReduce.size());
  return CFamily::subgroup_function(name, type);
}

void CudaPrinter::async_copy(const Inst& inst) {
  const size_t bytes = inst.bits * dtype_bytes(kernel_.memories[inst.object].element);
  const std::string to = bare(use(inst.args[0]));
  const std::string from = bare(use(inst.args[1]));
  const std::string copies = inst.args.size() > 2 ? bare(use(inst.args[2])) : "true";
  flush();
  line(fmt::format("prism_async_copy_{}({}, {}, &{}[{}], {});", bytes, memory_names_[inst.object],
                   to, memory_names_[inst.object2], from, copies));
}

bool CudaPrinter::special(const Inst& inst) {
  switch (inst.op) {
    case Op::async_copy:
      async_copy(inst);
      return true;
    case Op::async_wait:
      flush();
      line(fmt::format("prism_async_wait<{}>();", inst.bits));
      return true;
    case Op::async_commit:
    case Op::wait_previous:  // kept by lowering if launches overlap
    case Op::launch_next:
      flush();
      line(fmt::format("prism_{}();", ir::op_name(inst.op)));
      return true;
    default:
      return fragment(inst);
  }
}

std::unique_ptr<CFamily> make_cuda_printer(const ir::Kernel& kernel,
                                           const ir::Capabilities& capabilities) {
  return std::make_unique<CudaPrinter>(kernel, capabilities);
}

}  // namespace prism
