// Prints CUDA C++ without includes: NVRTC builtins, and inline PTX in prelude functions.
//
// The text must be compiled with --fmad=false (no contraction) and NVRTC's default, correctly
// rounded division and square root. capabilities.dialect_level is ten times the compute capability.
#include <algorithm>

#include <fmt/format.h>

#include "print/c_prelude.h"
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

constexpr const char* kFunction = "__device__ __forceinline__ ";
constexpr uint64_t kStaticSharedBytes = 48 << 10;  // beyond this CUDA needs dynamic shared memory

// The kernel text is the same for every level; the level selects the instruction in each prelude
// function.
std::vector<PreludeItem> instructions(uint32_t level) {
  const std::string f = kFunction, t = "template <class T> " + f;
  std::vector<PreludeItem> items = {
      {"prism_bitcast",
       "template <class To, class From> " + f +
           "To prism_bitcast(From x) { union { From from; To to; } u; u.from = x; return u.to; }"},
      {"prism_mul_high_u32",
       f + "unsigned prism_mul_high_u32(unsigned a, unsigned b) { return __umulhi(a, b); }"},
      {"prism_mul_high_i32", f + "int prism_mul_high_i32(int a, int b) { return __mulhi(a, b); }"},
      {"prism_popcount",
       f + "unsigned prism_popcount(unsigned x) { return (unsigned)__popc((int)x); }"},
      {"prism_count_leading_zeros",
       f + "unsigned prism_count_leading_zeros(unsigned x) { return (unsigned)__clz((int)x); }"},
      {"prism_dot4_i8", f + "int prism_dot4_i8(unsigned a, unsigned b, int c) { return "
                            "__dp4a((int)a, (int)b, c); }"},
      {"prism_dot4_u8", f + "unsigned prism_dot4_u8(unsigned a, unsigned b, unsigned c) { return "
                            "__dp4a(a, b, c); }"},
      {"prism_f32_from_f16", f + R"(float prism_f32_from_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
})",
       true},
      {"prism_f16_from_f32",
       f + R"(unsigned short prism_f16_from_f32(float x) { unsigned short y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; })",
       true},
  };
  if (level >= 80)
    items.push_back(
        {"prism_pack_f16",
         f + R"(unsigned prism_pack_f16(float low, float high) { unsigned y; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low)); return y; })",
         true});
  else
    items.push_back({"prism_pack_f16", f + R"(unsigned prism_pack_f16(float low, float high) {
  return (unsigned)prism_f16_from_f32(low) | ((unsigned)prism_f16_from_f32(high) << 16);
})",
                     true});
  append(
      items,
      {
          {"prism_fma_f16x2",
           f + R"(unsigned prism_fma_f16x2(unsigned a, unsigned b, unsigned c) { asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c)); return a; })",
           true},
          {"prism_wait_previous",
           f + R"(void prism_wait_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); })",
           true},
          {"prism_launch_next",
           f + R"(void prism_launch_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); })",
           true},
          {"prism_device_fence",
           // Acquire-release suffices: __threadfence() also takes part in one total order of
           // fences.
           f + (level >= 70
                    ? R"(void prism_device_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); })"
                    : "void prism_device_fence() { __threadfence(); }"),
           true},
          {"prism_load_weights", f + R"(prism_u32x4 prism_load_weights(const unsigned* from) {
  prism_u32x4 x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
})",
           true},
          {"prism_load_word",
           f + R"(unsigned prism_load_word(const unsigned* from) { unsigned x; asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(from)); return x; })",
           true},
          {"prism_shared_address",
           // Adds the index in 32 bits: with 64-bit addresses NVRTC generates a tenth more code.
           t + R"(unsigned prism_shared_address(const T* array, unsigned index) { return (unsigned)__cvta_generic_to_shared(array) + index * (unsigned)sizeof(T); })",
           true},
          {"prism_async_copy",
           t + R"(void prism_async_copy_4(T* to, unsigned index, const void* from, bool copies) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(prism_shared_address(to, index)), "l"(from), "r"(copies ? 4 : 0) : "memory");
}
)" + t + R"(void prism_async_copy_8(T* to, unsigned index, const void* from, bool copies) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(prism_shared_address(to, index)), "l"(from), "r"(copies ? 8 : 0) : "memory");
}
)" + t + R"(void prism_async_copy_16(T* to, unsigned index, const void* from, bool copies) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(prism_shared_address(to, index)), "l"(from), "r"(copies ? 16 : 0) : "memory");
})",
           true},
          {"prism_async_commit",
           f + R"(void prism_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); })",
           true},
          {"prism_async_wait",
           "template <int under_way> " + f +
               R"(void prism_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(under_way) : "memory"); })",
           true},
      });
  items[items.size() - 3].names = "prism_async_copy_4 prism_async_copy_8 prism_async_copy_16";
  return items;
}

std::vector<PreludeItem> atomics(const CFunctions& functions) {
  return atomic_templates(
      functions,
      [](const std::string& op) {
        std::string name = op == "exchange" ? "exch" : op;
        name[0] = static_cast<char>(name[0] - 'a' + 'A');
        return "atomic" + name + "(p, x)";
      },
      "return atomicCAS(p, expected, x);");
}

std::vector<PreludeItem> shuffles(uint32_t level) {
  const std::string f = kFunction;
  std::vector<PreludeItem> items = {
      {"prism_shuffle", "template <unsigned size, class T> " + f +
                            "T prism_shuffle(T x, unsigned lane) { return __shfl_sync(0xffffffffu, "
                            "x, (int)lane); }"},
      {"prism_shuffle_xor", "template <unsigned size, class T> " + f +
                                "T prism_shuffle_xor(T x, unsigned mask) { return "
                                "__shfl_xor_sync(0xffffffffu, x, (int)mask); }"},
  };
  if (level >= 80)
    for (const char* op : {"add", "min", "max", "and", "or", "xor"}) {
      std::string text = fmt::format(
          "{0}unsigned prism_reduce_word_{1}(unsigned x) {{ return __reduce_{1}_sync(0xffffffffu, "
          "x); }}",
          f, op);
      const std::string name = op;
      if (name == "add" || name == "min" || name == "max")
        text += fmt::format(
            "\n{0}int prism_reduce_word_{1}(int x) {{ return __reduce_{1}_sync(0xffffffffu, x); }}",
            f, op);
      else
        text += fmt::format(
            "\n{0}int prism_reduce_word_{1}(int x) {{ return (int)__reduce_{1}_sync(0xffffffffu, "
            "(unsigned)x); }}",
            f, op);
      items.push_back({"prism_reduce_word_" + name, text});
    }
  return items;
}

}  // namespace

CudaPrinter::CudaPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
    : FragmentPrinter(kernel, capabilities, kTable, {8, 4, true}) {
  if (capabilities.dependent_launch)
    ir::walk(kernel.body,
             [&](const Inst& inst) { overlaps_ = overlaps_ || inst.op == Op::wait_previous; });
}

std::vector<PreludeItem> CudaPrinter::prelude() const {
  const CFunctions functions{kFunction, &kTable};
  std::vector<PreludeItem> items = vector_structs(kTable, "alignas({})");
  append(items, instructions(capabilities_.dialect_level));
  append(items, bit_functions(functions, "__float_as_uint", "__uint_as_float"));
  append(items, atomics(functions));
  append(items, combine_templates(functions));
  append(items, shuffles(capabilities_.dialect_level));
  append(items, subgroup_templates(functions));
  append(items, cuda_fragment_prelude(capabilities_.dialect_level, kFunction));
  return items;
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
