// matmul and linear: shapes reduced to one batch axis, the shape rule, the gradient.
#include "prism/ops/matmul.h"

#include <fmt/format.h>

#include "ops/products/matmul_op.h"
#include "ops/products/matmul_sides.h"
#include "ops/products/product_launch.h"
#include "ops/products/round_rows_op.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/quantise.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/chain/chain_op.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

void check_type(const Tensor& x) {
  if (x.type().is_block() || is_float(x.type().plain())) return;
  fail(
      fmt::format("matmul: elements of type {}; cast them to a float type first", x.type().name()));
}

// [batch..., rows, columns] as [batch, rows, columns], moving elements only where they must be.
Tensor as_batch(const Tensor& x, const Shape& batch) {
  Shape whole = batch;
  whole.append(x.shape()[-2]);
  whole.append(x.shape()[-1]);
  return x.expand(whole).reshape({batch.elements(), x.shape()[-2], x.shape()[-1]});
}

Tensor product(const Tensor& a, const Tensor& b) {
  return use_op(std::make_shared<MatmulOp>(), {a, b});
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (!a || !b) fail("matmul: an empty Tensor as an operand");
  if (a.rank() == 0 || b.rank() == 0)
    fail(fmt::format("matmul: shapes {} and {}; both need an axis", a.shape().text(),
                     b.shape().text()));
  check_type(a);
  check_type(b);
  if (a.rank() == 1) return matmul(a.unsqueeze(0), b).squeeze(b.rank() == 1 ? 0 : -2);
  if (b.rank() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (a.shape()[-1] != b.shape()[-2]) {
    fail(fmt::format("matmul: rows of {} in {} against columns of {} in {}; they must be equal",
                     a.shape()[-1], a.shape().text(), b.shape()[-2], b.shape().text()));
  }
  const int64_t m = a.shape()[-2], k = a.shape()[-1], n = b.shape()[-1];
  Shape batch_a = a.shape(), batch_b = b.shape();
  for (Shape* each : {&batch_a, &batch_b}) {
    each->erase(each->rank() - 1);
    each->erase(each->rank() - 1);
  }
  Shape batch = broadcast("matmul", batch_a, batch_b);
  Shape result = batch;
  result.append(m);
  result.append(n);
  // One matrix for all of the batch is one product of all its rows.
  if (b.rank() == 2) return product(a.reshape({batch.elements() * m, k}), b).reshape(result);
  if (batch.elements() == 1)
    return product(a.reshape({m, k}), b.reshape({b.shape()[-2], n})).reshape(result);
  return product(as_batch(a, batch), as_batch(b, batch)).reshape(result);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!x || !weight) fail("linear: an empty Tensor as an operand");
  if (weight.rank() != 2 || x.rank() == 0 || x.shape()[-1] != weight.shape()[-1]) {
    fail(
        fmt::format("linear: x {} with a weight {}; the weight needs two axes, and its rows the "
                    "length of x's",
                    x.shape().text(), weight.shape().text()));
  }
  const Tensor y = x.rank() == 1 ? matmul(x.unsqueeze(0), weight.transpose()).squeeze(0)
                                 : matmul(x, weight.transpose());
  return bias ? y + bias : y;
}

namespace {

// Quantised rows [n, k] for the product of g [m, n] with them: bf16 where the vendor multiplies
// that, which has the range that gradients need, else f32.
Tensor unpacked_rows(const Tensor& rows, const Tensor& g) {
  NativeProduct native;
  native.m = static_cast<uint32_t>(g.size(-2));
  native.n = static_cast<uint32_t>(rows.size(-1));
  native.k = static_cast<uint32_t>(rows.size(-2));
  native.a_type = native.b_type = DType::bf16;
  const bool is_bf16 = g.type() == ElementType(DType::bf16);
  native.c_type = is_bf16 ? DType::bf16 : DType::f32;
  const bool narrow = (is_bf16 || g.type() == ElementType(DType::f32)) && !native.is_empty() &&
                      native.k > 0 && rows.device().supports(native);
  return dequantise(rows, narrow ? DType::bf16 : DType::f32);
}

// A kernel has at most eight buffers and 24 parameters.
constexpr size_t kMostTailInputs = 5, kMostTailParams = 8;

}  // namespace

std::vector<Spec> MatmulOp::infer(std::span<const Tensor> inputs) const {
  const Tensor &a = inputs[0], &b = inputs[1];
  Shape shape = a.shape();
  shape[-1] = b.shape()[-1];
  if (a.type().is_block())
    fail(fmt::format("matmul: the left side is of type {}; only the right may be quantised",
                     a.type().name()));
  if (b.type().is_block() && b.layout().stride(-2) != 1) {
    fail(
        fmt::format("matmul: the right side {} is of type {}, whose rows run along k only as a "
                    "transposed view; use linear(x, weight)",
                    b.shape().text(), b.type().name()));
  }
  return {{shape, product_type(a.type(), b.type())}};
}

std::vector<Tensor> MatmulOp::gradient(const GradientCall& call) const {
  const Tensor &a = call.inputs[0], &b = call.inputs[1], &g = call.output_gradients[0];
  std::vector<Tensor> results(2);
  if (call.wanted[0]) {
    const Tensor rows = b.type().is_block() ? unpacked_rows(b.transpose(), g) : b.transpose();
    // Where the rows are bf16 the gradient is as well, and the sums are stored as a's type.
    const bool narrow = rows.type() == ElementType(DType::bf16);
    results[0] = cast(product(narrow ? cast(g, DType::bf16) : g, rows), a.type());
  }
  if (call.wanted[1] && !b.type().is_block()) {
    // The gradient gets b's memory order, so a transposed weight needs no copy.
    const bool turned = b.layout().stride(-2) == 1 && b.layout().stride(-1) != 1;
    results[1] =
        cast(turned ? product(g.transpose(), a).transpose() : product(a.transpose(), g), b.type());
  }
  return results;
}

ElementType product_type(ElementType x, ElementType weight) {
  return weight.is_block() ? x : ElementType(promoted(x.plain(), weight.plain()));
}

std::optional<MatrixLayout> matrix_layout(const Layout& layout) {
  const int64_t rows = layout.shape[-2], columns = layout.shape[-1];
  const int64_t row_step = layout.stride(-2), column_step = layout.stride(-1);
  MatrixLayout matrix;
  if (layout.shape.rank() == 3) {
    matrix.batch = layout.shape[0];
    matrix.batch_step = matrix.batch > 1 ? layout.stride(0) : 0;
  }
  // The step along an axis of length 1 is never taken.
  if (column_step == 1 || columns == 1) {
    matrix.step = rows == 1 ? columns : row_step;
    if (matrix.step >= columns) return matrix;
  }
  if (row_step == 1 || rows == 1) {
    matrix.transposed = true;
    matrix.step = columns == 1 ? rows : column_step;
    if (matrix.step >= rows) return matrix;
  }
  return std::nullopt;
}

double MatmulOp::operations(std::span<const DeviceView> inputs,
                            std::span<const DeviceView> outputs) const {
  return 2.0 * static_cast<double>(outputs[0].elements()) *
         static_cast<double>(inputs[1].layout.shape[-2]);
}

std::shared_ptr<const Op> MatmulOp::with_tail(Tail tail) const {
  if (tail.others() > kMostTailInputs || tail.params() > kMostTailParams) return nullptr;
  return std::make_shared<MatmulOp>(std::move(tail), rounded_, narrowed_);
}

std::optional<Preparation> MatmulOp::preparation(const Device& device,
                                                 std::span<const Tensor> inputs) const {
  const Tensor &x = inputs[0], &weights = inputs[1];
  if (rounded_ || narrowed_ || weights.rank() != 2 || x.rank() != 2 || x.elements() == 0 ||
      weights.elements() == 0)
    return std::nullopt;
  if (!device.info().is_cpu && x.shape()[0] > kFewRows) {
    if (x.type() != ElementType(DType::f32) || !takes_layout(1, weights, device.info()) ||
        !matrix_layout(x.layout()))
      return std::nullopt;
    const auto view = [](const Tensor& t) { return DeviceView{0, t.type(), t.layout()}; };
    const Sides sides = sides_of(view(x), view(weights), {}, {});
    const auto type = narrowed_rows(device, sides, product_type(x.type(), weights.type()));
    if (!type) return std::nullopt;
    return Preparation{0, std::make_shared<ChainOp>(cast_chain(DType::f32, *type)),
                       std::make_shared<MatmulOp>(tail_, std::nullopt, DType::f32)};
  }
  if (!weights.type().is_block() || !RoundRowsOp::runs_on(device, x)) return std::nullopt;
  Preparation preparation{0, std::make_shared<RoundRowsOp>(device, weights.type().block()),
                          std::make_shared<MatmulOp>(tail_, x.type().plain())};
  // On devices with kernels a launch of its own in any case, that what makes x may do instead.
  if (!device.info().is_cpu && takes_layout(0, x, device.info())) {
    const auto view = [](const Tensor& t) { return DeviceView{0, t.type(), t.layout()}; };
    const Sides sides = sides_of(view(x), view(weights), {}, std::nullopt);
    preparation.apart =
        sides.n > 0 && product_way(device.info(), sides, x.type()) == ProductWay::few_rows;
  }
  return preparation;
}

bool MatmulOp::takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const {
  if (input >= 2) return true;  // the tail's, which lie as they do
  if (rounded_ && input == 0) return Op::takes_layout(input, tensor, device);
  const Layout& layout = tensor.layout();
  if (tensor.type().is_block()) return true;  // infer() has seen that its rows are whole
  if (!device.is_cpu && layout.offset * tensor.type().block_bytes() % kRangeAlignment != 0)
    return false;
  const auto matrix = matrix_layout(layout);
  return matrix && matrix->batch_step >= 0 && matrix->step < (int64_t{1} << 31);
}

std::optional<std::string> MatmulOp::cannot_run(const DeviceInfo& device,
                                                std::span<const Tensor> inputs) const {
  for (const Tensor& each : inputs) {
    if (each.type() != ElementType(DType::f64)) continue;
    if (inputs[1].type().is_block()) return "kernels multiply quantised matrices up to f32";
    if (const std::string reason = lacks_type(device.capabilities, DType::f64); !reason.empty())
      return reason;
  }
  if (inputs[1].type().is_block() && inputs[1].layout().offset != 0)
    return "kernels take quantised matrices whole";
  if (inputs[1].type().is_block() && inputs[1].rank() != 2)
    return "kernels take one quantised matrix";
  return std::nullopt;
}

}  // namespace prism
