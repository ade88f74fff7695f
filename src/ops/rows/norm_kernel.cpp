// The kernel of norms: sums over a row, which stays in registers if it fits.
#include "ops/rows/norm_kernel.h"

#include "ops/float_param.h"
#include "ops/products/rounded_rows.h"
#include "tensor/chain/chain_kernel.h"

namespace prism {

using namespace dsl;

ir::Kernel norm_kernel(const NormKind& kind, const RowBinding& source, const RowWalk& walk,
                       DType stored, const std::shared_ptr<const TailSpec>& spec) {
  return kernel(kind.name(), walk.group, [&] {
    RowCode x(source);
    std::optional<In> weight, bias;
    if (kind.weight) weight = weights("weight", *kind.weight);
    if (kind.bias) bias = weights("bias", *kind.bias);
    TailCode tail(spec);
    std::optional<Array> y, rounded;
    if (kind.keeps()) y = out("y", stored);
    if (kind.rounds()) rounded = out("rounded", u32);
    RowLoop loop(walk, x);
    if (rounded && !walk.subgroup_lanes) require_subgroup_size(32);  // emulated in shared memory
    const Value epsilon = ops::float_param("epsilon", walk.type);
    tail.declare_params();
    launch_next();
    // With few rows, prefetch the weights while the previous launch ends.
    const auto ahead = [&](const std::optional<In>& from, const std::optional<DType>& type) {
      return from ? loop.shared_ahead(*from, *type) : std::vector<Value>{};
    };
    const std::vector<Value> weight_ahead = ahead(weight, kind.weight),
                             bias_ahead = ahead(bias, kind.bias);
    wait_previous();
    loop.load(0);
    const Value count = cast(walk.type, loop.length()), zero = loop.number(0);
    Value mean = zero;
    Var squares(walk.type, zero, "squares");
    const auto add_squares = [&](Value off) {
      loop.each([&](const std::vector<Value>& four, Value) {
        for (const Value each : four) {
          const Value d = kind.centred ? each - off : each;
          squares += d * d;
        }
      });
    };
    Value spread = count;
    if (!kind.centred) {
      add_squares(mean);
      spread = loop.join(ReduceOp::add, squares) / count;
    } else if (loop.holds()) {
      Var sum(walk.type, zero, "sum");
      loop.each([&](const std::vector<Value>& four, Value) {
        for (const Value each : four) sum += each;
      });
      mean = loop.join(ReduceOp::add, sum) / count;
      add_squares(mean);
      spread = loop.join(ReduceOp::add, squares) / count;
    } else {
      // Read the row once: sum the differences from its first element, and their squares. Squares
      // of the elements themselves would lose precision if the mean is large.
      Var sum(walk.type, zero, "sum"), shift(walk.type, zero, "shift");
      loop.each([&](const std::vector<Value>& four, Value) {
        shift = x.at(loop.row(), constant(u32, 0));
        for (const Value each : four) {
          const Value d = each - Value(shift);
          sum += d;
          squares += d * d;
        }
      });
      const Value offset = loop.join(ReduceOp::add, sum) / count;
      spread = max(loop.join(ReduceOp::add, squares) / count - offset * offset, zero);
      // Lanes without elements did not load the first element.
      mean = loop.join(ReduceOp::max,
                       select(local_id() % walk.lanes == 0u, Value(shift), loop.lowest())) +
             offset;
    }
    const Value scale = loop.number(1) / sqrt(spread + epsilon);
    const auto shared_of = [&](const In& from, DType type, const std::vector<Value>& ahead_of,
                               Value i, size_t count_of) {
      if (ahead_of.empty()) return shared_elements(from, type, walk.type, i, count_of);
      const auto first = ahead_of.begin() + static_cast<ptrdiff_t>(loop.turn() * 4);
      return std::vector<Value>(first, first + 4);
    };
    const auto normed = [&](const std::vector<Value>& four, Value i) {
      std::vector<Value> results;
      for (const Value each : four) results.push_back((kind.centred ? each - mean : each) * scale);
      if (weight) {
        const auto w = shared_of(*weight, *kind.weight, weight_ahead, i, four.size());
        for (size_t k = 0; k < four.size(); ++k) results[k] = results[k] * w[k];
      }
      if (bias) {
        const auto b = shared_of(*bias, *kind.bias, bias_ahead, i, four.size());
        for (size_t k = 0; k < four.size(); ++k) results[k] = results[k] + b[k];
      }
      return results;
    };
    if (!rounded) return loop.store(*y, stored, normed, tail);
    loop.map(normed);
    if (y) loop.store(*y, stored, [](const std::vector<Value>& four, Value) { return four; });
    const Value start = ops::rounded_start(loop.row(), loop.length());
    loop.every_four([&](Value wanted, Value quad, Value four) {
      ops::store_rounded(*rounded, wanted, start, loop.length(), quad, four);
    });
  });
}

}  // namespace prism
