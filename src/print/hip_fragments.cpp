// Matrix fragments in HIP: MFMA on CDNA (waves of 64), WMMA on RDNA 3 and 4 (waves of 32).
//
// With g = lane / 16, a lane holds column lane % 16 of an accumulator: rows 4g + e (MFMA), 2e + g
// (WMMA on gfx11) or 8g + e (gfx12). Of an operand, a lane holds row (a) or column (b) lane % 16
// and a contiguous range of k: a quarter per g (MFMA), all of it, duplicated (gfx11), or half
// (gfx12). If an operand takes two instructions, the order along k is arbitrary as long as a and b
// agree.
#include "print/hip_fragments.h"

#include <fmt/format.h>

namespace prism {
namespace {

struct Layout {
  uint32_t wave;
  uint32_t sums;        // accumulator elements per lane
  uint32_t words;       // operand words per lane
  uint32_t parts;       // parts of k, one for each g
  const char* row;      // row of element e in group g
  const char* lane;     // the lane that holds (row, column)
  const char* element;  // its element index in that lane
};

const Layout& layout_of(HipMatrix matrix) {
  static constexpr Layout kMfma = {64,        4, 2, 4, "g * 4u + e", "(row / 4u) * 16u + column",
                                   "row % 4u"};
  static constexpr Layout kGfx11 = {32,        8, 8, 1, "e * 2u + g", "(row % 2u) * 16u + column",
                                    "row / 2u"};
  static constexpr Layout kGfx12 = {32,        8, 4, 2, "g * 8u + e", "(row / 8u) * 16u + column",
                                    "row % 8u"};
  return matrix == HipMatrix::mfma ? kMfma : matrix == HipMatrix::wmma_gfx11 ? kGfx11 : kGfx12;
}

// The vector types of the builtins, which are clang's own.
std::vector<PreludeItem> vectors() {
  std::vector<PreludeItem> items;
  const auto add = [&](const char* element, const char* name, std::initializer_list<int> sizes) {
    for (const int n : sizes)
      items.push_back({fmt::format("prism_{}v{}", name, n),
                       fmt::format("typedef {} prism_{}v{} __attribute__((ext_vector_type({})));",
                                   element, name, n, n),
                       true});
  };
  add("_Float16", "half", {4, 8, 16});
  add("short", "short", {2, 4, 8, 16});
  add("int", "int", {2, 4, 8});
  add("float", "float", {4, 8});
  return items;
}

struct Multiply {
  const char* type;    // operand type: "f16"
  const char* call;    // the builtin with {a}, {b} and {c} for its vectors
  const char* vector;  // vector type of one operand
  uint32_t turns;      // instructions for the whole of k
};

std::vector<Multiply> multiplies(uint32_t level) {
  switch (hip_matrix(level)) {
    case HipMatrix::mfma:
      return {
          {"f16", "__builtin_amdgcn_mfma_f32_16x16x16f16({a}, {b}, {c}, 0, 0, 0)", "prism_halfv4",
           1},
          level == 0x908
              ? Multiply{"bf16", "__builtin_amdgcn_mfma_f32_16x16x8bf16({a}, {b}, {c}, 0, 0, 0)",
                         "prism_shortv2", 2}
              : Multiply{"bf16",
                         "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k({a}, {b}, {c}, 0, 0, 0)",
                         "prism_shortv4", 1},
          level >= 0x940
              ? Multiply{"i8", "__builtin_amdgcn_mfma_i32_16x16x32_i8({a}, {b}, {c}, 0, 0, 0)",
                         "long", 1}
              : Multiply{"i8", "__builtin_amdgcn_mfma_i32_16x16x16i8({a}, {b}, {c}, 0, 0, 0)",
                         "int", 2},
      };
    case HipMatrix::wmma_gfx11:
      return {
          {"f16", "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32({a}, {b}, {c})", "prism_halfv16", 1},
          {"bf16", "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32({a}, {b}, {c})", "prism_shortv16",
           1},
          {"i8", "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, {a}, true, {b}, {c}, false)",
           "prism_intv4", 2}};
    case HipMatrix::wmma_gfx12:
      return {{"f16", "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12({a}, {b}, {c})",
               "prism_halfv8", 1},
              {"bf16", "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12({a}, {b}, {c})",
               "prism_shortv8", 1},
              {"i8",
               "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, {a}, true, {b}, {c}, false)",
               "prism_intv2", 2}};
    default:
      return {};
  }
}

PreludeItem multiply_function(const std::string& f, const Layout& layout, const Multiply& m) {
  const bool whole = m.type == std::string("i8");
  const std::string sum = whole ? "int" : "float";
  const uint32_t words = layout.words / m.turns;
  std::string text = fmt::format(
      "{}void prism_multiply_{}({} (&c)[{}], const unsigned (&a)[{}], const unsigned (&b)[{}]) {{\n"
      "  prism_{}v{} sum = prism_gather<prism_{}v{}, 0, {}>(c);\n",
      f, m.type, sum, layout.sums, layout.words, layout.words, sum, layout.sums, sum, layout.sums,
      layout.sums);
  for (uint32_t turn = 0; turn < m.turns; ++turn) {
    const auto side = [&](const char* name) {
      return fmt::format("prism_gather<{}, {}, {}>({})", m.vector, turn * words, words, name);
    };
    text += "  sum = " +
            fmt::format(fmt::runtime(m.call), fmt::arg("a", side("a")), fmt::arg("b", side("b")),
                        fmt::arg("c", "sum")) +
            ";\n";
  }
  text += "  prism_scatter(c, sum);\n}";
  return {fmt::format("prism_multiply_{}", m.type), text};
}

// Converts an accumulator's elements, rounded, to an operand. 16-bit elements are shuffled two per
// word. Element i of the operand is at (row, column) of the accumulator; b's elements are already
// in this lane except on gfx11.
PreludeItem convert_function(const std::string& f, const Layout& layout, const char* side,
                             const char* type) {
  const bool is_a = side == std::string("a");
  const uint32_t elements = layout.words * 2;
  std::string text =
      fmt::format("{}void prism_convert_{}_{}(unsigned (&x)[{}], const float (&c)[{}]) {{\n", f,
                  side, type, layout.words, layout.sums);
  if (!is_a && layout.parts > 1) {
    text += fmt::format(
        "#pragma unroll\n  for (unsigned r = 0u; r < {}u; ++r) x[r] = prism_pack_{}(c[2u * r], "
        "c[2u "
        "* r + 1u]);\n}}",
        layout.words, type);
    return {fmt::format("prism_convert_{}_{}", side, type), text};
  }
  text += fmt::format(
      R"(  unsigned packed[{half}], moved[{elements}];
#pragma unroll
  for (unsigned j = 0u; j < {half}u; ++j) packed[j] = prism_pack_{type}(c[2u * j], c[2u * j + 1u]);
#pragma unroll
  for (unsigned i = 0u; i < {elements}u; ++i) {{
    const unsigned outer = prism_fragment_lane() % 16u, inner = prism_fragment_lane() / 16u * {run}u + i;
    const unsigned row = {row}, column = {column};
    const unsigned element = {element};
    moved[i] = 0u;
#pragma unroll
    for (unsigned j = 0u; j < {half}u; ++j) {{
      const unsigned word = prism_shuffle<{wave}>(packed[j], {lane});
      if (j == element / 2u) moved[i] = (word >> (element % 2u * 16u)) & 0xffffu;
    }}
  }}
#pragma unroll
  for (unsigned r = 0u; r < {words}u; ++r) x[r] = moved[2u * r] | (moved[2u * r + 1u] << 16);
}})",
      fmt::arg("half", layout.sums / 2), fmt::arg("elements", elements), fmt::arg("type", type),
      fmt::arg("run", layout.parts > 1 ? elements : 0), fmt::arg("row", is_a ? "outer" : "inner"),
      fmt::arg("column", is_a ? "inner" : "outer"), fmt::arg("element", layout.element),
      fmt::arg("lane", layout.lane), fmt::arg("wave", layout.wave),
      fmt::arg("words", layout.words));
  return {fmt::format("prism_convert_{}_{}", side, type), text};
}

}  // namespace

HipMatrix hip_matrix(uint32_t level) {
  if (level >= 0x1200 && level < 0x1250) return HipMatrix::wmma_gfx12;
  if (level >= 0x1100 && level < 0x1200) return HipMatrix::wmma_gfx11;
  switch (level) {
    case 0x908:
    case 0x90a:
    case 0x940:
    case 0x941:
    case 0x942:
    case 0x950:
      return HipMatrix::mfma;
    default:
      return HipMatrix::none;
  }
}

FragmentRegisters hip_fragment_registers(uint32_t level) {
  const Layout& layout = layout_of(hip_matrix(level));
  return {layout.sums, layout.words, false};
}

std::vector<PreludeItem> hip_fragment_prelude(uint32_t level, const std::string& f) {
  if (hip_matrix(level) == HipMatrix::none) return {};
  const Layout& layout = layout_of(hip_matrix(level));
  std::vector<PreludeItem> items = vectors();
  const auto add = [&](const char* name, const std::string& text) {
    items.push_back({name, text});
  };
  add("prism_fragment_lane",
      fmt::format("{}unsigned prism_fragment_lane() {{ return __builtin_amdgcn_workitem_id_x() % "
                  "{}u; }}",
                  f, layout.wave));
  add("prism_fragment_row",
      fmt::format("{}unsigned prism_fragment_row(unsigned e) {{ const unsigned g = "
                  "prism_fragment_lane() / 16u; return {}; }}",
                  f, layout.row));
  add("prism_fragment_column",
      f + "unsigned prism_fragment_column(unsigned) { return prism_fragment_lane() % 16u; }");
  add("prism_a_row", f + "unsigned prism_a_row(unsigned) { return prism_fragment_lane() % 16u; }");
  add("prism_b_column",
      f + "unsigned prism_b_column(unsigned) { return prism_fragment_lane() % 16u; }");
  for (const char* name : {"prism_a_k", "prism_b_k"})
    add(name, fmt::format("template <unsigned k> {}unsigned {}(unsigned r) {{ return {} + r * (k / "
                          "{}u); }}",
                          f, name,
                          layout.parts == 1 ? std::string("0u")
                                            : fmt::format("prism_fragment_lane() / 16u * (k / {}u)",
                                                          layout.parts),
                          layout.parts * layout.words));
  add("prism_fill",
      "template <class T, int count> " + f + R"(void prism_fill(T (&x)[count], T value) {
#pragma unroll
  for (int i = 0; i < count; ++i) x[i] = value;
})");
  add("prism_gather", "template <class To, int first, int count, class T, int all> " + f +
                          R"(To prism_gather(const T (&x)[all]) {
  struct Part { T x[count]; } part;
#pragma unroll
  for (int i = 0; i < count; ++i) part.x[i] = x[first + i];
  return __builtin_bit_cast(To, part);
})");
  add("prism_scatter", "template <class T, int count, class From> " + f +
                           R"(void prism_scatter(T (&x)[count], From from) {
  struct Whole { T x[count]; };
  const Whole whole = __builtin_bit_cast(Whole, from);
#pragma unroll
  for (int i = 0; i < count; ++i) x[i] = whole.x[i];
})");
  add("prism_load_run", "template <class Vector, int count> " + f +
                            R"(void prism_load_run(unsigned (&x)[count], const Vector* from) {
  constexpr int each = sizeof(Vector) / 4;
  struct Words { unsigned x[each]; };
#pragma unroll
  for (int i = 0; i < count / each; ++i) {
    const Words words = __builtin_bit_cast(Words, from[i]);
#pragma unroll
    for (int j = 0; j < each; ++j) x[i * each + j] = words.x[j];
  }
})");
  add("prism_pack_bf16", f + R"(unsigned prism_pack_bf16(float low, float high) {
  return (unsigned)prism_bf16_from_f32(low) | ((unsigned)prism_bf16_from_f32(high) << 16);
})");
  for (const Multiply& multiply : multiplies(level))
    items.push_back(multiply_function(f, layout, multiply));
  for (const char* side : {"a", "b"})
    for (const char* type : {"f16", "bf16"})
      items.push_back(convert_function(f, layout, side, type));
  for (const char* op : {"add", "min", "max", "and", "or", "xor"})
    items.push_back(
        {fmt::format("prism_row_reduce_{}", op),
         fmt::format(
             R"(template <class T, int count> {f}void prism_row_reduce_{op}(T (&to)[count], const T (&from)[count]) {{
#pragma unroll
  for (int e = 0; e < count; ++e) {{
    T x = from[e];
#pragma unroll
    for (unsigned mask = 1u; mask < 16u; mask *= 2u) x = prism_combine_{op}(x, prism_shuffle_xor<{wave}>(x, mask));
    to[e] = x;
  }}
}})",
             fmt::arg("f", f), fmt::arg("op", op), fmt::arg("wave", layout.wave))});
  return items;
}

}  // namespace prism
