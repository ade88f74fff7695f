// Matrix fragments as cooperative matrices (SPV_KHR_cooperative_matrix).
#include <fmt/format.h>

#include "print/spirv/spirv_emitter.h"
#include "prism/error.h"

namespace prism::spirv {

using ir::FragmentRole;
using ir::Op;

// Only here are integers signed: the device lists its shapes by signed and unsigned components.
Id Emitter::component_id(DType element) {
  switch (element) {
    case DType::i8:
      module_.require(Capability::Int8);
      return module_.int_type(8, true);
    case DType::u8:
      module_.require(Capability::Int8);
      return module_.int_type(8, false);
    case DType::i32:
      return module_.int_type(32, true);
    case DType::u32:
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return scalar_id(element);
    default:
      throw Error(ErrorCode::kNotSupported, fmt::format("kernel {}: SPIR-V has no fragments of {}",
                                                        kernel_.name, dtype_name(element)));
  }
}

Id Emitter::fragment_type(const ir::Fragment& fragment, DType element) {
  module_.require(Capability::CooperativeMatrixKHR);
  module_.require_extension("SPV_KHR_cooperative_matrix");
  const uint32_t use = fragment.role == FragmentRole::a   ? kUseA
                       : fragment.role == FragmentRole::b ? kUseB
                                                          : kUseAccumulator;
  return module_.declare(
      Code::TypeCooperativeMatrixKHR,
      {component_id(element), module_.constant_u32(static_cast<uint32_t>(Scope::Subgroup)),
       module_.constant_u32(fragment.rows()), module_.constant_u32(fragment.columns()),
       module_.constant_u32(use)});
}

void Emitter::declare_fragments() {
  for (const ir::Fragment& fragment : kernel_.fragments) {
    fragments_.push_back(module_.function_variable(fragment_type(fragment, fragment.element)));
    module_.name(fragments_.back(), fragment.name);
  }
}

bool Emitter::fragment_op(const ir::Inst& inst) {
  if (inst.op < Op::fragment_fill || inst.op > Op::fragment_convert) return false;
  const ir::Fragment& fragment = kernel_.fragments.at(inst.object);
  const Id variable = fragments_[inst.object];
  const Id type = fragment_type(fragment, fragment.element);
  switch (inst.op) {
    case Op::fragment_fill: {
      Id filled = convert(
          value(inst.args[0]), type_of(inst.args[0]),
          is_float(fragment.element) ? ir::Type{fragment.element, 1} : ir::Type{DType::u32, 1});
      if (!is_float(fragment.element)) {
        const Id component = component_id(fragment.element);
        const bool narrow = dtype_bytes(fragment.element) < 4;
        if (component != module_.int_type(32))
          filled = module_.emit(narrow ? Code::SConvert : Code::Bitcast, component, {filled});
      }
      const Id matrix = module_.emit(Code::CompositeConstruct, type, {filled});
      module_.emit_void(Code::Store, {variable, matrix});
      return true;
    }
    case Op::fragment_load: {
      if (kernel_.memories[inst.object2].element != fragment.element)
        fail(inst, "the element types of memory and fragment differ");
      const Id pointer = element_pointer(inst.object2, value(inst.args[0]), 1);
      const Id layout = module_.constant_u32(inst.bits & 1 ? kColumnMajor : kRowMajor);
      const Id matrix = module_.emit(Code::CooperativeMatrixLoadKHR, type,
                                     {pointer, layout, value(inst.args[1]), kNonPrivatePointer});
      module_.emit_void(Code::Store, {variable, matrix});
      return true;
    }
    case Op::fragment_store: {
      const DType element = kernel_.memories[inst.object2].element;
      Id matrix = module_.emit(Code::Load, type, {variable});
      if (element != fragment.element) {
        if (!is_float(element) || !is_float(fragment.element))
          fail(inst, "an integer fragment must be stored to memory of the same type");
        matrix = module_.emit(Code::FConvert, fragment_type(fragment, element), {matrix});
      }
      const Id pointer = element_pointer(inst.object2, value(inst.args[0]), 1);
      const Id layout = module_.constant_u32(inst.bits & 1 ? kColumnMajor : kRowMajor);
      module_.emit_void(Code::CooperativeMatrixStoreKHR,
                        {pointer, matrix, layout, value(inst.args[1]), kNonPrivatePointer});
      return true;
    }
    case Op::fragment_multiply: {
      const uint32_t a = inst.objects.at(0), b = inst.objects.at(1);
      const Id left = module_.emit(
          Code::Load, fragment_type(kernel_.fragments[a], kernel_.fragments[a].element),
          {fragments_[a]});
      const Id right = module_.emit(
          Code::Load, fragment_type(kernel_.fragments[b], kernel_.fragments[b].element),
          {fragments_[b]});
      const Id sum = module_.emit(Code::Load, type, {variable});
      Words operands = {left, right, sum};
      uint32_t flags = 0;
      if (is_signed_int(kernel_.fragments[a].element)) flags |= kSignedA;
      if (is_signed_int(kernel_.fragments[b].element)) flags |= kSignedB;
      if (is_signed_int(fragment.element)) flags |= kSignedC | kSignedResult;
      if (flags) operands.push_back(flags);
      const Id product = module_.emit(Code::CooperativeMatrixMulAddKHR, type, operands);
      module_.emit_void(Code::Store, {variable, product});
      return true;
    }
    default:
      fail(inst,
           "cooperative matrices do not say where an element lies; it should have been lowered");
  }
}

}  // namespace prism::spirv
