// Prelude text shared by the dialects of the C family.
#include "print/c_prelude.h"

#include <algorithm>

#include <fmt/format.h>

#include "print/c_family.h"

namespace prism {

void append(std::vector<PreludeItem>& items, std::vector<PreludeItem> more) {
  items.insert(items.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::vector<PreludeItem> hidden_negations(const CTable& table) {
  const auto item = [](const char* name, const std::string& hidden, const char* plain) {
    return PreludeItem{name, fmt::format("#ifdef PRISM_HIDE_NEGATIONS\n#define {0}(x) {1}\n#else\n"
                                         "#define {0}(x) {2}\n#endif",
                                         name, hidden, plain)};
  };
  const std::string copysign = fmt::format(fmt::runtime(table.math_f32), "copysign");
  return {item("prism_negate", copysign + "((x), -(x))", "(-(x))"),
          item("prism_complement", fmt::format("((x) ^ ({} == 0 ? 0 : -1))", table.group_count),
               "(~(x))")};
}

std::vector<PreludeItem> vector_structs(const CTable& table, const std::string& alignment) {
  std::vector<PreludeItem> items;
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    for (uint8_t lanes : {uint8_t{2}, uint8_t{4}}) {
      const std::string name = "prism_" + ir::type_name({type, lanes});
      const size_t bytes = type == DType::b1 ? lanes : dtype_bytes(type) * lanes;
      // At most 16 bytes: no load instruction needs more, and shared arrays would have to match.
      items.push_back(
          {name,
           fmt::format("struct {} {} {{ {} x, y{}; }};",
                       fmt::format(fmt::runtime(alignment), std::min<size_t>(bytes, 16)), name,
                       is_float(type) || type == DType::b1 ? table.values[static_cast<size_t>(t)]
                                                           : table.stored[static_cast<size_t>(t)],
                       lanes == 4 ? ", z, w" : "")});
    }
  }
  return items;
}

std::vector<PreludeItem> bit_functions(const CFunctions& functions, const std::string& f32_to_bits,
                                       const std::string& bits_to_f32) {
  const std::string& f = functions.qualifier;
  const std::string u = functions.table->values[static_cast<size_t>(DType::u32)];
  const std::string h = functions.table->stored[static_cast<size_t>(DType::u16)];
  const auto text = [&](const char* form) {
    return fmt::format(fmt::runtime(form), fmt::arg("f", f), fmt::arg("u", u), fmt::arg("h", h),
                       fmt::arg("to", bits_to_f32), fmt::arg("from", f32_to_bits));
  };
  return {
      {"prism_extract_bits_u32",
       text(R"({f}{u} prism_extract_bits_u32({u} x, {u} offset, {u} count) {{
  return count == 0u ? 0u : (x << (32u - offset - count)) >> (32u - count);
}})")},
      {"prism_extract_bits_i32",
       text(R"({f}int prism_extract_bits_i32(int x, {u} offset, {u} count) {{
  return count == 0u ? 0 : (int)(({u})x << (32u - offset - count)) >> (32u - count);
}})")},
      {"prism_insert_bits",
       text(R"({f}{u} prism_insert_bits({u} x, {u} insert, {u} offset, {u} count) {{
  const {u} mask = count == 0u ? 0u : (0xffffffffu >> (32u - count)) << offset;
  return count == 0u ? x : (x & ~mask) | ((insert << offset) & mask);
}})")},
      {"prism_f32_from_bf16",
       text(R"({f}float prism_f32_from_bf16({h} x) {{ return {to}(({u})x << 16); }})")},
      {"prism_bf16_from_f32", text(R"({f}{h} prism_bf16_from_f32(float x) {{
  const {u} bits = {from}(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return ({h})((bits >> 16) | 0x40u);
  return ({h})((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}})")},
  };
}

PreludeItem pack_f16_function(const CFunctions& functions) {
  const char* u = functions.table->values[static_cast<size_t>(DType::u32)];
  return {"prism_pack_f16",
          fmt::format("{0}{1} prism_pack_f16(float low, float high) {{\n  return "
                      "({1})prism_f16_from_f32(low) | (({1})prism_f16_from_f32(high) << 16);\n}}",
                      functions.qualifier, u)};
}

std::vector<PreludeItem> atomic_templates(
    const CFunctions& functions, const std::function<std::string(const std::string&)>& operation,
    const std::string& compare_exchange) {
  std::vector<PreludeItem> items;
  for (const std::string op : {"add", "min", "max", "and", "or", "xor", "exchange"})
    items.push_back(
        {"prism_atomic_" + op,
         fmt::format("template <class T> {}T prism_atomic_{}(T* p, T x) {{ return {}; }}",
                     functions.qualifier, op, operation(op))});
  items.push_back(
      {"prism_atomic_compare_exchange",
       fmt::format(
           "template <class T> {}T prism_atomic_compare_exchange(T* p, T x, T expected) {{ {} }}",
           functions.qualifier, compare_exchange)});
  return items;
}

std::vector<PreludeItem> combine_templates(const CFunctions& functions) {
  const std::string& f = functions.qualifier;
  std::vector<PreludeItem> items;
  items.push_back(
      {"prism_combine_add",
       fmt::format(
           "template <class T> {0}T prism_combine_add(T a, T b) {{ return a + b; }}\n"
           "{0}int prism_combine_add(int a, int b) {{ return (int)((unsigned)a + (unsigned)b); }}\n"
           "{0}{1} prism_combine_add({1} a, {1} b) {{ return ({1})(({2})a + ({2})b); }}",
           f, functions.table->values[static_cast<size_t>(DType::i64)],
           functions.table->values[static_cast<size_t>(DType::u64)])});
  const std::pair<const char*, const char*> kOps[] = {{"min", "b < a ? b : a"},
                                                      {"max", "a < b ? b : a"},
                                                      {"and", "a & b"},
                                                      {"or", "a | b"},
                                                      {"xor", "a ^ b"}};
  for (const auto& [name, form] : kOps)
    items.push_back(
        {fmt::format("prism_combine_{}", name),
         fmt::format("template <class T> {}T prism_combine_{}(T a, T b) {{ return {}; }}", f, name,
                     form)});
  return items;
}

std::vector<PreludeItem> subgroup_templates(const CFunctions& functions) {
  std::vector<PreludeItem> items;
  for (const char* op : {"add", "min", "max", "and", "or", "xor"}) {
    const auto text = [&](const char* form) {
      return fmt::format(fmt::runtime(form), fmt::arg("f", functions.qualifier),
                         fmt::arg("op", op));
    };
    items.push_back({fmt::format("prism_reduce_{}", op),
                     text(R"(template <unsigned size, class T> {f}T prism_reduce_{op}(T x) {{
#pragma unroll
  for (unsigned mask = size / 2; mask > 0; mask /= 2) x = prism_combine_{op}(x, prism_shuffle_xor<size>(x, mask));
  return x;
}})")});
  }
  return items;
}

}  // namespace prism
