// Copies between layouts, and fills, for elements of any size: the basis of shape and index ops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prism/element_type.h"
#include "prism/kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism::ops {

// Copies the element at from(c) to to(c) for all coordinates c. Both layouts have the same shape,
// and no two elements of `to` share an address. Pointers are to element 0 of the storage.
void strided_copy_cpu(const std::byte* from, const Layout& from_layout, std::byte* to,
                      const Layout& to_layout, size_t element_bytes, ThreadPool& pool);
// Sets every element to the first element_bytes bytes of bits.
void fill_cpu(std::byte* to, int64_t elements, size_t element_bytes, uint64_t bits,
              ThreadPool& pool);

// The same as kernel launches, for views of plain types with any strides. Kernels support up to
// seven axes after collapse(); movable_on_device() tests this.
void strided_copy_on_device(DeviceCall& call, const DeviceView& from, const DeviceView& to);
void fill_on_device(DeviceCall& call, const DeviceView& to, uint64_t bits);
bool movable_on_device(const Layout& from, const Layout& to);

// The bits of a number stored as a plain type.
uint64_t stored_bits(double value, DType type);

// --- for kernels that move elements: one unit of 1, 2, 4, 8 or 16 bytes as words
DType unit_type(uint32_t unit_bytes);  // u8, u16, and u32 for the others
dsl::Value load_unit(const dsl::Array& from, dsl::Value index, uint32_t unit_bytes);
dsl::Value load_unit_if(dsl::Value predicate, const dsl::Array& from, dsl::Value index,
                        uint32_t unit_bytes);
void store_unit(const dsl::Array& to, dsl::Value index, dsl::Value unit, uint32_t unit_bytes);

// The largest unit, up to 16 bytes, that divides all of these lengths and offsets.
uint32_t unit_for(std::initializer_list<uint64_t> byte_steps);

}  // namespace prism::ops
