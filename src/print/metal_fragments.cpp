// Matrix fragments in Metal: a 16 x 16 tile is four 8 x 8 simdgroup matrices; a lane holds two
// adjacent elements of a row of each.
//
// The layout is the same on all Apple GPUs: the lane with bits l4 to l0 holds row l4 l2 l1, columns
// l3 l0 0 and the next. (Apple does not document it; Apple's MLX relies on it.) Matrices are
// numbered by rows of tiles, so an accumulator's pairs, rounded, are the words of either operand.
#include "print/metal_fragments.h"

#include <fmt/format.h>

namespace prism {
namespace {

std::string multiply_function(const std::string& f, const char* name, const char* type) {
  return fmt::format(R"({f}simdgroup_matrix<{type}, 8, 8> prism_matrix_{name}(uint word) {{
  simdgroup_matrix<{type}, 8, 8> matrix;
  matrix.thread_elements()[0] = as_type<{type}>((ushort)word);
  matrix.thread_elements()[1] = as_type<{type}>((ushort)(word >> 16));
  return matrix;
}}
{f}void prism_multiply_{name}(thread float (&c)[8], thread const unsigned (&a)[4], thread const unsigned (&b)[4]) {{
#pragma unroll
  for (uint tile = 0; tile < 4; ++tile) {{
    simdgroup_matrix<float, 8, 8> sum;
    sum.thread_elements()[0] = c[2 * tile];
    sum.thread_elements()[1] = c[2 * tile + 1];
#pragma unroll
    for (uint k = 0; k < 2; ++k)
      simdgroup_multiply_accumulate(sum, prism_matrix_{name}(a[tile / 2 * 2 + k]), prism_matrix_{name}(b[2 * k + tile % 2]), sum);
    c[2 * tile] = sum.thread_elements()[0];
    c[2 * tile + 1] = sum.thread_elements()[1];
  }}
}})",
                     fmt::arg("f", f), fmt::arg("name", name), fmt::arg("type", type));
}

}  // namespace

std::vector<PreludeItem> metal_fragment_prelude(const std::string& f) {
  std::vector<PreludeItem> items = {
      {"prism_pack_bf16", f + R"(unsigned prism_pack_bf16(float low, float high) {
  return (unsigned)prism_bf16_from_f32(low) | ((unsigned)prism_bf16_from_f32(high) << 16);
})"},
      {"prism_fill",
       "template <class T, int count> " + f + R"(void prism_fill(thread T (&x)[count], T value) {
  for (int i = 0; i < count; ++i) x[i] = value;
})"},
      // The lane number is available only as a kernel argument.
      {"prism_fragment_row prism_fragment_column prism_a_row prism_a_k prism_b_column prism_b_k",
       R"(#define prism_matrix_row (((prism_lane >> 2) & 4u) | ((prism_lane >> 1) & 3u))
#define prism_matrix_column (((prism_lane >> 1) & 4u) | ((prism_lane << 1) & 2u))
#define prism_fragment_row(e) ((e) / 4u * 8u + prism_matrix_row)
#define prism_fragment_column(e) ((e) / 2u % 2u * 8u + prism_matrix_column + (e) % 2u)
#define prism_a_row(r) ((r) / 2u * 8u + prism_matrix_row)
#define prism_a_k(r) ((r) % 2u * 8u + prism_matrix_column)
#define prism_b_k(r) prism_a_row(r)
#define prism_b_column(r) prism_a_k(r))"},
      {"prism_multiply_f16", multiply_function(f, "f16", "half")},
      {"prism_multiply_bf16", multiply_function(f, "bf16", "bfloat")},
  };
  for (const char* type : {"f16", "bf16"})
    for (const char* operand : {"a", "b"})
      items.push_back(
          {fmt::format("prism_convert_{}_{}", operand, type),
           fmt::format(
               R"({}void prism_convert_{}_{}(thread unsigned (&to)[4], thread const float (&c)[8]) {{
  for (uint r = 0; r < 4; ++r) to[r] = prism_pack_{}(c[2 * r], c[2 * r + 1]);
}})",
               f, operand, type, type)});
  for (const char* op : {"add", "min", "max", "and", "or", "xor"})
    items.push_back(
        {fmt::format("prism_row_reduce_{}", op),
         fmt::format(
             R"(template <class T> {f}void prism_row_reduce_{op}(thread T (&to)[8], thread const T (&from)[8]) {{
  for (uint first = 0; first < 8; first += 4) {{
    T x = prism_combine_{op}(prism_combine_{op}(from[first], from[first + 1]), prism_combine_{op}(from[first + 2], from[first + 3]));
    x = prism_combine_{op}(x, prism_shuffle_xor<32>(x, 1u));
    x = prism_combine_{op}(x, prism_shuffle_xor<32>(x, 8u));
    to[first] = to[first + 1] = to[first + 2] = to[first + 3] = x;
  }}
}})",
             fmt::arg("f", f), fmt::arg("op", op))});
  return items;
}

}  // namespace prism
