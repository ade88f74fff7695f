// Squared distances between codes: vectors rounded to i8 that a graph index walks through.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prism::cpu {

// Codes are padded with zeros to a multiple of this, so that no loop has a rest.
inline constexpr size_t kCodeUnit = 32;
// The widest code whose squared distance fits into 32 bits: 254^2 * 66,560 < 2^32.
inline constexpr size_t kMaximumCodeBytes = 66560;

// out[i] = the squared distance between `query` and row rows[i] of `codes` [][bytes]. The rows are
// prefetched first, because they are at random places in memory.
void code_distances(const int8_t* query, const int8_t* codes, size_t bytes, const uint32_t* rows,
                    size_t count, uint32_t* out);

// The same for products: out[i] = 2^31 - the product, so that the largest product is nearest.
void code_products(const int8_t* query, const int8_t* codes, size_t bytes, const uint32_t* rows,
                   size_t count, uint32_t* out);

// Whether one of the rows is nearer to `code` than `limit`.
bool any_nearer(const int8_t* code, const int8_t* codes, size_t bytes, const uint32_t* rows,
                size_t count, uint32_t limit);

// to[i] = (from[i] - center[i]) * factor, rounded and clamped to [-127, 127].
void encode(const float* from, const float* center, float factor, size_t width, int8_t* to);

}  // namespace prism::cpu
