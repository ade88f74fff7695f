// Buffers, shared and private arrays, and atomics in SPIR-V.
//
// A buffer is one variable per view (its elements, vectors of them, words), all with the same
// binding; if there are several they are decorated Aliased.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ir/bindings.h"
#include "print/spirv/spirv.h"
#include "print/spirv/spirv_emitter.h"
#include "prism/error.h"

namespace prism::spirv {

using ir::Op;
using ir::Space;

namespace {

StorageClass storage_class(Space space) {
  switch (space) {
    case Space::buffer:
      return StorageClass::StorageBuffer;
    case Space::shared:
      return StorageClass::Workgroup;
    case Space::local:
      break;
  }
  return StorageClass::Function;
}

}  // namespace

Emitter::Storage Emitter::storage_of(uint32_t memory) {
  const ir::Memory& m = kernel_.memories[memory];
  const bool buffer = m.space == Space::buffer;
  switch (m.element) {
    case DType::b1:
      return {module_.int_type(32), 4, false};
    case DType::i8:
    case DType::u8:
      if (!buffer && !has(kInt8)) return {module_.int_type(32), 4, true};
      module_.require(buffer ? Capability::StorageBuffer8BitAccess : Capability::Int8);
      if (buffer) module_.require_extension("SPV_KHR_8bit_storage");
      return {module_.int_type(8), 1, false};
    case DType::i16:
    case DType::u16:
      if (!buffer && !has(kInt16)) return {module_.int_type(32), 4, true};
      module_.require(buffer ? Capability::StorageBuffer16BitAccess : Capability::Int16);
      return {module_.int_type(16), 2, false};
    case DType::f16:
      if (!buffer && !capabilities_.math_f16) return {module_.float_type(32), 4, true};
      module_.require(buffer ? Capability::StorageBuffer16BitAccess : Capability::Float16);
      return {module_.float_type(16), 2, false};
    case DType::f32:
      if (through_bits_[memory]) return {module_.int_type(32), 4, false};
      return {module_.float_type(32), 4, false};
    default:
      return {scalar_id(m.element), static_cast<uint32_t>(dtype_bytes(m.element)), false};
  }
}

// Float atomics other than add and exchange work on the bits, and so do all if the device has no
// float atomics. The kernel is checked too: it may have been lowered for fewer features than the
// device has.
void Emitter::find_atomics() {
  through_bits_.assign(kernel_.memories.size(), false);
  ir::walk(kernel_.body, [&](const ir::Inst& inst) {
    if (inst.op != Op::atomic || kernel_.memories[inst.object].element != DType::f32) return;
    const auto operation = static_cast<ir::AtomicOp>(inst.bits);
    if (!capabilities_.float_atomics ||
        (operation != ir::AtomicOp::add && operation != ir::AtomicOp::exchange))
      through_bits_[inst.object] = true;
  });
}

void Emitter::declare_arrays() {
  find_atomics();
  arrays_.resize(kernel_.memories.size(), 0);
  binding_of_.resize(kernel_.memories.size(), ir::kNone);
  uint64_t shared_bytes = 0;
  for (uint32_t i = 0; i < kernel_.memories.size(); ++i) {
    const ir::Memory& memory = kernel_.memories[i];
    if (memory.space == Space::buffer) continue;
    const Storage storage = storage_of(i);
    const Id type = module_.array_type(storage.scalar, static_cast<uint32_t>(memory.length));
    if (memory.space == Space::shared) {
      shared_bytes += storage.bytes * memory.length;
      arrays_[i] = module_.global_variable(StorageClass::Workgroup, type);
    } else {
      arrays_[i] = module_.function_variable(type);
    }
    module_.name(arrays_[i], memory.name);
  }
  if (shared_bytes > capabilities_.shared_bytes)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("kernel {}: shared arrays take {} bytes, the device has {}; use smaller tiles",
                    kernel_.name, shared_bytes, capabilities_.shared_bytes));
  uint32_t binding = 0;
  for (const uint32_t i : ir::bindings(kernel_)) binding_of_[i] = binding++;
}

Id Emitter::buffer_view(uint32_t memory, Id scalar, uint32_t bytes, uint32_t lanes) {
  Id& view = views_[{memory, scalar, lanes}];
  if (!view) {
    const ir::Memory& m = kernel_.memories[memory];
    const Id element = lanes == 1 ? scalar : module_.vector_type(scalar, lanes);
    view = module_.global_variable(StorageClass::StorageBuffer,
                                   module_.buffer_type(element, bytes * lanes));
    module_.decorate(view, Decoration::DescriptorSet, {0});
    module_.decorate(view, Decoration::Binding, {binding_of_[memory]});
    if (m.access == ir::Access::read) module_.decorate(view, Decoration::NonWritable);
    // In the Vulkan memory model the fence itself makes values available and visible.
    else if (fences_ && !module_.vulkan_memory_model())
      module_.decorate(view, Decoration::Coherent);
    module_.name(view, m.name);
  }
  return view;
}

void Emitter::alias_views() {
  std::vector<uint32_t> count(kernel_.memories.size(), 0);
  for (const auto& [key, view] : views_) ++count[std::get<0>(key)];
  for (const auto& [key, view] : views_)
    if (count[std::get<0>(key)] > 1) module_.decorate(view, Decoration::Aliased);
}

Id Emitter::offset_by(Id index, uint32_t offset) {
  if (offset == 0) return index;
  return module_.emit(Code::IAdd, module_.int_type(32), {index, module_.constant_u32(offset)});
}

Id Emitter::element_pointer(uint32_t memory, Id index, uint32_t lanes) {
  const Storage storage = storage_of(memory);
  const StorageClass where = storage_class(kernel_.memories[memory].space);
  const Id element = lanes == 1 ? storage.scalar : module_.vector_type(storage.scalar, lanes);
  const Id pointer = module_.pointer_type(where, element);
  if (where != StorageClass::StorageBuffer)
    return module_.emit(Code::AccessChain, pointer, {arrays_[memory], index});
  const Id view = buffer_view(memory, storage.scalar, storage.bytes, lanes);
  return module_.emit(Code::AccessChain, pointer, {view, module_.constant_u32(0), index});
}

Id Emitter::word_pointer(uint32_t memory, Id index, uint32_t lanes) {
  const Id u32 = module_.int_type(32);
  const Id element = lanes == 1 ? u32 : module_.vector_type(u32, lanes);
  const Id view = buffer_view(memory, u32, 4, lanes);
  return module_.emit(Code::AccessChain, module_.pointer_type(StorageClass::StorageBuffer, element),
                      {view, module_.constant_u32(0), index});
}

// In the Vulkan memory model a barrier orders only accesses with this marker.
Id Emitter::load_from(uint32_t memory, Id pointer, Id type) {
  Words operands = {pointer};
  if (module_.vulkan_memory_model() && kernel_.memories[memory].space != Space::local)
    operands.push_back(kNonPrivatePointer);
  return module_.emit(Code::Load, type, operands);
}

void Emitter::store_to(uint32_t memory, Id pointer, Id object) {
  Words operands = {pointer, object};
  if (module_.vulkan_memory_model() && kernel_.memories[memory].space != Space::local)
    operands.push_back(kNonPrivatePointer);
  module_.emit_void(Code::Store, operands);
}

Id Emitter::from_storage(uint32_t memory, Id stored, uint32_t lanes) {
  const ir::Memory& m = kernel_.memories[memory];
  const ir::Type type{widened(m.element), static_cast<uint8_t>(lanes)};
  const Storage storage = storage_of(memory);
  if (storage.wide) return stored;
  switch (m.element) {
    case DType::b1:
      return compare(Op::ne, {DType::u32, type.lanes}, stored,
                     module_.zero(type_id({DType::u32, type.lanes})));
    case DType::i8:
    case DType::i16:
      return module_.emit(Code::SConvert, type_id(type), {stored});
    case DType::u8:
    case DType::u16:
      return module_.emit(Code::UConvert, type_id(type), {stored});
    case DType::f16:
      return module_.emit(Code::FConvert, type_id(type), {stored});
    case DType::f32:
      if (through_bits_[memory]) return module_.emit(Code::Bitcast, type_id(type), {stored});
      return stored;
    default:
      return stored;
  }
}

Id Emitter::to_storage(uint32_t memory, Id value, uint32_t lanes) {
  const ir::Memory& m = kernel_.memories[memory];
  const ir::Type type{widened(m.element), static_cast<uint8_t>(lanes)};
  const Storage storage = storage_of(memory);
  const Id stored = lanes == 1 ? storage.scalar : module_.vector_type(storage.scalar, lanes);
  switch (m.element) {
    case DType::b1:
      return convert(value, type, {DType::u32, type.lanes});
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16: {
      if (!storage.wide) return module_.emit(Code::UConvert, stored, {value});
      // Stored in 32 bits, but rounded to the value a narrow element would give back.
      const uint32_t spare = 32 - static_cast<uint32_t>(8 * dtype_bytes(m.element));
      const Id count = splat(module_.constant_u32(spare), type);
      const Id raised = module_.emit(Code::ShiftLeftLogical, stored, {value, count});
      return module_.emit(
          is_signed_int(m.element) ? Code::ShiftRightArithmetic : Code::ShiftRightLogical, stored,
          {raised, count});
    }
    case DType::f16: {
      if (!storage.wide) return module_.emit(Code::FConvert, stored, {value});
      module_.require(Capability::StorageBuffer16BitAccess);
      const Id half = module_.float_type(16);
      const Id narrow = module_.emit(Code::FConvert,
                                     lanes == 1 ? half : module_.vector_type(half, lanes), {value});
      return module_.emit(Code::FConvert, stored, {narrow});
    }
    case DType::f32:
      if (through_bits_[memory]) return module_.emit(Code::Bitcast, stored, {value});
      return value;
    default:
      return value;
  }
}

Id Emitter::load_elements(uint32_t memory, Id index, uint32_t lanes) {
  const Storage storage = storage_of(memory);
  if (lanes == 1) {
    const Id stored = load_from(memory, element_pointer(memory, index, 1), storage.scalar);
    return from_storage(memory, stored, 1);
  }
  const Id vector = module_.vector_type(storage.scalar, lanes);
  if (kernel_.memories[memory].space == Space::buffer) {
    const Id place =
        module_.emit(Code::ShiftRightLogical, module_.int_type(32),
                     {index, module_.constant_u32(static_cast<uint32_t>(std::countr_zero(lanes)))});
    return from_storage(memory, load_from(memory, element_pointer(memory, place, lanes), vector),
                        lanes);
  }
  Words parts;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const Id stored =
        load_from(memory, element_pointer(memory, offset_by(index, lane), 1), storage.scalar);
    parts.push_back(from_storage(memory, stored, 1));
  }
  const ir::Type type{widened(kernel_.memories[memory].element), static_cast<uint8_t>(lanes)};
  return module_.emit(Code::CompositeConstruct, type_id(type), parts);
}

void Emitter::store_elements(uint32_t memory, Id index, Id value, uint32_t lanes) {
  if (lanes == 1) {
    store_to(memory, element_pointer(memory, index, 1), to_storage(memory, value, 1));
    return;
  }
  if (kernel_.memories[memory].space == Space::buffer) {
    const Id place =
        module_.emit(Code::ShiftRightLogical, module_.int_type(32),
                     {index, module_.constant_u32(static_cast<uint32_t>(std::countr_zero(lanes)))});
    store_to(memory, element_pointer(memory, place, lanes), to_storage(memory, value, lanes));
    return;
  }
  const Id scalar = type_id({widened(kernel_.memories[memory].element), 1});
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const Id part = module_.emit(Code::CompositeExtract, scalar, {value, lane});
    store_to(memory, element_pointer(memory, offset_by(index, lane), 1),
             to_storage(memory, part, 1));
  }
}

// Words are moved in units as wide as their alignment allows.
Id Emitter::load_words(uint32_t memory, Id index, uint32_t lanes, uint32_t alignment) {
  const Id u32 = module_.int_type(32);
  const uint32_t step = std::min(lanes, std::bit_floor(std::max(alignment, 1u)));
  const Id piece = step == 1 ? u32 : module_.vector_type(u32, step);
  Id place = index;
  if (step > 1)
    place =
        module_.emit(Code::ShiftRightLogical, u32,
                     {index, module_.constant_u32(static_cast<uint32_t>(std::countr_zero(step)))});
  Words parts;
  for (uint32_t i = 0; i < lanes / step; ++i)
    parts.push_back(load_from(memory, word_pointer(memory, offset_by(place, i), step), piece));
  return parts.size() == 1
             ? parts[0]
             : module_.emit(Code::CompositeConstruct, module_.vector_type(u32, lanes), parts);
}

void Emitter::store_words(uint32_t memory, Id index, Id value, uint32_t lanes, uint32_t alignment) {
  const Id u32 = module_.int_type(32);
  const uint32_t step = lanes > 1 && alignment >= lanes ? lanes : 1;
  if (step == lanes) {
    Id place = index;
    if (step > 1)
      place = module_.emit(
          Code::ShiftRightLogical, u32,
          {index, module_.constant_u32(static_cast<uint32_t>(std::countr_zero(step)))});
    store_to(memory, word_pointer(memory, place, lanes), value);
    return;
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const Id part = module_.emit(Code::CompositeExtract, u32, {value, lane});
    store_to(memory, word_pointer(memory, offset_by(index, lane), 1), part);
  }
}

Id Emitter::guarded_load(Id predicate, Id type, const std::function<Id()>& load) {
  const Id zero = module_.zero(type);
  const Id before = module_.current_label();
  const Id then = module_.new_id(), merge = module_.new_id();
  module_.emit_void(Code::SelectionMerge, {merge, kSelectionControlNone});
  module_.emit_void(Code::BranchConditional, {predicate, then, merge});
  module_.label(then);
  const Id loaded = load();
  const Id after = module_.current_label();
  module_.emit_void(Code::Branch, {merge});
  module_.label(merge);
  return module_.emit(Code::Phi, type, {loaded, after, zero, before});
}

void Emitter::guarded(Id predicate, const std::function<void()>& work) {
  const Id then = module_.new_id(), merge = module_.new_id();
  module_.emit_void(Code::SelectionMerge, {merge, kSelectionControlNone});
  module_.emit_void(Code::BranchConditional, {predicate, then, merge});
  module_.label(then);
  work();
  module_.emit_void(Code::Branch, {merge});
  module_.label(merge);
}

Id Emitter::atomic(const ir::Inst& inst) {
  const ir::Memory& memory = kernel_.memories[inst.object];
  const Storage storage = storage_of(inst.object);
  const bool floating = memory.element == DType::f32;
  const bool is_signed = is_signed_int(memory.element);
  const bool through_bits = through_bits_[inst.object];
  const auto operation = static_cast<ir::AtomicOp>(inst.bits);
  auto as_stored = [&](ir::Value v) {
    return through_bits ? module_.emit(Code::Bitcast, storage.scalar, {value(v)}) : value(v);
  };
  const Id pointer = element_pointer(inst.object, value(inst.args[0]), 1);
  const Scope scope = memory.space == Space::buffer ? Scope::Device : Scope::Workgroup;
  const Id scope_id = module_.constant_u32(static_cast<uint32_t>(scope));
  const Id relaxed = module_.constant_u32(0);
  const Id operand = as_stored(inst.args[1]);
  Code code = Code::AtomicExchange;
  Words operands = {pointer, scope_id, relaxed, operand};
  switch (operation) {
    case ir::AtomicOp::add:
      code = Code::AtomicIAdd;
      if (floating) {
        if (through_bits) fail(inst, "the device has no float atomics");
        code = Code::AtomicFAddEXT;
        module_.require(Capability::AtomicFloat32AddEXT);
        module_.require_extension("SPV_EXT_shader_atomic_float_add");
      }
      break;
    case ir::AtomicOp::min:
      code = is_signed ? Code::AtomicSMin : Code::AtomicUMin;
      break;
    case ir::AtomicOp::max:
      code = is_signed ? Code::AtomicSMax : Code::AtomicUMax;
      break;
    case ir::AtomicOp::bit_and:
      code = Code::AtomicAnd;
      break;
    case ir::AtomicOp::bit_or:
      code = Code::AtomicOr;
      break;
    case ir::AtomicOp::bit_xor:
      code = Code::AtomicXor;
      break;
    case ir::AtomicOp::exchange:
      code = Code::AtomicExchange;
      break;
    case ir::AtomicOp::compare_exchange:
      code = Code::AtomicCompareExchange;
      operands = {pointer, scope_id, relaxed, relaxed, operand, as_stored(inst.args[2])};
      break;
  }
  const Id old = module_.emit(code, storage.scalar, operands);
  return through_bits ? module_.emit(Code::Bitcast, type_id({DType::f32, 1}), {old}) : old;
}

bool Emitter::memory_op(const ir::Inst& inst) {
  const bool loads = inst.op == Op::load || inst.op == Op::load_words;
  const bool stores = inst.op == Op::store || inst.op == Op::store_words;
  if (inst.op == Op::atomic) {
    const Id old = atomic(inst);
    if (inst.result != ir::kNone) values_[inst.result] = old;
    return true;
  }
  if (!loads && !stores) return false;
  const Id index = value(inst.args[0]);
  const uint32_t lanes = loads ? inst.type.lanes : type_of(inst.args[1]).lanes;
  const uint32_t alignment = static_cast<uint32_t>(inst.bits);
  if (loads) {
    auto load = [&] {
      return inst.op == Op::load ? load_elements(inst.object, index, lanes)
                                 : load_words(inst.object, index, lanes, alignment);
    };
    const bool predicated = inst.args.size() > 1;
    values_[inst.result] =
        predicated ? guarded_load(value(inst.args[1]), type_id(inst.type), load) : load();
  } else {
    auto store = [&] {
      const Id stored = value(inst.args[1]);
      if (inst.op == Op::store)
        store_elements(inst.object, index, stored, lanes);
      else
        store_words(inst.object, index, stored, lanes, alignment);
    };
    if (inst.args.size() > 2)
      guarded(value(inst.args[2]), store);
    else
      store();
  }
  return true;
}

}  // namespace prism::spirv
