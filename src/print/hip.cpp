// Prints HIP with clang's builtins and attributes only, so that hiprtc and plain clang both compile
// it.
//
// Waves have 64 lanes on GCN and CDNA, 32 on RDNA; kernel.subgroup_size selects. A subgroup may be
// narrower than the wave: lane numbers are relative to it. capabilities.dialect_level is the chip's
// gfx number as hexadecimal digits: 0x90a.
#include <algorithm>

#include <fmt/format.h>

#include "print/c_prelude.h"
#include "print/fragment_printer.h"
#include "print/hip_fragments.h"

namespace prism {

using ir::Memory;
using ir::Op;

namespace {

constexpr CTable kTable = {
    {"bool", "int", "unsigned", "int", "unsigned", "int", "unsigned", "long long",
     "unsigned long long", "_Float16", "float", "float", "double"},
    {"unsigned", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned",
     "long long", "unsigned long long", "unsigned short", "unsigned short", "float", "double"},
    "__builtin_{}f",
    "__builtin_{}",
    "(_Float16)__builtin_{}f",
    "",
    "",
    "",
    "prism_word",
    " __restrict__"};

constexpr const char* kFunction = "static inline __attribute__((device, always_inline)) ";

std::vector<PreludeItem> instructions(uint32_t level) {
  const std::string f = kFunction;
  // RDNA 3 replaced the signed dot product by one with a sign flag per operand.
  const char* dot = level >= 0x1100
                        ? "__builtin_amdgcn_sudot4(true, (int)a, true, (int)b, c, false)"
                        : "__builtin_amdgcn_sdot4((int)a, (int)b, c, false)";
  return {
      {"prism_dot4_i8",
       fmt::format("{}int prism_dot4_i8(unsigned a, unsigned b, int c) {{ return {}; }}", f, dot)},
      {"prism_dot4_u8", f + "unsigned prism_dot4_u8(unsigned a, unsigned b, unsigned c) { return "
                            "__builtin_amdgcn_udot4(a, b, c, false); }"},
      {"prism_mul_high_u32", f + "unsigned prism_mul_high_u32(unsigned a, unsigned b) { return "
                                 "(unsigned)(((unsigned long long)a * b) >> 32); }"},
      {"prism_mul_high_i32",
       f + "int prism_mul_high_i32(int a, int b) { return (int)(((long long)a * b) >> 32); }"},
      {"prism_popcount",
       f + "unsigned prism_popcount(unsigned x) { return (unsigned)__builtin_popcount(x); }"},
      {"prism_count_leading_zeros", f + "unsigned prism_count_leading_zeros(unsigned x) { return x "
                                        "== 0u ? 32u : (unsigned)__builtin_clz(x); }"},
      {"prism_f32_from_f16", f + "float prism_f32_from_f16(unsigned short x) { return "
                                 "(float)__builtin_bit_cast(_Float16, x); }"},
      {"prism_f16_from_f32", f + "unsigned short prism_f16_from_f32(float x) { return "
                                 "__builtin_bit_cast(unsigned short, (_Float16)x); }"},
      {"prism_f32_bits",
       f + "unsigned prism_f32_bits(float x) { return __builtin_bit_cast(unsigned, x); }"},
      {"prism_f32_of_bits",
       f + "float prism_f32_of_bits(unsigned x) { return __builtin_bit_cast(float, x); }"},
      {"prism_barrier", f + R"(void prism_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
})"},
      // Weights are read once: a non-temporal load leaves the caches to reused data.
      {"prism_load_weights", f + R"(prism_u32x4 prism_load_weights(const unsigned* from) {
  typedef unsigned Four __attribute__((ext_vector_type(4)));
  return __builtin_bit_cast(prism_u32x4, __builtin_nontemporal_load((const Four*)from));
})",
       true},
  };
}

std::vector<PreludeItem> shuffles() {
  const std::string f = kFunction;
  return {
      {"prism_lane", "template <unsigned size> " + f + R"(unsigned prism_lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)) & (size - 1);
})"},
      // Moves whole words; the source lane is a byte offset into the wave.
      {"prism_shuffle", "template <unsigned size, class T> " + f +
                            R"(T prism_shuffle(T x, unsigned lane) {
  struct Words { int word[(sizeof(T) + 3) / 4]; };
  const unsigned own = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  const unsigned from = (own & ~(size - 1)) | (lane & (size - 1));
  Words words = __builtin_bit_cast(Words, x);
  for (unsigned i = 0; i < sizeof(T) / 4; ++i)
    words.word[i] = __builtin_amdgcn_ds_bpermute((int)(from * 4u), words.word[i]);
  return __builtin_bit_cast(T, words);
}
template <unsigned size> )" +
                            f + R"(_Float16 prism_shuffle(_Float16 x, unsigned lane) {
  return (_Float16)prism_shuffle<size>((float)x, lane);
})"},
      {"prism_shuffle_xor",
       "template <unsigned size, class T> " + f + R"(T prism_shuffle_xor(T x, unsigned mask) {
  return prism_shuffle<size>(x, prism_lane<size>() ^ mask);
})"},
  };
}

std::vector<PreludeItem> atomics(const CFunctions& functions) {
  return atomic_templates(
      functions,
      [](const std::string& op) {
        return fmt::format("__hip_atomic_{}{}(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)",
                           op == "exchange" ? "" : "fetch_", op);
      },
      "__hip_atomic_compare_exchange_strong(p, &expected, x, __ATOMIC_RELAXED, __ATOMIC_RELAXED, "
      "__HIP_MEMORY_SCOPE_AGENT); return expected;");
}

class HipPrinter final : public FragmentPrinter {
 public:
  HipPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
      : FragmentPrinter(kernel, capabilities, kTable,
                        hip_fragment_registers(capabilities.dialect_level)) {}

  std::vector<PreludeItem> prelude() const override {
    const CFunctions functions{kFunction, &kTable};
    std::vector<PreludeItem> items = {
        {"", "#pragma clang fp contract(off)"},
        {"prism_word", "typedef unsigned __attribute__((may_alias)) prism_word;"}};
    append(items, vector_structs(kTable, "__attribute__((aligned({}), may_alias))"));
    append(items, instructions(capabilities_.dialect_level));
    append(items, bit_functions(functions, "prism_f32_bits", "prism_f32_of_bits"));
    items.push_back(pack_f16_function(functions));
    append(items, atomics(functions));
    append(items, combine_templates(functions));
    append(items, shuffles());
    append(items, subgroup_templates(functions));
    append(items, hip_fragment_prelude(capabilities_.dialect_level, kFunction));
    return items;
  }

 protected:
  std::string signature() override {
    return fmt::format(
        "extern \"C\" __attribute__((global, amdgpu_flat_work_group_size({0}, {0}))) void {1}({2})",
        kernel_.group_size, entry(), arguments());
  }

  std::string leaf(Op op, uint32_t axis) override {
    static constexpr const char* kAxes[] = {"x", "y", "z"};
    switch (op) {
      case Op::group_id:
        return fmt::format("__builtin_amdgcn_workgroup_id_{}()", kAxes[axis]);
      case Op::group_count:
        // The grid size is in lanes; groups extend along x only.
        return fmt::format("__builtin_amdgcn_grid_size_{}(){}", kAxes[axis],
                           axis == 0 ? fmt::format(" / {}u", kernel_.group_size) : "");
      case Op::local_id:
        return "__builtin_amdgcn_workitem_id_x()";
      case Op::subgroup_id:
        return fmt::format("__builtin_amdgcn_workitem_id_x() / {}u", kernel_.subgroup_size);
      default:
        return fmt::format("__builtin_amdgcn_workitem_id_x() % {}u", kernel_.subgroup_size);
    }
  }

  std::string barrier() override { return "prism_barrier();"; }
  std::string device_fence() override {
    return "__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, \"agent\");";
  }

  std::string shared_array(const Memory& memory, const std::string& name) override {
    return "__attribute__((shared, aligned(16))) " + array(memory, name) + ";";
  }

  std::string bitcast(Type to, Type, const std::string& text) override {
    return fmt::format("__builtin_bit_cast({}, {})", value_type(to), text);
  }

  std::string load_vector_of_words(const Memory& memory, uint32_t width,
                                   const std::string& address) override {
    if (memory.space == ir::Space::buffer && memory.constant && width == 4)
      return fmt::format("prism_load_weights({})", address);
    return CFamily::load_vector_of_words(memory, width, address);
  }

  bool special(const Inst& inst) override { return fragment(inst); }

  // A lane's words are contiguous if k is the contiguous dimension.
  bool load_at_once(const Inst& inst, const std::string& index,
                    const std::string& stride) override {
    const ir::Fragment& f = kernel_.fragments[inst.object];
    const bool is_a = f.role == ir::FragmentRole::a;
    const uint32_t each = std::min(registers().words, 4u);  // words per load
    const uint32_t elements = each * 4 / static_cast<uint32_t>(dtype_bytes(f.element));
    if (is_a != (inst.bits == 0) || kernel_.memories[inst.object2].element != f.element ||
        !is_aligned(inst, elements))
      return false;
    const std::string vector = vector_type({DType::u32, static_cast<uint8_t>(each)});
    const std::string at =
        fmt::format("{} + {}(0u) * {} + {}<{}>(0u)", index, is_a ? "prism_a_row" : "prism_b_column",
                    stride, is_a ? "prism_a_k" : "prism_b_k", f.k);
    line(fmt::format("prism_load_run({}, {});", fragment_names_[inst.object],
                     pointer(inst.object2, vector, at, false)));
    return true;
  }

  std::string operation(const Inst& inst, DType result, DType argument,
                        const std::vector<std::string>& args) override {
    switch (inst.op) {
      case Op::rsqrt:
        return fmt::format("({} / {})", literal(argument, one(argument)),
                           math("sqrt", argument, bare(args[0])));
      case Op::exp:
      case Op::exp2:
      case Op::log:
      case Op::log2:
      case Op::sin:
      case Op::cos:
      case Op::tanh:
        // Without ROCm's device library the compiler cannot generate these.
        if (argument == DType::f64) cannot(inst);
        break;
      default:
        break;
    }
    return CFamily::operation(inst, result, argument, args);
  }

 private:
  static uint64_t one(DType type) {
    return type == DType::f64 ? 0x3ff0000000000000u : type == DType::f16 ? 0x3c00u : 0x3f800000u;
  }
};

}  // namespace

std::unique_ptr<CFamily> make_hip_printer(const ir::Kernel& kernel,
                                          const ir::Capabilities& capabilities) {
  return std::make_unique<HipPrinter>(kernel, capabilities);
}

}  // namespace prism
