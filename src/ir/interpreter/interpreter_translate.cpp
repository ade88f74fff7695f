// Translates values, variables and arithmetic into steps.
#include "ir/interpreter/interpreter_translate.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/bindings.h"
#include "ir/interpreter/interpreter_flow.h"
#include "prism/error.h"

namespace prism::ir::vm {
namespace {

uint8_t value_bytes(DType type) { return dtype_bytes(type) == 8 ? 8 : 4; }

// f16 values are held as the f32 of the same value.
uint64_t held_bits(DType type, uint64_t bits) {
  if (type == DType::f16) return std::bit_cast<uint32_t>(f32_from_f16(static_cast<uint16_t>(bits)));
  if (type == DType::b1) return bits != 0;
  return value_bytes(type) == 4 ? static_cast<uint32_t>(bits) : bits;
}

}  // namespace

std::unique_ptr<Program> translate(const Kernel& kernel, const InterpretOptions& options) {
  auto program = std::make_unique<Program>();
  program->kernel = kernel;
  Translator(*program, options).translate();
  return program;
}

Translator::Translator(Program& program, const InterpretOptions& options)
    : program_(program), kernel_(program.kernel), analysis_(analyse(program.kernel)) {
  const uint32_t subgroup = kernel_.subgroup_size            ? kernel_.subgroup_size
                            : kernel_.required_subgroup_size ? kernel_.required_subgroup_size
                                                             : options.subgroup_size;
  if (!std::has_single_bit(subgroup) || subgroup > 64)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("kernel {}: the subgroup size is {}; it must be a power of two up to 64",
                    kernel_.name, subgroup));
  if (kernel_.group_size == 0)
    throw Error(ErrorCode::kInvalidKernel,
                fmt::format("kernel {}: its groups have no lanes", kernel_.name));
  program.lanes = kernel_.group_size;
  program.padded = (kernel_.group_size + kLanePad - 1) / kLanePad * kLanePad;
  program.subgroup = subgroup;
  program.checked = options.checked;
  values_.assign(kernel_.values.size(), Slots{kNone, kNone, kNone, kNone});
  variables_.assign(kernel_.variables.size(), Slots{kNone, kNone, kNone, kNone});
  program.inputs.params.assign(kernel_.params.size(), kNone);
}

void Translator::translate() {
  program_.buffer_order = bindings(kernel_);
  inner(kernel_.body, kNone);
  Step last;
  last.run = find_flow(Flow::stop);
  program_.steps.push_back(last);
  place_slots();
}

void Translator::fail(const Inst& inst, const std::string& message) const {
  throw Error(ErrorCode::kInvalidKernel,
              fmt::format("kernel {} ({}): {}", kernel_.name, location_text(inst.where), message));
}

Run Translator::need(const Inst& inst, Run run) const {
  if (run) return run;
  std::string types;
  for (Value arg : inst.args) types += (types.empty() ? "" : ", ") + type_name(kernel_.values[arg]);
  fail(inst, fmt::format("the interpreter has no {} of ({})", op_name(inst.op), types));
}

Step& Translator::emit(const Inst& inst, Run run, const std::vector<uint32_t>& args) {
  Step step;
  step.run = need(inst, run);
  step.inst = &inst;
  step.mask = region_->mask;
  for (uint32_t arg : args) {
    if (is_uniform(arg))
      step.uniform_args = static_cast<uint16_t>(step.uniform_args | (1u << step.arg_count));
    step.args[step.arg_count++] = arg;
  }
  program_.steps.push_back(step);
  return program_.steps.back();
}

void Translator::aim(std::vector<uint32_t>& steps) {
  for (uint32_t step : steps) aim(step);
  steps.clear();
}

void Translator::block(const Block& body) {
  const size_t known_planes = planes_.size();
  for (const Inst& inst : body.body) {
    instruction(inst);
    if (inst.op == Op::break_) break;
    if (inst.op == Op::if_ || inst.op == Op::raw) drop_those_who_left(inst);
  }
  planes_.resize(known_planes);
}

void Translator::inner(const Block& body, uint32_t mask) {
  Region region;
  region.mask = mask;
  Region* outer = std::exchange(region_, &region);
  block(body);
  aim(region.leaves);
  region_ = outer;
}

void Translator::instruction(const Inst& inst) {
  check_operands(inst);
  switch (inst.op) {
    case Op::constant:
    case Op::param:
    case Op::group_id:
    case Op::group_count:
    case Op::local_id:
    case Op::subgroup_size:
    case Op::subgroup_id:
    case Op::subgroup_lane:
      return leaf(inst);
    case Op::neg:
    case Op::abs:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::sqrt:
    case Op::bit_not:
      return unary(inst, find_unary);
    case Op::rsqrt:
    case Op::exp:
    case Op::exp2:
    case Op::log:
    case Op::log2:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
      return unary(inst, find_math);
    case Op::fma:
      return fma(inst);
    case Op::select:
      return select(inst);
    case Op::cast:
    case Op::cast_plain:
      return cast(inst);
    case Op::bitcast:
      return bitcast(inst);
    case Op::extract_bits:
    case Op::insert_bits:
    case Op::popcount:
    case Op::count_leading_zeros:
    case Op::pack_f16:
    case Op::unpack_f16:
    case Op::pack_8:
    case Op::unpack_i8:
    case Op::unpack_u8:
    case Op::dot4_i8:
    case Op::dot4_u8:
      return bits(inst);
    case Op::make_vector:
      for (size_t i = 0; i < inst.args.size(); ++i)
        values_[inst.result][i] = values_[inst.args[i]][0];
      return;
    case Op::extract:
      values_[inst.result][0] = values_[inst.args[0]][inst.object];
      return;
    case Op::declare:
    case Op::read:
    case Op::assign:
      return assign(inst);
    case Op::load:
    case Op::load_words:
      return load(inst);
    case Op::store:
    case Op::store_words:
      return store(inst);
    case Op::atomic:
      return atomic(inst);
    case Op::async_copy:
      return async_copy(inst);
    case Op::async_commit:
    case Op::async_wait:
    case Op::barrier:
      return check_whole_group(inst);
    case Op::subgroup_reduce:
    case Op::subgroup_scan:
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
    case Op::group_reduce:
      return across(inst);
    case Op::fragment_fill:
    case Op::fragment_load:
    case Op::fragment_store:
    case Op::fragment_multiply:
    case Op::fragment_row_reduce:
    case Op::fragment_convert:
      return fragment(inst);
    case Op::fragment_map:
    case Op::fragment_make:
      return fragment_map(inst);
    case Op::if_:
      return if_else(inst);
    case Op::for_:
      return for_loop(inst);
    case Op::while_:
      return while_loop(inst);
    case Op::break_:
      return leave_loop(inst);
    case Op::raw:
      return block(inst.blocks[0]);
    case Op::yield:
    case Op::wait_previous:
    case Op::launch_next:
    case Op::device_fence:  // atomics on buffers already order all accesses of the threads
    case Op::comment:
      return;
    default:
      return binary(inst);
  }
}

void Translator::leaf(const Inst& inst) {
  uint32_t& slot = values_[inst.result][0];
  Inputs& inputs = program_.inputs;
  switch (inst.op) {
    case Op::constant:
      slot = constant_slot(held_bits(inst.type.element, inst.bits), value_bytes(inst.type.element),
                           false);
      return;
    case Op::subgroup_size:
      slot = constant_slot(program_.subgroup, 4, false);
      return;
    case Op::param:
      slot = input_slot(inputs.params[inst.object], false);
      return;
    case Op::group_id:
      slot = input_slot(inputs.group_id[inst.object], false);
      return;
    case Op::group_count:
      slot = input_slot(inputs.group_count[inst.object], false);
      return;
    case Op::local_id:
      slot = input_slot(inputs.local_id, true);
      return;
    case Op::subgroup_id:
      slot = input_slot(inputs.subgroup_id, true);
      return;
    default:
      slot = input_slot(inputs.subgroup_lane, true);
      return;
  }
}

void Translator::unary(const Inst& inst, Run (*find)(Op, DType, bool)) {
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    const uint32_t a = values_[inst.args[0]][e];
    const uint32_t out = result_slot(inst, e, is_uniform(a), true);
    emit(inst, find(inst.op, inst.type.element, is_uniform(a)), {out, a});
    values_[inst.result][e] = out;
  }
}

// Division is slow, and most divisors in kernels are constant powers of two.
Op Translator::without_division(Op op, DType type, uint32_t& divisor) {
  const std::optional<uint64_t> known = slots_[divisor].constant;
  if (type != DType::u32 || !known || !std::has_single_bit(*known)) return op;
  switch (op) {
    case Op::div_trunc:
    case Op::div_floor:
    case Op::div_plain:
      divisor = constant_slot(static_cast<uint64_t>(std::countr_zero(*known)), 4, false);
      return Op::shr;
    case Op::rem_trunc:
    case Op::mod_floor:
      divisor = constant_slot(*known - 1, 4, false);
      return Op::bit_and;
    default:
      return op;
  }
}

void Translator::binary(const Inst& inst) {
  const DType type = kernel_.values[inst.args[0]].element;
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    const uint32_t a = values_[inst.args[0]][e];
    uint32_t b = values_[inst.args[1]][e];
    const Op op = without_division(inst.op, type, b);
    const Form form = is_uniform(a) ? (is_uniform(b) ? Form::all_uniform : Form::first_uniform)
                                    : (is_uniform(b) ? Form::second_uniform : Form::planes);
    const uint32_t out = result_slot(inst, e, form == Form::all_uniform, true);
    emit(inst, find_binary(op, type, form), {out, a, b});
    values_[inst.result][e] = out;
  }
}

void Translator::fma(const Inst& inst) {
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    uint32_t a = values_[inst.args[0]][e], b = values_[inst.args[1]][e],
             c = values_[inst.args[2]][e];
    Form form = Form::all_uniform;
    if (!is_uniform(a) || !is_uniform(b) || !is_uniform(c)) {
      c = as_plane(c);
      const bool once = inst.type.element != DType::f16;
      if (once && is_uniform(a) && !is_uniform(b))
        form = Form::first_uniform;
      else if (once && is_uniform(b) && !is_uniform(a))
        form = Form::second_uniform;
      else {
        form = Form::planes;
        a = as_plane(a);
        b = as_plane(b);
      }
    }
    const uint32_t out = result_slot(inst, e, form == Form::all_uniform, true);
    emit(inst, find_fma(inst.type.element, form), {out, a, b, c});
    values_[inst.result][e] = out;
  }
}

void Translator::select(const Inst& inst) {
  const bool one_condition = kernel_.values[inst.args[0]].lanes == 1;
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    uint32_t condition = values_[inst.args[0]][one_condition ? 0 : e];
    uint32_t a = values_[inst.args[1]][e], b = values_[inst.args[2]][e];
    const bool uniform = is_uniform(condition) && is_uniform(a) && is_uniform(b);
    if (!uniform) {
      condition = as_plane(condition);
      a = as_plane(a);
      b = as_plane(b);
    }
    // A scalar condition of a vector select is read again for the next element.
    const uint32_t out = result_slot(inst, e, uniform, inst.type.lanes == 1);
    emit(inst, find_select(value_bytes(inst.type.element), uniform), {out, condition, a, b});
    values_[inst.result][e] = out;
  }
}

void Translator::cast(const Inst& inst) {
  const DType from = kernel_.values[inst.args[0]].element;
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    const uint32_t a = values_[inst.args[0]][e];
    const uint32_t out = result_slot(inst, e, is_uniform(a), true);
    emit(inst, find_cast(from, inst.type.element, is_uniform(a)), {out, a});
    values_[inst.result][e] = out;
  }
}

// Operations that mix the elements of a vector, or apply to each element of an integer vector.
void Translator::bits(const Inst& inst) {
  const bool mixes = inst.op >= Op::pack_f16 && inst.op <= Op::unpack_u8;
  const uint32_t rounds = mixes ? 1 : inst.type.lanes;
  for (uint32_t e = 0; e < rounds; ++e) {
    std::vector<uint32_t> operands;
    for (Value arg : inst.args) {
      const uint32_t lanes = kernel_.values[arg].lanes;
      if (mixes)
        operands.insert(operands.end(), values_[arg].begin(), values_[arg].begin() + lanes);
      else
        operands.push_back(values_[arg][lanes == 1 ? 0 : e]);
    }
    const bool uniform =
        std::all_of(operands.begin(), operands.end(), [&](uint32_t s) { return is_uniform(s); });
    if (!uniform)
      for (uint32_t& operand : operands) operand = as_plane(operand);
    std::vector<uint32_t> args;
    for (uint32_t r = 0; r < (mixes ? inst.type.lanes : 1u); ++r) {
      args.push_back(new_slot({4, uniform, false}));
      values_[inst.result][mixes ? r : e] = args.back();
    }
    args.insert(args.end(), operands.begin(), operands.end());
    emit(inst, find_bits(inst.op, inst.type.element, uniform), args);
  }
}

// Elements of equal size are only renamed. Others are converted through 32-bit words.
void Translator::bitcast(const Inst& inst) {
  const Type from = kernel_.values[inst.args[0]], to = inst.type;
  const Slots& source = values_[inst.args[0]];
  Slots& result = values_[inst.result];
  if (dtype_bytes(from.element) == dtype_bytes(to.element)) {
    result = source;
    return;
  }
  std::vector<uint32_t> words;
  for (uint32_t e = 0; e < from.lanes; ++e) {
    const bool uniform = is_uniform(source[e]);
    if (dtype_bytes(from.element) == 8) {
      const uint32_t low = new_slot({4, uniform, false}), high = new_slot({4, uniform, false});
      emit(inst, find_words(true, uniform), {low, high, source[e]});
      words.insert(words.end(), {low, high});
    } else if (from.element == DType::f16) {
      if (e % 2) continue;
      uint32_t a = source[e], b = source[e + 1];
      const bool both = uniform && is_uniform(b);
      if (!both) a = as_plane(a), b = as_plane(b);
      words.push_back(new_slot({4, both, false}));
      emit(inst, find_bits(Op::pack_f16, DType::u32, both), {words.back(), a, b});
    } else {
      words.push_back(source[e]);
    }
  }
  for (uint32_t e = 0; e < to.lanes; ++e) {
    if (dtype_bytes(to.element) == 8) {
      uint32_t low = words[2 * e], high = words[2 * e + 1];
      const bool uniform = is_uniform(low) && is_uniform(high);
      if (!uniform) low = as_plane(low), high = as_plane(high);
      result[e] = new_slot({8, uniform, false});
      emit(inst, find_words(false, uniform), {result[e], low, high});
    } else if (to.element == DType::f16) {
      if (e % 2) continue;
      const uint32_t word = words[e / 2];
      result[e] = new_slot({4, is_uniform(word), false});
      result[e + 1] = new_slot({4, is_uniform(word), false});
      emit(inst, find_bits(Op::unpack_f16, DType::f32, is_uniform(word)),
           {result[e], result[e + 1], word});
    } else {
      result[e] = words[e];
    }
  }
}

void Translator::assign(const Inst& inst) {
  const Type type = kernel_.variables[inst.object].type;
  Slots& variable = variables_[inst.object];
  const uint8_t bytes = value_bytes(type.element);
  if (inst.op == Op::read) {
    Slots& result = values_[inst.result];
    if (analysis_.shares_variable[inst.result]) {
      result = variable;
      return;
    }
    for (uint32_t e = 0; e < type.lanes; ++e) {
      result[e] = new_slot({bytes, is_uniform(variable[e]), false});
      emit(inst, find_copy(bytes, is_uniform(variable[e]), is_uniform(variable[e])),
           {result[e], variable[e]});
    }
    return;
  }
  const Slots value = values_[inst.args[0]];
  for (uint32_t e = 0; e < type.lanes; ++e) {
    if (variable[e] == kNone)
      variable[e] = new_slot({bytes, analysis_.uniform_variable[inst.object], false});
    if (value[e] == variable[e]) continue;
    const bool masked = inst.op == Op::assign && !takes_part_fully() && !is_uniform(variable[e]);
    emit(inst,
         masked ? find_masked_copy(bytes, is_uniform(value[e]))
                : find_copy(bytes, is_uniform(value[e]), is_uniform(variable[e])),
         {variable[e], value[e]});
  }
}

void Translator::across(const Inst& inst) {
  check_whole_group(inst);
  const DType type = kernel_.values[inst.args[0]].element;
  const bool once = inst.op == Op::group_reduce;
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    const uint32_t a = as_plane(values_[inst.args[0]][e]);
    const uint32_t out = new_slot({value_bytes(type), once, false});
    Step& step =
        inst.op == Op::subgroup_shuffle
            ? emit(inst, find_across(inst.op, type), {out, a, as_plane(values_[inst.args[1]][0])})
            : emit(inst, find_across(inst.op, type), {out, a});
    step.bits = inst.bits;
    step.object = inst.object;
    values_[inst.result][e] = out;
  }
}

}  // namespace prism::ir::vm
