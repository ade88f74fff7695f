// Chains on the CPU: native kernels over pieces that fit the L1 cache.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/elementwise.h"
#include "tensor/chain/chain_op.h"
#include "tensor/transpose.h"

namespace prism {

namespace {

// Elements of a piece: 1,024 f64 take 8 KiB, so a chain of a few steps fits 32 KiB.
constexpr int64_t kPiece = 1024;

// b1 is kept as i32.
DType cpu_register(DType type) { return type == DType::b1 ? DType::i32 : type; }

struct Operand {  // an input with its layout in the loops
  const std::byte* first;
  DType stored;
  Layout walk;
};

class PieceRunner {
 public:
  PieceRunner(const Chain& chain, std::span<const Operand> inputs)
      : chain_(chain), inputs_(inputs), registers_(chain.steps.size() * kPiece) {
    for (size_t s = 0; s < chain.steps.size(); ++s) {  // constants are written once
      const Chain::Step& step = chain.steps[s];
      if (step.kind != Chain::Kind::constant) continue;
      for (int64_t i = 0; i < kPiece; ++i) {
        switch (cpu_register(step.type)) {
          case DType::f32:
            at<float>(s)[i] = static_cast<float>(step.number);
            break;
          case DType::f64:
            at<double>(s)[i] = step.number;
            break;
          case DType::i64:
            at<int64_t>(s)[i] = static_cast<int64_t>(step.number);
            break;
          default:
            at<int32_t>(s)[i] = static_cast<int32_t>(step.number);
            break;
        }
      }
    }
  }

  // Computes n elements along the innermost axis; starts has the first element of each input.
  void run(std::span<const int64_t> starts, int64_t n, std::byte* to) {
    const auto count = static_cast<size_t>(n);
    for (size_t s = 0; s < chain_.steps.size(); ++s) {
      const Chain::Step& step = chain_.steps[s];
      switch (step.kind) {
        case Chain::Kind::input: {
          const Operand& input = inputs_[step.index];
          const int64_t stride = input.walk.shape.rank() ? input.walk.stride(-1) : 0;
          cpu::load(input.stored,
                    input.first + starts[step.index] *
                                      static_cast<int64_t>(ElementType(input.stored).block_bytes()),
                    stride, cpu_register(step.type), at<void>(s), count);
          break;
        }
        case Chain::Kind::constant:
          break;
        case Chain::Kind::cast:
          cast(step, s, count);
          break;
        case Chain::Kind::apply: {
          const DType type = chain_.steps[step.op == ScalarOp::select ? step.b : step.a].type;
          cpu::apply(step.op, cpu_register(type), at<void>(step.a), at<void>(step.b),
                     at<void>(step.c), at<void>(s), count);
          break;
        }
      }
    }
    const Chain::Step& last = chain_.steps[chain_.result];
    cpu::store(cpu_register(last.type), at<void>(chain_.result), chain_.output, to, count);
  }

 private:
  template <class T>
  T* at(size_t step) {
    return static_cast<T*>(static_cast<void*>(&registers_[step * kPiece]));
  }
  void cast(const Chain::Step& step, size_t s, size_t count) {
    const DType from = chain_.steps[step.a].type;
    alignas(64) std::byte stored[kPiece * 8];
    cpu::store(cpu_register(from), at<void>(step.a), step.stored, stored, count);
    cpu::load(step.stored, stored, 1, cpu_register(step.type), at<void>(s), count);
  }

  const Chain& chain_;
  std::span<const Operand> inputs_;
  std::vector<double> registers_;
};

}  // namespace

void ChainOp::run_cpu(const CpuCall& call) const {
  const HostView& output = call.outputs[0];
  const int64_t total = output.layout.shape.elements();
  if (total == 0) return;
  const auto out_bytes = static_cast<int64_t>(output.type.block_bytes());
  std::byte* const to = output.data + output.layout.offset * out_bytes;
  if (is_copy(chain_)) {
    const HostView& x = call.inputs[0];
    if (const auto turned = as_transposed(x.layout.broadcast_to(output.layout.shape)))
      return transpose_cpu(*turned, x.data, to, output.type.block_bytes(), call.pool);
  }
  std::vector<Layout> walk;
  for (const HostView& each : call.inputs)
    walk.push_back(each.layout.broadcast_to(output.layout.shape));
  walk.push_back(Layout::dense(output.layout.shape));
  collapse(walk);
  std::vector<Operand> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    inputs.push_back({call.inputs[i].data, call.inputs[i].type.plain(), walk[i]});

  const Shape& shape = walk.back().shape;
  const int rank = shape.rank();
  const int64_t inner = rank ? shape[-1] : 1;
  const int64_t pieces_a_row = (inner + kPiece - 1) / kPiece, rows = total / inner;

  const int64_t chunk = std::max<int64_t>(1, 16 * kPiece / std::min(inner, kPiece));
  call.pool.parallel_for(
      static_cast<uint64_t>(rows * pieces_a_row), static_cast<uint64_t>(chunk),
      [&](uint64_t first, uint64_t last) {
        PieceRunner runner(chain_, inputs);
        std::vector<int64_t> starts(inputs.size());
        for (uint64_t p = first; p < last; ++p) {
          int64_t row = static_cast<int64_t>(p) / pieces_a_row;
          const int64_t begin = static_cast<int64_t>(p) % pieces_a_row * kPiece;
          const int64_t n = std::min(kPiece, inner - begin), place = row * inner + begin;
          for (size_t i = 0; i < inputs.size(); ++i)
            starts[i] = inputs[i].walk.offset + (rank ? begin * inputs[i].walk.stride(-1) : 0);
          for (int axis = rank - 2; axis >= 0; --axis) {
            const int64_t coordinate = row % shape[axis];
            row /= shape[axis];
            for (size_t i = 0; i < inputs.size(); ++i)
              starts[i] += coordinate * inputs[i].walk.stride(axis);
          }
          runner.run(starts, n, to + place * out_bytes);
        }
      });
}

}  // namespace prism
