// The functions of neural networks: products with weights, norms, attention, convolutions, losses.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/ops.h"

namespace prism::python {
namespace {

Tensor maybe(nb::handle given) { return given.is_none() ? Tensor() : nb::cast<Tensor>(given); }

std::pair<int64_t, int64_t> two(nb::handle given) {
  if (nb::isinstance<nb::int_>(given)) return {nb::cast<int64_t>(given), nb::cast<int64_t>(given)};
  const Shape both = shape_argument(given);
  if (both.rank() != 2) throw nb::value_error("give one integer or two");
  return {both[0], both[1]};
}

BlockType block_type(nb::handle dtype) {
  const ElementType type = element_type(dtype);
  if (!type.is_block())
    throw Error(ErrorCode::kInvalidArgument, std::string("quantise: ") + numpy_name(type) +
                                                 " is no quantised type; use q4_k, q8_0 ...");
  return type.block();
}

void bind_rows(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, nb::handle bias) {
        return linear(x, weight, maybe(bias));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      "x times the rows of weight, which may be quantised, plus bias.");
  m.def(
      "layer_norm",
      [](const Tensor& x, nb::handle weight, nb::handle bias, double eps) {
        return layer_norm(x, maybe(weight), maybe(bias), eps);
      },
      nb::arg("x"), nb::arg("weight") = nb::none(), nb::arg("bias") = nb::none(),
      nb::arg("eps") = 1e-5);
  m.def(
      "rms_norm",
      [](const Tensor& x, nb::handle weight, double eps) {
        return rms_norm(x, maybe(weight), eps);
      },
      nb::arg("x"), nb::arg("weight") = nb::none(), nb::arg("eps") = 1e-5);
  m.def(
      "cross_entropy",
      [](const Tensor& logits, const Tensor& target, int32_t ignore_index) {
        return cross_entropy(logits, target.astype(DType::i32), ignore_index);
      },
      nb::arg("logits"), nb::arg("target"), nb::arg("ignore_index") = kNoIgnoredIndex,
      "The mean of -log_softmax(logits)[target] over rows.");
  m.def(
      "dropout", [](const Tensor& x, double p, uint64_t key) { return dropout(x, p, key); },
      nb::arg("x"), nb::arg("p"), nb::arg("key"), "Zero with probability p, else x / (1 - p).");
  m.def(
      "swiglu", [](const Tensor& gate, const Tensor& up) { return swiglu(gate, up); },
      nb::arg("gate"), nb::arg("up"));
  m.def(
      "geglu",
      [](const Tensor& gate, const Tensor& up, bool exact) { return geglu(gate, up, exact); },
      nb::arg("gate"), nb::arg("up"), nb::arg("exact") = false);
  m.def(
      "one_hot", [](const Tensor& x, int64_t classes) { return one_hot(x, classes); }, nb::arg("x"),
      nb::arg("num_classes"));
  m.def(
      "embedding",
      [](const Tensor& indices, const Tensor& weight) { return gather_rows(weight, indices); },
      nb::arg("indices"), nb::arg("weight"),
      "The rows of weight, which may be quantised, at the indices.");
  m.def(
      "quantise", [](const Tensor& x, nb::handle dtype) { return quantise(x, block_type(dtype)); },
      nb::arg("x"), nb::arg("dtype"),
      nb::sig("def quantise(x: Tensor, dtype: DTypeLike) -> Tensor"),
      "Floats as blocks of a quantised type: q4_k, q8_0 ...");
  m.def(
      "dequantise", [](const Tensor& x) { return dequantise(x); }, nb::arg("x"),
      "The elements of a quantised tensor as float32.");
}

void bind_attention(nb::module_& m) {
  m.def(
      "scaled_dot_product_attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v, nb::handle mask, bool is_causal,
         double scale, int64_t window, double soft_cap) {
        AttentionSettings settings;
        settings.scale = scale;
        settings.causal = is_causal;
        settings.window = window;
        settings.soft_cap = soft_cap;
        settings.mask = maybe(mask);
        return attention(q, k, v, settings);
      },
      nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("attn_mask") = nb::none(),
      nb::arg("is_causal") = false, nb::arg("scale") = 0.0, nb::arg("window") = 0,
      nb::arg("soft_cap") = 0.0,
      "softmax(query key^T * scale + attn_mask) value over [batch, heads, positions, dim].");
}

void bind_windows(nb::module_& m) {
  m.def(
      "conv2d",
      [](const Tensor& x, const Tensor& weight, nb::handle bias, nb::handle stride,
         nb::handle padding, nb::handle dilation, int64_t groups) {
        Conv2dOptions options;
        std::tie(options.stride_y, options.stride_x) = two(stride);
        std::tie(options.padding_y, options.padding_x) = two(padding);
        std::tie(options.dilation_y, options.dilation_x) = two(dilation);
        options.groups = groups;
        return conv2d(x, weight, options, maybe(bias));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("groups") = 1,
      "The cross-correlation of [n, channels, height, width] with [filters, channels / groups, "
      "height, width].");
  m.def(
      "conv1d",
      [](const Tensor& x, const Tensor& weight, nb::handle bias, int64_t stride, int64_t padding,
         int64_t dilation, int64_t groups) {
        return conv1d(x, weight, {stride, padding, dilation, groups}, maybe(bias));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("groups") = 1);
  const auto pool = [&](const char* name, auto function, const char* doc) {
    m.def(
        name,
        [function](const Tensor& x, nb::handle size, nb::handle stride, nb::handle padding) {
          Pool2dOptions options;
          std::tie(options.height, options.width) = two(size);
          if (!stride.is_none()) std::tie(options.stride_y, options.stride_x) = two(stride);
          std::tie(options.padding_y, options.padding_x) = two(padding);
          return function(x, options);
        },
        nb::arg("x"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
        nb::arg("padding") = 0, doc);
  };
  pool("max_pool2d", &max_pool2d, "The maximum of each window.");
  pool("avg_pool2d", &avg_pool2d, "The mean of each window.");
}

}  // namespace

void bind_layers(nb::module_& m) {
  bind_rows(m);
  bind_attention(m);
  bind_windows(m);
}

}  // namespace prism::python
