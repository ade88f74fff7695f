// Matrix product kernels for GPUs: few rows times any weights, many rows with fragments, and rows
// routed to experts.
//
// Each kernel function takes the specialisation; shapes are params, so one program serves every
// shape. The _launch function beside it gives the grid and params. Block-quantised weights are u32
// buffers in the layout of base/types/gpu_block_layout.h; activations and results are plain. A tail
// adds its buffers before the result and its params after all others.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/dtype.h"
#include "prism/element_type.h"
#include "prism/kernel_ir.h"

namespace prism {
struct TailSpec;  // tail.h
}

namespace prism::ops {

struct CacheRows;  // cache_tail.h

struct ProductLaunch {
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> params;
};

// --- few rows (vector_product.cpp): y[i][r] = sum over c of w[r][c] * x[i][c]
//
// Block types: x is rounded to 8-bit integers in shared memory, 32 elements per scale: scale = m /
// 127 with m the largest magnitude, q = x * (127 / m) rounded to even (0 if m is below 2^-100);
// sums of 16 or 32 products are exact integers. Plain types: x unchanged, fused multiply-adds in
// f32.
struct VectorProduct {
  ElementType weight = DType::f16;
  DType x = DType::f32;  // f32 or f16
  DType y = DType::f32;  // f32 or f16
  bool rounded = false;  // block types: x is the output of round_rows (u32)
  uint32_t x_rows = 1;   // maximum, 1 to 8; a launch may have fewer
  // Two matrices, gate and up: the tail's input with TailAccess::made is the second product.
  bool pair = false;
  std::shared_ptr<const TailSpec> tail = nullptr;  // the epilogue of the sums
  bool experts = false;  // x_rows 1: row i of x times the weights of expert ids[i]
  bool aligned = true;   // plain types: k is a multiple of 16 bytes of weights (and of x)
  bool rounds = false;   // the result is stored as rounded rows (u32); n is a multiple of 32
  // With rounds, for one row of x: also stores y; the rounded row is the unscaled row of a norm
  // over y (rounded_rows.h); n is a multiple of 128.
  bool unscaled = false;
  // x is an unscaled row of a norm with this epsilon: results are scaled; k is a multiple of 128.
  std::optional<float> scale_epsilon = {};
  // Tiling, chosen by vector_product_for.
  uint32_t subgroups = 8;    // of 32 lanes, per group
  uint32_t split = 1;        // subgroups that share a row
  uint32_t rows_each = 2;    // weight rows per subgroup (of each matrix of a pair)
  uint32_t units_ahead = 2;  // units of each row prefetched while as many are used
  bool at_once = false;      // units_ahead covers a whole row: no loop (rounded or plain weights)
  bool x_first = false;      // at_once: load x before the weights; launches do not overlap
  uint32_t turns = 1;        // rounds: how often a subgroup takes rows_each rows
  uint32_t k_tile = 4096;    // block types: elements of x in shared memory
  bool shuffles = true;      // block types: round x with shuffles, else with shared atomics

  static constexpr uint32_t kWarp = 32;  // lanes per subgroup
  uint32_t rows_of_turn() const { return subgroups / split * rows_each; }
  uint32_t rows_of_group() const { return rows_of_turn() * turns; }
};
// Rounds rows of x (f32 or f16) once for all products of block types that share them. Faster than
// rounding in each product, where a group rounds all of k before it multiplies.
// Buffers: x, y (u32, rounded_bytes long). Params: k, x_stride. Subgroups of 32 lanes.
ir::Kernel round_rows(DType x);
ProductLaunch round_rows_launch(uint32_t rows, uint32_t k, uint32_t x_stride);
uint64_t rounded_bytes(uint64_t rows, uint64_t k);
uint64_t unscaled_bytes(uint64_t k);  // one unscaled row of a norm

// Buffers: w (contiguous rows; u32 planes or the plain type), for a pair w_up (the same shape), x
// (x_rows x k; or rounded), [ids (u32)], the tail's, y (x_rows x n; or rounded).
// unscaled: norm_weight (f32, n) before y, and the rows after it.
// Params: n, k, rows, x_stride, y_stride (elements between rows), [experts], then those of the
// weights (weight_units.h). For experts, x_share (slots per row of x) replaces rows, and experts is
// their number.
// Grid: (groups of rows, experts: slots, 1).
ir::Kernel vector_product(const VectorProduct& product);
ProductLaunch vector_product_launch(const VectorProduct& product, uint32_t n, uint32_t k,
                                    uint32_t rows, uint32_t x_stride, uint32_t y_stride);
// Where products of one launch have their rows of x, if not all in the same place.
struct ProductRows {
  std::vector<uint32_t> buffers;  // of x, for each product; empty: one x for all
  bool own_starts = false;        // rows of plain types start at an element of the buffer
  bool own_k = false;             // rows have different lengths and strides

  uint32_t buffer_of(size_t product) const { return buffers.empty() ? 0 : buffers[product]; }
  uint32_t buffer_count() const;
  uint32_t params(size_t products) const;  // of all products, less those of weights and tails
  std::string key() const;
};
// Several products in one launch (the same types, x_rows, rounded and subgroups, no pairs or
// experts; at most kSideBySide), with the same results as separate launches.
// Buffers: the weights in order, the buffers of x, the tails', the results. Params: k, rows,
// x_stride, or rows alone with own_k; for each product k and x_stride (own_k), the first element of
// x (own_starts), n and the weights' params; then those of the tails. Grid: the groups of all
// products, concatenated.
// cache: for q, k and v in f32, whose results CacheTail stores: its buffers replace the results,
// its params come last. Rotated products have an even rows_each.
inline constexpr size_t kSideBySide = 8;
ir::Kernel vector_products(const std::vector<VectorProduct>& products, const ProductRows& x = {},
                           const CacheRows* cache = nullptr);
// n: weight rows of the product. The results are dense.
struct ProductExtent {
  uint32_t n = 0, k = 0, x_stride = 0, x_start = 0;
};
ProductLaunch vector_products_launch(const std::vector<VectorProduct>& products,
                                     const std::vector<ProductExtent>& extents, uint32_t rows,
                                     const ProductRows& x = {});
// y[slot] = w[ids[slot]] * x[slot / x_share] for `slots` slots; x and y are dense. An id out of
// range gives NaN.
ProductLaunch expert_vector_launch(const VectorProduct& product, uint32_t n, uint32_t k,
                                   uint32_t slots, uint32_t experts, uint32_t x_share);
// Chooses the tiling for a shape and a device: fills the fields from subgroups on.
VectorProduct vector_product_for(VectorProduct product, uint32_t n, uint32_t k,
                                 const ir::Capabilities& device, uint32_t compute_units);
// The same tiled product with rounded results: groups of 32 weight rows per matrix, sums
// accumulated in the same order. nullopt if the shape or the device does not allow it.
std::optional<VectorProduct> rounding_product(VectorProduct product, uint32_t n,
                                              const ir::Capabilities& device,
                                              uint32_t compute_units);

// --- many rows with fragments (fragment_product.cpp): c[z] = a[z] * b[z], sums in f32
//
// a is m x k and b is k x n, each row-major or transposed (a as k x m, b as n x k: a weight
// matrix). Operands are rounded to f16 or bf16 on their way into shared memory; a block-quantised b
// (transposed, in planes) is decoded there.
struct FragmentProduct {
  DType a = DType::f16;  // f16, bf16 or f32
  ElementType b = DType::f16;
  DType c = DType::f32;        // f32, f16 or bf16
  DType operand = DType::f16;  // the type that is multiplied: f16 or bf16
  bool a_transposed = false, b_transposed = true;
  bool aligned = true;  // m, n, k and all strides along contiguous rows are multiples of 8
  std::shared_ptr<const TailSpec> tail = nullptr;
  bool experts = false;  // rows of a times the weights of their expert: see expert_tables
  // Tiling, chosen by fragment_product_for.
  uint32_t tile_m = 64, tile_n = 64, tile_k = 32;
  uint32_t warps_m = 2, warps_n = 2;
  uint32_t subgroup = 32;  // lanes per subgroup
  uint32_t stages = 2;
  bool run_ahead = false;
  // Steps along k that use the same tile of a: the rows of b hold that many parts of each tile_k
  // elements, side by side.
  uint32_t repeat_a = 1;

  void cut(uint32_t m, uint32_t n, uint32_t k, uint32_t across_m, uint32_t across_n,
           uint32_t of_stages, bool ahead) {
    tile_m = m, tile_n = n, tile_k = k;
    warps_m = across_m, warps_n = across_n;
    stages = of_stages, run_ahead = ahead;
  }
};
struct ProductShape {
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a_stride = 0, b_stride = 0, c_stride = 0;  // elements between stored rows
  uint32_t batch = 1;
  // Elements between matrices of the batch; matrix z of c uses matrix z / share of a and b.
  uint32_t a_batch = 0, b_batch = 0, c_batch = 0, a_share = 1, b_share = 1;
};
// Buffers: a, b (u32 planes for block types), [experts: order, tiles (u32)], the tail's, c. Params:
// as in fragment_product_launch. Grid: (tiles of c, 1, batch); experts: (tiles along n, maximum
// tiles of rows, 1).
ir::Kernel fragment_product(const FragmentProduct& product);
ProductLaunch fragment_product_launch(const FragmentProduct& product, const ProductShape& shape);
// shape.m: the slots; a holds rows of k, c rows of n; b the experts' matrices, contiguous. c[slot]
// = w[ids[slot]] * a[slot / x_share], with the tables of the same ids and tile_m.
ProductLaunch expert_product_launch(const FragmentProduct& product, uint32_t slots, uint32_t n,
                                    uint32_t k, uint32_t experts, uint32_t x_share);
// The shape of dense rows without a batch.
ProductShape dense_shape(const FragmentProduct& product, uint32_t m, uint32_t n, uint32_t k);
// Subgroup size for fragments: the device's own if it knows their layout (matrix instructions of
// 64-lane waves), else 32.
uint32_t fragment_subgroup(const ir::Capabilities& device);
// Whether the device has the 16 x 16 x 16 fragments that these products use.
bool has_fragments(const ir::Capabilities& device, DType operand);
FragmentProduct fragment_product_for(FragmentProduct product, const ProductShape& shape,
                                     const ir::Capabilities& device, uint32_t compute_units);

// --- some rows with block-quantised weights (packed_product.cpp): y[i][r] = sum over c of w[r][c]
// * x[i][c], sums in f32
//
// Too many rows for vector_product, too few to unpack all weights for: fragments of weights are
// made from packed words in shared memory. Weights are rounded to f16 with scales of f16.
struct PackedProduct {
  ElementType weight = BlockType::q4_k;
  DType y = DType::f32;  // f32 or f16
  bool aligned = true;   // n is a multiple of 4
  std::shared_ptr<const TailSpec> tail = nullptr;
  // Tiling, chosen by packed_product_for.
  uint32_t tile_rows = 16;            // of x: a multiple of 16
  uint32_t tile_n = 32;               // weight rows
  uint32_t tile_k = 256;              // a power of two from 128 on
  uint32_t warps_n = 2, warps_k = 4;  // subgroups that share tile_n; subgroups that share tile_k
  uint32_t subgroup = 32;             // lanes per subgroup
  uint32_t stages = 3;

  uint32_t lanes() const { return warps_n * warps_k * subgroup; }
  uint64_t shared_bytes() const;
};
// Buffers: w (u32 planes), x (f16; rows at multiples of 16 bytes), the tail's, y (dense rows).
// Params: n, k, rows, x_stride, then those of the weights. Grid: (tiles of n, tiles of rows, 1).
ir::Kernel packed_product(const PackedProduct& product);
ProductLaunch packed_product_launch(const PackedProduct& product, uint32_t n, uint32_t k,
                                    uint32_t rows, uint32_t x_stride);
// nullopt if the device does not say which lane of a fragment holds what: operands made through
// shared memory gain nothing over fragment_product.
std::optional<PackedProduct> packed_product_for(PackedProduct product, uint32_t n, uint32_t k,
                                                uint32_t rows, const ir::Capabilities& device,
                                                uint32_t compute_units);

// --- rows routed to experts (expert_tables.cpp): sorts slots by expert into tiles of tile_m rows
//
// Buffers: ids (u32, an expert per slot), order (u32, slots: the slots sorted by expert), tiles
// (u32): tiles[0] is the number of tiles, then for tile t at 4 + 4 t: expert, first place in order,
// rows, 0. A slot with an invalid expert is sorted to expert 0 and marked with kNoExpert: its
// results are NaN. Params: slots, tile_m, experts (up to kMostExperts). Grid: one group.
inline constexpr uint32_t kMostExperts = 1024, kNoExpert = 1u << 31;
ir::Kernel expert_tables();
// The maximum number of tiles for any ids; the tiles buffer has 4 + 4 times as many words.
uint32_t expert_tiles_at_most(uint32_t slots, uint32_t experts, uint32_t tile_m);

// --- f32 products (f32_product.cpp): multiplied and added in f32, tiles of 128 x 128; params and
// grid as in f32_product_launch
struct F32Product {
  DType a = DType::f32, b = DType::f32;  // as stored: also f16, bf16
  bool a_transposed = false, b_transposed = false;
  std::shared_ptr<const TailSpec> tail = nullptr;
  DType c = DType::f32;
};
// Buffers: a, b, the tail's, c.
ir::Kernel f32_product(const F32Product& product);
ProductLaunch f32_product_launch(const ProductShape& shape);
// Into how many parts k is cut, each a product of its own in a batch, where c has too few tiles for
// the device. The parts are added by sum_of_parts.
uint32_t f32_product_parts(const ProductShape& shape, uint32_t compute_units);
// Buffers: x (f32 [parts, elements]), y. Params: parts, elements. Grid: elements / kPartsGroup.
ir::Kernel sum_of_parts(DType y);
inline constexpr uint32_t kPartsGroup = 256;
// For kernels without fragments: one group per square tile of c.
ProductLaunch square_tiles_launch(const ProductShape& shape, uint32_t tile);

// --- products in f64 (f64_product.cpp)
struct F64Product {
  DType a = DType::f64, b = DType::f64;  // any float type
  bool a_transposed = false, b_transposed = false;
  bool experts = false;  // as for FragmentProduct: b transposed, a not
};
std::string product_key(const F64Product& product);
// Buffers: a, b, [experts: order, tiles], c.
ir::Kernel f64_product(const F64Product& product);
ProductLaunch f64_product_launch(const ProductShape& shape);
// Uses tables with tiles of kF64Tile rows.
inline constexpr uint32_t kF64Tile = 64;
ProductLaunch f64_expert_launch(uint32_t slots, uint32_t n, uint32_t k, uint32_t experts,
                                uint32_t x_share);

}  // namespace prism::ops
