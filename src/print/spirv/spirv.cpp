// The entry of the SPIR-V printer: declares what a kernel needs, then emits its body.
#include "print/spirv/spirv.h"

#include <algorithm>

#include <fmt/format.h>

#include "print/printer.h"
#include "print/spirv/spirv_emitter.h"
#include "prism/error.h"

namespace prism {

PrintedKernel print_spirv(const ir::Kernel& lowered, const ir::Capabilities& capabilities) {
  PrintedKernel printed;
  printed.entry = lowered.name;
  printed.words = spirv::Emitter(lowered, capabilities).run();
  printed.params_as_block = true;
  return printed;
}

namespace spirv {

using ir::Space;

Emitter::Emitter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
    : kernel_(kernel),
      capabilities_(capabilities),
      values_(kernel.values.size(), 0),
      opaque_(kernel.values.size(), false) {}

void Emitter::fail(const ir::Inst& inst, const std::string& what) const {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("kernel {} ({}): {} has no SPIR-V form: {}", kernel_.name,
                          ir::location_text(inst.where), ir::op_name(inst.op), what));
}

Id Emitter::scalar_id(DType element) {
  switch (element) {
    case DType::b1:
      return module_.bool_type();
    case DType::i32:
    case DType::u32:
      return module_.int_type(32);
    case DType::i64:
    case DType::u64:
      module_.require(Capability::Int64);
      return module_.int_type(64);
    case DType::f16:
      module_.require(Capability::Float16);
      return module_.float_type(16);
    case DType::f32:
      return module_.float_type(32);
    case DType::f64:
      module_.require(Capability::Float64);
      return module_.float_type(64);
    default:
      throw Error(
          ErrorCode::kNotSupported,
          fmt::format("kernel {}: values of type {} cannot be computed with; was it lowered?",
                      kernel_.name, dtype_name(element)));
  }
}

Id Emitter::type_id(ir::Type type) {
  const Id scalar = scalar_id(type.element);
  return type.lanes <= 1 ? scalar : module_.vector_type(scalar, type.lanes);
}

void Emitter::float_controls() {
  struct Control {
    uint32_t feature, bits;
    ExecutionMode mode;
    Capability capability;
  };
  static constexpr Control kControls[] = {
      {kRoundEven16, 16, ExecutionMode::RoundingModeRTE, Capability::RoundingModeRTE},
      {kRoundEven32, 32, ExecutionMode::RoundingModeRTE, Capability::RoundingModeRTE},
      {kRoundEven64, 64, ExecutionMode::RoundingModeRTE, Capability::RoundingModeRTE},
      {kPreserve16, 16, ExecutionMode::SignedZeroInfNanPreserve,
       Capability::SignedZeroInfNanPreserve},
      {kPreserve32, 32, ExecutionMode::SignedZeroInfNanPreserve,
       Capability::SignedZeroInfNanPreserve},
      {kPreserve64, 64, ExecutionMode::SignedZeroInfNanPreserve,
       Capability::SignedZeroInfNanPreserve},
      {kDenormals16, 16, ExecutionMode::DenormPreserve, Capability::DenormPreserve},
      {kDenormals32, 32, ExecutionMode::DenormPreserve, Capability::DenormPreserve},
      {kDenormals64, 64, ExecutionMode::DenormPreserve, Capability::DenormPreserve},
  };
  for (const Control& control : kControls) {
    if (!has(control.feature)) continue;
    module_.require(control.capability);
    module_.require_extension("SPV_KHR_float_controls");
    module_.execution_mode(control.mode, {control.bits});
  }
}

void Emitter::declare_params() {
  if (kernel_.params.empty()) return;
  Words members;
  for (const ir::Param& param : kernel_.params) members.push_back(scalar_id(param.type));
  const Id structure = module_.new_struct(members);
  module_.decorate(structure, Decoration::Block);
  for (uint32_t i = 0; i < members.size(); ++i)
    module_.decorate_member(structure, i, Decoration::Offset, {4 * i});
  params_ = module_.global_variable(StorageClass::PushConstant, structure);
  module_.name(params_, "params");
}

void Emitter::declare_variables() {
  for (const ir::Variable& variable : kernel_.variables) {
    variables_.push_back(module_.function_variable(type_id(variable.type)));
    module_.name(variables_.back(), variable.name);
  }
}

Words Emitter::run() {
  module_.require(Capability::Shader);
  ir::walk(kernel_.body,
           [&](const ir::Inst& inst) { fences_ = fences_ || inst.op == ir::Op::device_fence; });
  module_.execution_mode(ExecutionMode::LocalSize, {kernel_.group_size, 1, 1});
  if (!kernel_.fragments.empty()) module_.use_vulkan_memory_model();
  float_controls();
  declare_params();
  declare_arrays();
  declare_variables();
  declare_fragments();
  module_.label(module_.new_id());
  if (has(kHideConstants)) {
    // No grid has 2^31 groups, so the top bit is never set.
    launch_zero_ =
        module_.emit(Code::BitwiseAnd, module_.int_type(32),
                     {builtin_axis(BuiltIn::WorkgroupId, 2), module_.constant_u32(0x80000000u)});
  }
  block(kernel_.body);
  alias_views();
  return module_.finish(kernel_.name);
}

void Emitter::instruction(const ir::Inst& inst) {
  note_opaque(inst);
  if (control(inst) || memory_op(inst) || fragment_op(inst)) return;
  Id result = leaf(inst);
  if (!result) result = arithmetic(inst);
  if (!result) result = math(inst);
  if (!result) result = bits(inst);
  if (!result) result = comparison(inst);
  if (!result) result = conversion(inst);
  if (!result) result = across_lanes(inst);
  if (!result) fail(inst, "it should have been lowered");
  if (inst.result != ir::kNone) values_[inst.result] = result;
}

}  // namespace spirv
}  // namespace prism
