// Prints OpenCL C 1.2; features of newer versions are used only if the capabilities allow it.
//
// capabilities.dialect_level is 100 times the OpenCL C version (120, 200, 300) the text is compiled
// as. Subgroup operations need 200 or more with cl_khr_subgroups and a shuffle extension, float
// atomics need 300 with cl_ext_float_atomics, dot4 needs cl_khr_integer_dot_product; NVIDIA uses
// PTX for subgroups and dot4.
#include <fmt/format.h>

#include "ir/bindings.h"
#include "print/c_family.h"
#include "print/c_prelude.h"
#include "print/opencl_subgroups.h"

namespace prism {

using ir::Memory;
using ir::Op;
using ir::Space;

namespace {

constexpr CTable kTable = {{"bool", "int", "uint", "int", "uint", "int", "uint", "long", "ulong",
                            "half", "float", "float", "double"},
                           {"uint", "char", "uchar", "short", "ushort", "int", "uint", "long",
                            "ulong", "ushort", "ushort", "float", "double"},
                           "{}",
                           "{}",
                           "{}",
                           "__global ",
                           "__local ",
                           "__private ",
                           nullptr,
                           " restrict",
                           "get_num_groups(0)"};

constexpr const char* kFunction = "static inline ";

std::string vector_name(ir::Type type) {
  // There are no vectors of bool; int holds 0 or 1.
  const char* element = type.element == DType::b1 ? "int"
                        : is_float(type.element)  ? kTable.values[static_cast<size_t>(type.element)]
                                                 : kTable.stored[static_cast<size_t>(type.element)];
  return fmt::format("{}{}", element, type.lanes);
}

std::vector<PreludeItem> vector_makers() {
  std::vector<PreludeItem> items;
  for (const char* type : {"int", "uint", "char", "uchar", "short", "ushort", "long", "ulong",
                           "half", "float", "double"}) {
    items.push_back({fmt::format("prism_make_{}2", type),
                     fmt::format("#define prism_make_{0}2(x, y) (({0}2)((x), (y)))", type), true});
    items.push_back(
        {fmt::format("prism_make_{}4", type),
         fmt::format("#define prism_make_{0}4(x, y, z, w) (({0}4)((x), (y), (z), (w)))", type),
         true});
  }
  return items;
}

std::vector<PreludeItem> atomics(bool float_add) {
  std::vector<PreludeItem> items;
  const std::pair<const char*, const char*> kOps[] = {
      {"add", "atomic_add"},      {"min", "atomic_min"}, {"max", "atomic_max"},
      {"and", "atomic_and"},      {"or", "atomic_or"},   {"xor", "atomic_xor"},
      {"exchange", "atomic_xchg"}};
  for (const auto& [name, function] : kOps)
    for (const auto& [type, c_type] : {std::pair{"i32", "int"}, {"u32", "uint"}, {"f32", "float"}})
      for (const char* space : {"global", "local"}) {
        const std::string op = name, full = fmt::format("prism_atomic_{}_{}_{}", op, type, space);
        const bool is_f32 = type[0] == 'f';
        if (is_f32 && op != "exchange" && !(op == "add" && float_add)) continue;
        const std::string body =
            is_f32 && op == "add"
                ? fmt::format(
                      "atomic_fetch_add_explicit((volatile __{} atomic_float*)p, x, "
                      "memory_order_relaxed, {})",
                      space, space[0] == 'g' ? "memory_scope_device" : "memory_scope_work_group")
                : fmt::format("{}(p, x)", function);
        items.push_back(
            {full, fmt::format("{0}{1} {2}(volatile __{3} {1}* p, {1} x) {{ return {4}; }}",
                               kFunction, c_type, full, space, body)});
      }
  for (const auto& [type, c_type] : {std::pair{"i32", "int"}, {"u32", "uint"}})
    for (const char* space : {"global", "local"}) {
      const std::string full = fmt::format("prism_atomic_compare_exchange_{}_{}", type, space);
      items.push_back(
          {full,
           fmt::format(
               "{0}{1} {2}(volatile __{3} {1}* p, {1} x, {1} expected) {{ return atomic_cmpxchg(p, "
               "expected, x); }}",
               kFunction, c_type, full, space)});
    }
  return items;
}

std::string extension(const char* name) {
  return fmt::format("#ifdef {0}\n#pragma OPENCL EXTENSION {0} : enable\n#endif", name);
}

class OpenClPrinter final : public CFamily {
 public:
  OpenClPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
      : CFamily(kernel, capabilities, kTable) {
    for (const std::string& memory : memory_names_)
      offset_names_.push_back(names_.unique(memory + "_offset"));
  }

  std::vector<PreludeItem> prelude() const override {
    const std::string f = kFunction;
    std::vector<PreludeItem> items = {
        {"", "#pragma OPENCL FP_CONTRACT OFF"},
        {"double double2 double4", extension("cl_khr_fp64")},
        {"prism_subgroup_size",
         extension("cl_khr_subgroups") + "\n" + extension("cl_intel_subgroups") + R"(
#ifdef cl_intel_required_subgroup_size
#define prism_subgroup_size(size) __attribute__((intel_reqd_sub_group_size(size)))
#else
#define prism_subgroup_size(size)
#endif)"},
    };
    if (capabilities_.math_f16) items.push_back({"half half2 half4", extension("cl_khr_fp16")});
    append(items, hidden_negations(kTable));
    append(items, vector_makers());
    append(
        items,
        {
            {"prism_mul_high_u32",
             f + "uint prism_mul_high_u32(uint a, uint b) { return mul_hi(a, b); }"},
            {"prism_mul_high_i32",
             f + "int prism_mul_high_i32(int a, int b) { return mul_hi(a, b); }"},
            {"prism_popcount", f + "uint prism_popcount(uint x) { return popcount(x); }"},
            {"prism_count_leading_zeros",
             f + "uint prism_count_leading_zeros(uint x) { return clz(x); }"},
            // NVIDIA's compiler has the instruction but not the extension; its backend defines the
            // macro.
            {"prism_dot4_i8", "#ifdef PRISM_DOT4_BY_PTX\n" + f +
                                  R"(int prism_dot4_i8(uint a, uint b, int c) {
  int y;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}
#else
)" + f +
                                  R"(int prism_dot4_i8(uint a, uint b, int c) {
  return (int)((uint)dot_4x8packed_ss_int(a, b) + (uint)c);
}
#endif)"},
            {"prism_dot4_u8",
             "#ifdef PRISM_DOT4_BY_PTX\n" + f +
                 R"(uint prism_dot4_u8(uint a, uint b, uint c) {
  uint y;
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}
#else
)" + f +
                 R"(uint prism_dot4_u8(uint a, uint b, uint c) { return dot_4x8packed_uu_uint(a, b) + c; }
#endif)"},
            // Core OpenCL converts half only between memory and float, so the bits go through a
            // private word.
            {"prism_f32_from_f16", f + "float prism_f32_from_f16(ushort x) { return vload_half(0, "
                                       "(const __private half*)&x); }"},
            {"prism_f16_from_f32", f + "ushort prism_f16_from_f32(float x) { ushort y; "
                                       "vstore_half_rte(x, 0, (__private half*)&y); return y; }"},
        });
    const CFunctions functions{kFunction, &kTable};
    items.push_back(pack_f16_function(functions));
    append(items, bit_functions(functions, "as_uint", "as_float"));
    append(items, atomics(capabilities_.float_atomics));
    append(items, opencl_subgroup_prelude(kFunction));
    return items;
  }

 protected:
  std::string signature() override {
    return fmt::format(
        "__kernel __attribute__((reqd_work_group_size({}, 1, 1))){}\nvoid {}({})",
        kernel_.group_size,
        kernel_.subgroup_size ? fmt::format(" prism_subgroup_size({})", kernel_.subgroup_size) : "",
        entry(), arguments());
  }

  // A binding is a whole buffer and an offset in bytes. A sub-buffer of the range would do without
  // the offset, but NVIDIA's driver crashes when sub-buffers that overlap are released (580.159).
  std::string buffer_argument(uint32_t memory) const override {
    return fmt::format("{}, ulong {}", CFamily::buffer_argument(memory), offset_names_[memory]);
  }
  std::string prologue() override {
    std::vector<std::string> lines;
    for (uint32_t i : ir::bindings(kernel_)) {
      const char* access = kernel_.memories[i].access == ir::Access::read ? "const " : "";
      lines.push_back(fmt::format("{0} = (__global {1}{2}*)((__global {1}char*){0} + {3});",
                                  memory_names_[i], access, stored_type(kernel_.memories[i]),
                                  offset_names_[i]));
    }
    return fmt::format("{}", fmt::join(lines, "\n  "));
  }

  std::string leaf(Op op, uint32_t axis) override {
    switch (op) {
      case Op::group_id:
        return fmt::format("(uint)get_group_id({})", axis);
      case Op::group_count:
        return fmt::format("(uint)get_num_groups({})", axis);
      case Op::local_id:
        return "(uint)get_local_id(0)";
      case Op::subgroup_id:
        return "prism_subgroup()";
      default:
        return "prism_lane()";
    }
  }

  std::string barrier() override { return "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"; }
  std::string device_fence() override { return "prism_device_fence();"; }

  std::string shared_array(const Memory& memory, const std::string& name) override {
    // Vectors of four 8-byte elements need 32 bytes.
    return fmt::format("__local {} __attribute__((aligned({})));", array(memory, name),
                       dtype_bytes(memory.element) == 8 ? 32 : 16);
  }

  std::string bitcast(Type to, Type, const std::string& text) override {
    return fmt::format("as_{}({})", value_type(to), text);
  }

  std::string vector_type(Type type) const override { return vector_name(type); }
  std::string make_vector(Type type, const std::vector<std::string>& lanes) const override {
    return fmt::format("prism_make_{}({})", vector_name(type), fmt::join(lanes, ", "));
  }

  std::string atomic(const Inst& inst, const std::string& pointer,
                     const std::vector<std::string>& args) override {
    const bool global = kernel_.memories[inst.object].space == Space::buffer;
    return typed_atomic(inst, global ? "global" : "local", pointer, args);
  }

  std::string subgroup_function(const std::string& name, DType type) const override {
    return name + "_" + dtype_name(type);
  }

 private:
  std::vector<std::string> offset_names_;  // by memory
};

}  // namespace

std::unique_ptr<CFamily> make_opencl_printer(const ir::Kernel& kernel,
                                             const ir::Capabilities& capabilities) {
  return std::make_unique<OpenClPrinter>(kernel, capabilities);
}

}  // namespace prism
