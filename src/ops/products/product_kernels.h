// Matrix products for GPUs in the kernel language: few rows times any weights, many rows by
// fragments, and rows routed to experts.
//
// A maker takes what the kernel is specialised by and returns it; shapes are params, so one
// program serves every shape. Beside each maker stands a function that gives grid and params of a
// launch. Weights of block types are u32 buffers in the layout of base/types/gpu_block_layout.h;
// activations and results are plain. A tail has its buffers before the result and its params after
// all others.
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
// Block types: x is rounded to 8-bit integers in shared memory, 32 elements with one scale:
// scale = m / 127 with m the largest magnitude, q = x * (127 / m) rounded to even (0 where m is
// below 2^-100); sums of 16 or 32 products are exact integers. Plain types: x as it is, fused
// multiply-adds in f32.
struct VectorProduct {
  ElementType weight = DType::f16;
  DType x = DType::f32;  // f32 or f16
  DType y = DType::f32;  // f32 or f16
  bool rounded = false;  // block types: x comes from round_rows (u32) and not as it is
  uint32_t x_rows = 1;   // at most, 1 to 8; a launch may have fewer
  // By two matrices, gate and up: the tail's input with TailAccess::made is the second product.
  bool pair = false;
  std::shared_ptr<const TailSpec> tail = nullptr;  // what is done with the sums
  bool experts = false;  // x_rows 1: row i of x by the weights of expert ids[i]
  bool aligned = true;   // plain types: k is a multiple of 16 bytes of weights (and of x)
  bool rounds = false;   // the result is stored as rounded rows (u32); n is a multiple of 32
  // With rounds, one row of x: y is stored too, and what is rounded is the row of a norm over y,
  // without its scale (rounded_rows.h); n is a multiple of 128.
  bool unscaled = false;
  // x is such a row, of a norm with this epsilon: results times its scale; k is a multiple of 128.
  std::optional<float> scale_epsilon = {};
  // How the work is cut: chosen by vector_product_for.
  uint32_t subgroups = 8;    // of 32 lanes, in a group
  uint32_t split = 1;        // subgroups that share a row
  uint32_t rows_each = 2;    // weight rows of a subgroup (of each matrix of a pair)
  uint32_t units_ahead = 2;  // units of each row under way while as many are used
  bool at_once = false;      // these are all that a row has: no loop (rounded or plain weights)
  bool x_first = false;      // at_once: x is asked for before the weights; nothing to wait for
  uint32_t turns = 1;        // results rounded: how often a subgroup takes rows_each rows
  uint32_t k_tile = 4096;    // block types: elements of x in shared memory at once
  bool shuffles = true;      // block types: round x by shuffles, else by shared atomics

  static constexpr uint32_t kWarp = 32;  // lanes of a subgroup
  uint32_t rows_of_turn() const { return subgroups / split * rows_each; }
  uint32_t rows_of_group() const { return rows_of_turn() * turns; }
};
// Rounds rows of x (f32 or f16) for the products of block types, once for all that share them.
// Faster than rounding in each product: a group there rounds all of k before it multiplies.
// Buffers: x, y (u32, rounded_bytes long). Params: k, x_stride. Subgroups of 32 lanes.
ir::Kernel round_rows(DType x);
ProductLaunch round_rows_launch(uint32_t rows, uint32_t k, uint32_t x_stride);
uint64_t rounded_bytes(uint64_t rows, uint64_t k);
uint64_t unscaled_bytes(uint64_t k);  // of one row without the scale of a norm

// Buffers: w (all rows one after the other; u32 planes or the plain type), of a pair w_up (the same
// shape), x (x_rows x k; or rounded), [ids (u32)], the tail's, y (x_rows x n; or rounded).
// unscaled: norm_weight (f32, n) before y, and the rows after it. Params: n, k, rows, x_stride,
// y_stride (elements from a row to the next; experts: x_share instead of rows, the slots that share
// a row of x, and at last how many experts there are), then those of the weights (weight_units.h).
// Grid: (groups of rows, experts: slots, 1).
ir::Kernel vector_product(const VectorProduct& product);
ProductLaunch vector_product_launch(const VectorProduct& product, uint32_t n, uint32_t k,
                                    uint32_t rows, uint32_t x_stride, uint32_t y_stride);
// Several of them with the same x in one launch (x, x_rows, rounded and subgroups are the same, no
// pairs or experts; at most kSideBySide): each computes what it would alone.
// Buffers: the weights in order, x, the tails', the results. Params: k, rows, x_stride, then for
// each n and those of its weights, then those of the tails. Grid: the groups of all, one after the
// other.
// cache: three of them, q, k and v of f32, whose results go where CacheTail stores them: its
// buffers in place of the results, its params at the end. Those that it rotates have an even
// rows_each.
inline constexpr size_t kSideBySide = 3;
ir::Kernel vector_products(const std::vector<VectorProduct>& products,
                           const CacheRows* cache = nullptr);
// n: weight rows of each. The results are dense.
ProductLaunch vector_products_launch(const std::vector<VectorProduct>& products,
                                     const std::vector<uint32_t>& n, uint32_t k, uint32_t rows,
                                     uint32_t x_stride);
// y[slot] = w[ids[slot]] * x[slot / x_share] for `slots` slots; x and y are dense. An id that is
// not below `experts` gives NaN.
ProductLaunch expert_vector_launch(const VectorProduct& product, uint32_t n, uint32_t k,
                                   uint32_t slots, uint32_t experts, uint32_t x_share);
// The cut for a shape and a device: fills the last fields of what is asked for, from subgroups on.
VectorProduct vector_product_for(VectorProduct product, uint32_t n, uint32_t k,
                                 const ir::Capabilities& device, uint32_t compute_units);
// A product that was cut so, with its results rounded: groups of 32 weight rows (each of a matrix),
// sums added up in the same order. Nothing where the shape or the device does not allow it.
std::optional<VectorProduct> rounding_product(VectorProduct product, uint32_t n,
                                              const ir::Capabilities& device,
                                              uint32_t compute_units);

// --- many rows by fragments (fragment_product.cpp): c[z] = a[z] * b[z], sums in f32
//
// a is m x k and b is k x n, each stored by rows or transposed (a as k x m, b as n x k: a weight
// matrix). Operands are rounded to f16 or bf16 on their way into shared memory; b of a block type
// is decoded there (and lies transposed, in planes).
struct FragmentProduct {
  DType a = DType::f16;  // f16, bf16 or f32
  ElementType b = DType::f16;
  DType c = DType::f32;        // f32, f16 or bf16
  DType operand = DType::f16;  // what is multiplied: f16 or bf16
  bool a_transposed = false, b_transposed = true;
  bool aligned = true;  // m, n, k and all strides are multiples of 8 where a row runs along them
  std::shared_ptr<const TailSpec> tail = nullptr;
  bool experts = false;  // rows of a by the weights of their expert: see expert_tables
  // How the work is cut: chosen by fragment_product_for.
  uint32_t tile_m = 64, tile_n = 64, tile_k = 32;
  uint32_t warps_m = 2, warps_n = 2;
  uint32_t subgroup = 32;  // lanes of each of those subgroups
  uint32_t stages = 2;
  bool run_ahead = false;
};
struct ProductShape {
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a_stride = 0, b_stride = 0, c_stride = 0;  // elements from a stored row to the next
  uint32_t batch = 1;
  // Elements from one matrix of the batch to the next; matrix z of c uses z / share of the others.
  uint32_t a_batch = 0, b_batch = 0, c_batch = 0, a_share = 1, b_share = 1;
};
// Buffers: a, b (u32 planes for block types), [experts: order, tiles (u32)], the tail's, c. Params:
// as fragment_product_launch gives them. Grid: (tiles of c, 1, batch); experts: (tiles along n,
// tiles of rows at most, 1).
ir::Kernel fragment_product(const FragmentProduct& product);
ProductLaunch fragment_product_launch(const FragmentProduct& product, const ProductShape& shape);
// shape.m: the slots; a holds rows of k, c rows of n; b the experts' matrices one after the other.
// c[slot] = w[ids[slot]] * a[slot / x_share], by the tables of the same ids and tile_m.
ProductLaunch expert_product_launch(const FragmentProduct& product, uint32_t slots, uint32_t n,
                                    uint32_t k, uint32_t experts, uint32_t x_share);
// Dense rows, no batch: the strides that follow from the shape.
ProductShape dense_shape(const FragmentProduct& product, uint32_t m, uint32_t n, uint32_t k);
// Lanes of the subgroups that fragments are spread over: the device's own where it knows their
// layout (matrix instructions of waves of 64), else 32.
uint32_t fragment_subgroup(const ir::Capabilities& device);
FragmentProduct fragment_product_for(FragmentProduct product, const ProductShape& shape,
                                     const ir::Capabilities& device, uint32_t compute_units);

// --- rows routed to experts (expert_tables.cpp): sorts slots by expert into tiles of tile_m rows
//
// Buffers: ids (u32, an expert for each slot), order (u32, slots: the slots sorted by expert),
// tiles (u32): tiles[0] the number of tiles, then for tile t at 4 + 4 t: expert, first place in
// order, rows, 0. A slot whose expert does not exist is with those of expert 0, and
// kNoExpert is added to it: its results are NaN. Params: slots, tile_m, experts (up to
// kMostExperts). Grid: one group.
inline constexpr uint32_t kMostExperts = 1024, kNoExpert = 1u << 31;
ir::Kernel expert_tables();
// Tiles at most, whatever the ids; words of the tiles buffer: 4 + 4 of these.
uint32_t expert_tiles_at_most(uint32_t slots, uint32_t experts, uint32_t tile_m);

// --- f32 products (f32_product.cpp): all in f32, tiles of 128 x 128; params and grid as
// f32_product_launch gives them
struct F32Product {
  bool a_transposed = false, b_transposed = false;
  std::shared_ptr<const TailSpec> tail = nullptr;
  DType c = DType::f32;
};
// Buffers: a, b, the tail's, c.
ir::Kernel f32_product(const F32Product& product);
ProductLaunch f32_product_launch(const ProductShape& shape);
// Of kernels without fragments: a group for each square tile of c.
ProductLaunch square_tiles_launch(const ProductShape& shape, uint32_t tile);

// --- products in f64 (f64_product.cpp)
struct F64Product {
  DType a = DType::f64, b = DType::f64;  // any float type
  bool a_transposed = false, b_transposed = false;
  bool experts = false;  // as of FragmentProduct: b transposed, a not
};
std::string product_key(const F64Product& product);
// Buffers: a, b, [experts: order, tiles], c.
ir::Kernel f64_product(const F64Product& product);
ProductLaunch f64_product_launch(const ProductShape& shape);
// By tables of tiles of kF64Tile rows.
inline constexpr uint32_t kF64Tile = 64;
ProductLaunch f64_expert_launch(uint32_t slots, uint32_t n, uint32_t k, uint32_t experts,
                                uint32_t x_share);

}  // namespace prism::ops
