// Chains on the CPU: walks tensors in pieces, on all threads.
#include <algorithm>
#include <vector>

#include "tensor/chain/chain_op.h"
#include "tensor/chain/chain_pieces.h"
#include "tensor/transpose.h"

namespace prism {

namespace {

struct Operand {  // an input with its layout in the loops
  const std::byte* first;
  int64_t bytes;  // of an element
  Layout walk;
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
    inputs.push_back(
        {call.inputs[i].data, static_cast<int64_t>(call.inputs[i].type.block_bytes()), walk[i]});

  const Shape& shape = walk.back().shape;
  const int rank = shape.rank();
  const int64_t inner = rank ? shape[-1] : 1;
  const int64_t pieces_a_row = (inner + kChainPiece - 1) / kChainPiece, rows = total / inner;

  const int64_t chunk = std::max<int64_t>(1, 16 * kChainPiece / std::min(inner, kChainPiece));
  call.pool.parallel_for(
      static_cast<uint64_t>(rows * pieces_a_row), static_cast<uint64_t>(chunk),
      [&](uint64_t first, uint64_t last) {
        ChainPieces pieces(chain_, inner);
        std::vector<ChainPieces::Input> operands(inputs.size());
        for (size_t i = 0; i < inputs.size(); ++i)
          operands[i].stride = rank ? inputs[i].walk.stride(-1) : 0;
        for (uint64_t p = first; p < last; ++p) {
          int64_t row = static_cast<int64_t>(p) / pieces_a_row;
          const int64_t begin = static_cast<int64_t>(p) % pieces_a_row * kChainPiece;
          const int64_t n = std::min(kChainPiece, inner - begin), place = row * inner + begin;
          for (size_t i = 0; i < inputs.size(); ++i) {
            const int64_t start = inputs[i].walk.offset + begin * operands[i].stride;
            operands[i].first = inputs[i].first + start * inputs[i].bytes;
          }
          for (int axis = rank - 2; axis >= 0; --axis) {
            const int64_t coordinate = row % shape[axis];
            row /= shape[axis];
            for (size_t i = 0; i < inputs.size(); ++i)
              operands[i].first += coordinate * inputs[i].walk.stride(axis) * inputs[i].bytes;
          }
          pieces.run(operands, n, to + place * out_bytes);
        }
      });
}

}  // namespace prism
