// Prints SYCL as a free-function kernel, the form that Intel's run-time compiler accepts.
//
// x is SYCL's dimension 2. The text must be compiled with -ffp-contract=off: that compiler ignores
// the pragma.
#include <algorithm>

#include <fmt/format.h>

#include "print/c_family.h"
#include "print/c_prelude.h"

namespace prism {

using ir::Memory;
using ir::Op;

namespace {

constexpr CTable kTable = {
    {"bool", "int", "unsigned", "int", "unsigned", "int", "unsigned", "long long",
     "unsigned long long", "sycl::half", "float", "float", "double"},
    {"unsigned", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned",
     "long long", "unsigned long long", "unsigned short", "unsigned short", "float", "double"},
    "sycl::{}",
    "sycl::{}",
    "sycl::{}",
    "",
    "",
    "",
    "prism_word",
    " __restrict__",
    "prism_item.get_group_range(2)"};

constexpr const char* kFunction = "static inline ";

std::vector<PreludeItem> instructions() {
  const std::string f = kFunction;
  return {
      {"prism_array",
       "template <class T, unsigned length> struct alignas(16) prism_array { T data[length]; };"},
      {"prism_mul_high_u32",
       f + "unsigned prism_mul_high_u32(unsigned a, unsigned b) { return sycl::mul_hi(a, b); }"},
      {"prism_mul_high_i32",
       f + "int prism_mul_high_i32(int a, int b) { return sycl::mul_hi(a, b); }"},
      {"prism_popcount", f + "unsigned prism_popcount(unsigned x) { return sycl::popcount(x); }"},
      {"prism_count_leading_zeros",
       f + "unsigned prism_count_leading_zeros(unsigned x) { return sycl::clz(x); }"},
      {"prism_f32_from_f16", f + "float prism_f32_from_f16(unsigned short x) { return "
                                 "(float)sycl::bit_cast<sycl::half>(x); }"},
      {"prism_f16_from_f32", f + "unsigned short prism_f16_from_f32(float x) { return "
                                 "sycl::bit_cast<unsigned short>((sycl::half)x); }"},
  };
}

std::vector<PreludeItem> shuffles() {
  const std::string f = kFunction;
  const std::string subgroup = "sycl::ext::oneapi::this_work_item::get_sub_group()";
  return {
      {"prism_shuffle",
       "template <unsigned size, class T> " + f +
           "T prism_shuffle(T x, unsigned lane) {\n  return sycl::select_from_group(" + subgroup +
           ", x, lane);\n}"},
      {"prism_shuffle_xor",
       "template <unsigned size, class T> " + f +
           "T prism_shuffle_xor(T x, unsigned mask) {\n  return sycl::permute_group_by_xor(" +
           subgroup + ", x, mask);\n}"},
  };
}

std::vector<PreludeItem> atomics(const CFunctions& functions) {
  std::vector<PreludeItem> items = {{"prism_atomic",
                                     "template <class T> using prism_atomic = sycl::atomic_ref<T, "
                                     "sycl::memory_order::relaxed, sycl::memory_scope::device>;"}};
  append(items, atomic_templates(
                    functions,
                    [](const std::string& op) {
                      return fmt::format("prism_atomic<T>(*p).{}{}(x)",
                                         op == "exchange" ? "" : "fetch_", op);
                    },
                    "prism_atomic<T>(*p).compare_exchange_strong(expected, x); return expected;"));
  return items;
}

class SyclPrinter final : public CFamily {
 public:
  SyclPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
      : CFamily(kernel, capabilities, kTable) {}

  std::vector<PreludeItem> prelude() const override {
    const CFunctions functions{kFunction, &kTable};
    std::vector<PreludeItem> items = {
        {"",
         "#include <sycl/sycl.hpp>\n#pragma clang fp contract(off)\nnamespace syclexp = "
         "sycl::ext::oneapi::experimental;"},
        {"prism_word", "typedef unsigned __attribute__((may_alias)) prism_word;"}};
    append(items, hidden_negations(kTable));
    append(items, vector_structs(kTable, "__attribute__((aligned({}), may_alias))"));
    append(items, instructions());
    append(items, bit_functions(functions, "sycl::bit_cast<unsigned>", "sycl::bit_cast<float>"));
    items.push_back(pack_f16_function(functions));
    append(items, atomics(functions));
    append(items, combine_templates(functions));
    append(items, shuffles());
    append(items, subgroup_templates(functions));
    return items;
  }

 protected:
  std::string signature() override {
    std::string text = fmt::format(
        "extern \"C\" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<3>))\n"
        "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, 1, {}>))\n",
        kernel_.group_size);
    if (kernel_.subgroup_size)
      text += fmt::format("SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<{}>))\n",
                          kernel_.subgroup_size);
    return text + fmt::format("void {}({})", entry(), arguments());
  }

  std::string shared_memory() override {
    return "  const auto prism_item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();\n" +
           CFamily::shared_memory();
  }

  std::string leaf(Op op, uint32_t axis) override {
    switch (op) {
      case Op::group_id:
        return fmt::format("(unsigned)prism_item.get_group({})", 2 - axis);
      case Op::group_count:
        return fmt::format("(unsigned)prism_item.get_group_range({})", 2 - axis);
      case Op::local_id:
        return "(unsigned)prism_item.get_local_id(2)";
      case Op::subgroup_id:
        return "(unsigned)prism_item.get_sub_group().get_group_linear_id()";
      default:
        return "(unsigned)prism_item.get_sub_group().get_local_linear_id()";
    }
  }

  std::string barrier() override { return "sycl::group_barrier(prism_item.get_group());"; }
  std::string device_fence() override {
    return "sycl::atomic_fence(sycl::memory_order::acq_rel, sycl::memory_scope::device);";
  }

  std::string shared_array(const Memory& memory, const std::string& name) override {
    // A group-local object: group_local_memory_for_overwrite crashes the run-time compiler (DPC++
    // 2026.2).
    const std::string object = names_.unique(name + "_memory");
    return fmt::format(
        "static syclexp::work_group_static<prism_array<{0}, {1}>> {2};\n  {0}* const {3} = "
        "(&{2})->data;",
        stored_type(memory), std::max<uint64_t>(memory.length, 1), object, name);
  }

  std::string bitcast(Type to, Type, const std::string& text) override {
    return fmt::format("sycl::bit_cast<{}>({})", value_type(to), text);
  }
};

}  // namespace

std::unique_ptr<CFamily> make_sycl_printer(const ir::Kernel& kernel,
                                           const ir::Capabilities& capabilities) {
  return std::make_unique<SyclPrinter>(kernel, capabilities);
}

}  // namespace prism
