// Runs the steps of a chain one after the other over a piece; operands in the register type are
// read from the tensors' own memory.
#include "tensor/chain/chain_pieces.h"

#include <algorithm>

#include "cpu/elementwise.h"

namespace prism {

namespace {

// b1 is kept as i32.
DType cpu_register(DType type) { return type == DType::b1 ? DType::i32 : type; }

}  // namespace

ChainPieces::ChainPieces(const Chain& chain, int64_t most)
    : chain_(chain),
      most_(static_cast<size_t>(std::clamp<int64_t>(most, 1, kChainPiece))),
      stores_directly_(chain.steps[chain.result].kind == Chain::Kind::apply &&
                       chain.result + size_t{1} == chain.steps.size() &&
                       chain.steps[chain.result].type == chain.output && chain.output != DType::b1),
      registers_(new double[chain.steps.size() * most_]),
      values_(chain.steps.size()) {
  for (size_t s = 0; s < chain.steps.size(); ++s) {
    values_[s] = at<void>(s);
    if (chain.steps[s].kind == Chain::Kind::constant) write_constant(s);
  }
}

void ChainPieces::write_constant(size_t s) {
  const double number = chain_.steps[s].number;
  switch (cpu_register(chain_.steps[s].type)) {
    case DType::f32:
      std::fill_n(at<float>(s), most_, static_cast<float>(number));
      break;
    case DType::f64:
      std::fill_n(at<double>(s), most_, number);
      break;
    case DType::i64:
      std::fill_n(at<int64_t>(s), most_, static_cast<int64_t>(number));
      break;
    default:
      std::fill_n(at<int32_t>(s), most_, static_cast<int32_t>(number));
      break;
  }
}

void ChainPieces::run(std::span<const Input> inputs, int64_t n, std::byte* to) {
  const auto count = static_cast<size_t>(n);
  for (size_t s = 0; s < chain_.steps.size(); ++s) {
    const Chain::Step& step = chain_.steps[s];
    switch (step.kind) {
      case Chain::Kind::input: {
        const Input& input = inputs[step.index];
        const DType stored = chain_.inputs[step.index];
        const bool ready = input.stride == 1 && stored == step.type && stored != DType::b1;
        values_[s] = ready ? static_cast<const void*>(input.first) : at<void>(s);
        if (!ready)
          cpu::load(stored, input.first, input.stride, cpu_register(step.type), at<void>(s), count);
        break;
      }
      case Chain::Kind::constant:
        break;
      case Chain::Kind::cast:
        cast(step, at<void>(s), count);
        break;
      case Chain::Kind::apply: {
        const DType type = chain_.steps[step.op == ScalarOp::select ? step.b : step.a].type;
        const bool last = stores_directly_ && s == chain_.result;
        cpu::apply(step.op, cpu_register(type), values_[step.a], values_[step.b], values_[step.c],
                   last ? to : at<void>(s), count);
        break;
      }
    }
  }
  if (stores_directly_) return;
  const Chain::Step& last = chain_.steps[chain_.result];
  cpu::store(cpu_register(last.type), values_[chain_.result], chain_.output, to, count);
}

void ChainPieces::cast(const Chain::Step& step, void* to, size_t count) {
  const DType from = chain_.steps[step.a].type;
  alignas(64) std::byte stored[kChainPiece * 8];
  cpu::store(cpu_register(from), values_[step.a], step.stored, stored, count);
  cpu::load(step.stored, stored, 1, cpu_register(step.type), to, count);
}

}  // namespace prism
