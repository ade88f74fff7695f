// Prints Metal Shading Language. The params are one block, bound as the last buffer.
//
// The text must be compiled with fast math off (MTLCompileOptions.fastMathEnabled = NO, or mathMode
// safe): the default would reorder and contract.
#include <fmt/format.h>

#include "ir/bindings.h"
#include "print/c_prelude.h"
#include "print/fragment_printer.h"
#include "print/metal_fragments.h"

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
                           "device ",
                           "threadgroup ",
                           "thread "};

constexpr const char* kFunction = "static inline ";

std::string vector_name(ir::Type type) {
  const bool is_value = is_float(type.element) || type.element == DType::b1;
  return fmt::format("{}{}",
                     (is_value ? kTable.values : kTable.stored)[static_cast<size_t>(type.element)],
                     type.lanes);
}

std::vector<PreludeItem> instructions() {
  const std::string f = kFunction;
  return {
      {"prism_mul_high_u32", f + "uint prism_mul_high_u32(uint a, uint b) { return mulhi(a, b); }"},
      {"prism_mul_high_i32", f + "int prism_mul_high_i32(int a, int b) { return mulhi(a, b); }"},
      {"prism_popcount", f + "uint prism_popcount(uint x) { return popcount(x); }"},
      {"prism_count_leading_zeros",
       f + "uint prism_count_leading_zeros(uint x) { return clz(x); }"},
      {"prism_f32_from_f16",
       f + "float prism_f32_from_f16(ushort x) { return float(as_type<half>(x)); }"},
      {"prism_f16_from_f32",
       f + "ushort prism_f16_from_f32(float x) { return as_type<ushort>(half(x)); }"},
      // 64-bit values have no shuffle: they are moved as two words.
      {"prism_shuffle", "template <uint size, class T> " + f + R"(T prism_shuffle(T x, uint lane) {
  return simd_shuffle(x, (ushort)lane);
}
template <uint size> )" + f +
                            R"(ulong prism_shuffle(ulong x, uint lane) {
  const uint2 words = as_type<uint2>(x);
  return as_type<ulong>(uint2(simd_shuffle(words.x, (ushort)lane), simd_shuffle(words.y, (ushort)lane)));
}
template <uint size> )" + f +
                            R"(long prism_shuffle(long x, uint lane) {
  return as_type<long>(prism_shuffle<size>(as_type<ulong>(x), lane));
})"},
      {"prism_shuffle_xor", "template <uint size, class T> " + f +
                                R"(T prism_shuffle_xor(T x, uint mask) {
  return simd_shuffle_xor(x, (ushort)mask);
}
template <uint size> )" + f + R"(ulong prism_shuffle_xor(ulong x, uint mask) {
  const uint2 words = as_type<uint2>(x);
  return as_type<ulong>(uint2(simd_shuffle_xor(words.x, (ushort)mask), simd_shuffle_xor(words.y, (ushort)mask)));
}
template <uint size> )" + f + R"(long prism_shuffle_xor(long x, uint mask) {
  return as_type<long>(prism_shuffle_xor<size>(as_type<ulong>(x), mask));
})"},
  };
}

// Reductions of up to 32 bits are native instructions.
std::vector<PreludeItem> subgroup_functions() {
  std::vector<PreludeItem> items;
  const std::pair<const char*, const char*> kOps[] = {
      {"add", "sum"}, {"min", "min"}, {"max", "max"}, {"and", "and"}, {"or", "or"}, {"xor", "xor"}};
  for (const auto& [op, name] : kOps) {
    const auto text = [&, op = op, name = name](const char* form) {
      return fmt::format(fmt::runtime(form), fmt::arg("f", kFunction), fmt::arg("op", op),
                         fmt::arg("name", name));
    };
    items.push_back(
        {text("prism_reduce_{op}"), text("template <uint size, class T> {f}T prism_reduce_{op}(T "
                                         "x) {{ return simd_{name}(x); }}")});
    items.push_back({text("prism_reduce_wide_{op}"),
                     text(R"(template <uint size, class T> {f}T prism_reduce_wide_{op}(T x) {{
  for (uint mask = size / 2; mask > 0; mask /= 2) x = prism_combine_{op}(x, prism_shuffle_xor<size>(x, mask));
  return x;
}})")});
  }
  return items;
}

std::vector<PreludeItem> atomics() {
  std::vector<PreludeItem> items;
  const std::string relaxed = "memory_order_relaxed";
  for (const auto& [type, c_type] : {std::pair{"i32", "int"}, {"u32", "uint"}, {"f32", "float"}})
    for (const char* space : {"device", "threadgroup"}) {
      const auto add = [&, type = type, c_type = c_type](
                           const char* op, const std::string& parameters, const std::string& body) {
        const std::string name = fmt::format("prism_atomic_{}_{}_{}", op, type, space);
        items.push_back({name, fmt::format("{0}{1} {2}({3} {1}* p, {1} x{4}) {{\n  {5}\n}}",
                                           kFunction, c_type, name, space, parameters, body)});
      };
      const std::string pointer = fmt::format("({} atomic_{}*)p", space, c_type);
      if (type[0] == 'f') {
        add("add", "",
            fmt::format("return atomic_fetch_add_explicit({}, x, {});", pointer, relaxed));
        add("exchange", "",
            fmt::format("return as_type<float>(atomic_exchange_explicit(({} atomic_uint*)p, "
                        "as_type<uint>(x), {}));",
                        space, relaxed));
        continue;
      }
      for (const char* op : {"add", "min", "max", "and", "or", "xor"})
        add(op, "",
            fmt::format("return atomic_fetch_{}_explicit({}, x, {});", op, pointer, relaxed));
      add("exchange", "",
          fmt::format("return atomic_exchange_explicit({}, x, {});", pointer, relaxed));
      // Metal has only the weak form, which may fail spuriously.
      add("compare_exchange", fmt::format(", {} expected", c_type),
          fmt::format("{0} found = expected;\n  while (!atomic_compare_exchange_weak_explicit({1}, "
                      "&found, x, {2}, {2}) && found == expected) {{}}\n"
                      "  return found;",
                      c_type, pointer, relaxed));
    }
  return items;
}

class MetalPrinter final : public FragmentPrinter {
 public:
  MetalPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
      : FragmentPrinter(kernel, capabilities, kTable, kMetalFragments) {}

  bool params_as_block() const override { return true; }

  std::vector<PreludeItem> prelude() const override {
    const CFunctions functions{kFunction, &kTable};
    std::vector<PreludeItem> items = {
        {"", "#include <metal_stdlib>\n#pragma clang fp contract(off)\nusing namespace metal;"}};
    append(items, combine_templates(functions));
    append(items, instructions());
    items.push_back(pack_f16_function(functions));
    append(items, bit_functions(functions, "as_type<uint>", "as_type<float>"));
    append(items, atomics());
    append(items, subgroup_functions());
    append(items, metal_fragment_prelude(kFunction));
    return items;
  }

 protected:
  std::string signature() override {
    std::vector<std::string> words;
    for (uint32_t i : ir::bindings(kernel_))
      words.push_back(fmt::format("{} [[buffer({})]]", buffer_argument(i), words.size()));
    std::string block;
    if (!kernel_.params.empty()) {
      block = fmt::format("struct prism_block_{} {{", entry());
      for (size_t i = 0; i < kernel_.params.size(); ++i) block += " " + param_argument(i) + ";";
      block += " };\n";
      words.push_back(fmt::format("constant prism_block_{}& prism_params [[buffer({})]]", entry(),
                                  words.size()));
    }
    words.push_back("uint3 prism_group [[threadgroup_position_in_grid]]");
    words.push_back("uint3 prism_groups [[threadgroups_per_grid]]");
    words.push_back("uint prism_local [[thread_index_in_threadgroup]]");
    if (kernel_.subgroup_size) {
      words.push_back("uint prism_lane [[thread_index_in_simdgroup]]");
      words.push_back("uint prism_simdgroup [[simdgroup_index_in_threadgroup]]");
    }
    return fmt::format("{}[[max_total_threads_per_threadgroup({})]]\nkernel void {}({})", block,
                       kernel_.group_size, entry(), fmt::join(words, ", "));
  }

  std::string param(uint32_t index) const override { return "prism_params." + param_names_[index]; }

  std::string leaf(Op op, uint32_t axis) override {
    return op == Op::subgroup_id ? "prism_simdgroup" : FragmentPrinter::leaf(op, axis);
  }

  std::string barrier() override {
    return "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);";
  }

  std::string shared_array(const Memory& memory, const std::string& name) override {
    return "threadgroup " + array(memory, name) + " __attribute__((aligned(16)));";
  }

  std::string bitcast(Type to, Type, const std::string& text) override {
    return fmt::format("as_type<{}>({})", value_type(to), text);
  }

  bool special(const Inst& inst) override { return fragment(inst); }
  std::string first_k(const char* name, uint32_t) const override {
    return fmt::format("{}(prism_r)", name);
  }

  std::string vector_type(Type type) const override { return vector_name(type); }
  std::string make_vector(Type type, const std::vector<std::string>& lanes) const override {
    return fmt::format("{}({})", vector_name(type), fmt::join(lanes, ", "));
  }

  std::string atomic(const Inst& inst, const std::string& pointer,
                     const std::vector<std::string>& args) override {
    const bool device = kernel_.memories[inst.object].space == Space::buffer;
    return typed_atomic(inst, device ? "device" : "threadgroup", pointer, args);
  }

  std::string subgroup_function(const std::string& name, DType type) const override {
    static const std::string kReduce = "prism_reduce_";
    const bool wide = dtype_bytes(type) == 8 && name.rfind(kReduce, 0) == 0;
    return CFamily::subgroup_function(wide ? kReduce + "wide_" + name.substr(kReduce.size()) : name,
                                      type);
  }
};

}  // namespace

std::unique_ptr<CFamily> make_metal_printer(const ir::Kernel& kernel,
                                            const ir::Capabilities& capabilities) {
  return std::make_unique<MetalPrinter>(kernel, capabilities);
}

}  // namespace prism
