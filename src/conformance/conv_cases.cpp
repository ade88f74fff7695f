// Cases of convolutions and pooling: strides, padding, dilation and groups that do not divide the
// input evenly.
#include <algorithm>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/conv.h"

namespace prism {

namespace {

struct ConvShape {
  Shape x, weight;
  Conv2dOptions options;
};

const std::vector<ConvShape>& conv_shapes() {
  static const std::vector<ConvShape> all = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{1, 1, 5, 5}, {1, 1, 3, 3}, {}},
      {{2, 3, 7, 5}, {4, 3, 3, 2}, {2, 1, 1, 2, 1, 1, 1}},
      {{1, 4, 6, 9}, {6, 2, 3, 3}, {1, 2, 1, 1, 1, 2, 2}},
      {{2, 3, 5, 4}, {3, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 3}},
      {{3, 2, 11, 13}, {5, 2, 5, 1}, {3, 2, 2, 0, 2, 1, 1}},
      {{0, 2, 5, 5}, {3, 2, 3, 3}, {}},
      // Many channels, computed as matrix products: by windows, or directly on x.
      {{1, 8, 17, 19}, {32, 8, 3, 3}, {1, 1, 1, 1, 1, 1, 1}},
      {{2, 4, 6, 6}, {33, 4, 3, 3}, {1, 1, 1, 1, 1, 1, 1}},
      {{3, 24, 9, 11}, {40, 24, 3, 2}, {2, 1, 1, 2, 1, 3, 1}},
      {{2, 33, 8, 7}, {45, 33, 1, 1}, {}},
      {{3, 32, 16, 12}, {64, 32, 1, 1}, {2, 1, 0, 0, 1, 1, 1}},
  };
  return all;
}

Values convolved(std::span<const ReferenceInput> in, const Conv2dOptions& o) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t out_y = (x[2] + 2 * o.padding_y - (w[2] - 1) * o.dilation_y - 1) / o.stride_y + 1;
  const int64_t out_x = (x[3] + 2 * o.padding_x - (w[3] - 1) * o.dilation_x - 1) / o.stride_x + 1;
  Values y;
  for (int64_t b = 0; b < x[0]; ++b) {
    for (int64_t f = 0; f < w[0]; ++f) {
      for (int64_t i = 0; i < out_y * out_x; ++i) {
        double sum = in.size() > 2 ? in[2].values[static_cast<size_t>(f)] : 0;
        for (int64_t k = 0; k < w[1] * w[2] * w[3]; ++k) {
          const int64_t c = k / (w[2] * w[3]), v = k / w[3] % w[2], u = k % w[3];
          const int64_t row = i / out_x * o.stride_y + v * o.dilation_y - o.padding_y;
          const int64_t column = i % out_x * o.stride_x + u * o.dilation_x - o.padding_x;
          if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
          const int64_t channel = f / (w[0] / o.groups) * w[1] + c;
          sum += in[0].values[static_cast<size_t>(((b * x[1] + channel) * x[2] + row) * x[3] +
                                                  column)] *
                 in[1].values[static_cast<size_t>(f * w[1] * w[2] * w[3] + k)];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// Narrow floats round the sum, and round again after the bias, which may cancel most of it.
Tolerance conv_tolerance(DType type) {
  Tolerance result = Tolerance::reduction(type, 4);
  if (type == DType::f16) result = {1e-5, 2e-3, 2e-2};
  if (type == DType::bf16) result = {1e-3, 1.6e-2, 0.15};
  return result;
}

void add_conv(std::vector<OpCase>& cases, CaseRandom& random, DType type) {
  for (const ConvShape& each : conv_shapes()) {
    const Conv2dOptions& o = each.options;
    OpCase test;
    test.op = "conv2d";
    test.what =
        fmt::format("{} {} by {} stride {} {} padding {} {} dilation {} {} groups {}",
                    ElementType(type).name(), each.x.text(), each.weight.text(), o.stride_y,
                    o.stride_x, o.padding_y, o.padding_x, o.dilation_y, o.dilation_x, o.groups);
    test.inputs = {draw(random, each.x, type), draw(random, each.weight, type)};
    if (random.between(0, 1)) test.inputs.push_back(draw(random, {each.weight[0]}, type));
    test.compute = [o](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {conv2d(in[0], in[1], o, in.size() > 2 ? in[2] : Tensor())};
    };
    test.reference = [o](std::span<const ReferenceInput> in) {
      return std::vector<Values>{convolved(in, o)};
    };
    test.tolerance = conv_tolerance(type);
    test.gradient = type == DType::f32 && each.x.elements() > 0 && each.x.elements() < 4000;
    cases.push_back(std::move(test));
  }
  OpCase line;
  line.op = "conv1d";
  line.what = fmt::format("{} [2, 3, 17] by [4, 3, 5]", ElementType(type).name());
  line.inputs = {draw(random, {2, 3, 17}, type), draw(random, {4, 3, 5}, type)};
  line.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {conv1d(in[0], in[1], {2, 3, 2, 1})};
  };
  line.reference = [](std::span<const ReferenceInput> in) {
    const ReferenceInput plane[] = {{{2, 3, 1, 17}, in[0].values}, {{4, 3, 1, 5}, in[1].values}};
    return std::vector<Values>{convolved(plane, {1, 2, 0, 3, 1, 2, 1})};
  };
  line.tolerance = conv_tolerance(type);
  line.gradient = type == DType::f32;
  cases.push_back(std::move(line));
}

Values pooled(const ReferenceInput& x, const Pool2dOptions& o, bool mean) {
  const int64_t stride_y = o.stride_y ? o.stride_y : o.height;
  const int64_t stride_x = o.stride_x ? o.stride_x : o.width;
  const int64_t height = x.shape[2], width = x.shape[3];
  const int64_t out_y = (height + 2 * o.padding_y - o.height) / stride_y + 1;
  const int64_t out_x = (width + 2 * o.padding_x - o.width) / stride_x + 1;
  Values y;
  for (int64_t image = 0; image < x.shape[0] * x.shape[1]; ++image) {
    for (int64_t i = 0; i < out_y * out_x; ++i) {
      Values inside;
      for (int64_t k = 0; k < o.height * o.width; ++k) {
        const int64_t row = i / out_x * stride_y + k / o.width - o.padding_y;
        const int64_t column = i % out_x * stride_x + k % o.width - o.padding_x;
        if (row >= 0 && row < height && column >= 0 && column < width)
          inside.push_back(x.values[static_cast<size_t>((image * height + row) * width + column)]);
      }
      double sum = 0;
      for (const double value : inside) sum += value;
      y.push_back(mean ? sum / static_cast<double>(inside.size())
                       : *std::max_element(inside.begin(), inside.end()));
    }
  }
  return y;
}

void add_pool(std::vector<OpCase>& cases, CaseRandom& random, DType type) {
  struct PoolShape {
    Shape x;
    Pool2dOptions options;
  };
  for (const PoolShape& each :
       {PoolShape{{1, 1, 1, 1}, {1, 1}}, PoolShape{{2, 3, 4, 6}, {2, 2}},
        PoolShape{{1, 2, 7, 5}, {3, 2, 2, 1, 1, 1}}, PoolShape{{0, 2, 4, 4}, {2, 2}},
        PoolShape{{3, 1, 13, 11}, {5, 3, 3, 2, 2, 0}}}) {
    for (const bool mean : {false, true}) {
      OpCase test;
      test.op = mean ? "avg_pool2d" : "max_pool2d";
      test.what = fmt::format("{} {} by {} x {}", ElementType(type).name(), each.x.text(),
                              each.options.height, each.options.width);
      test.inputs = {draw(random, each.x, type)};
      test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {mean ? avg_pool2d(in[0], each.options) : max_pool2d(in[0], each.options)};
      };
      test.reference = [=](std::span<const ReferenceInput> in) {
        return std::vector<Values>{pooled(in[0], each.options, mean)};
      };
      test.tolerance = mean ? Tolerance::elementwise(type) : Tolerance::exact();
      if (mean && type == DType::bf16) test.tolerance.absolute = 1e-2;
      test.gradient = type == DType::f32 && each.x.elements() > 0 && each.x.elements() < 200;
      cases.push_back(std::move(test));
    }
  }
  for (const bool mean : {false, true}) {
    OpCase test;
    test.op = mean ? "avg_pool1d" : "max_pool1d";
    test.what = fmt::format("{} [2, 3, 11] by 3", ElementType(type).name());
    test.inputs = {draw(random, {2, 3, 11}, type)};
    test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {mean ? avg_pool1d(in[0], {3, 2, 1}) : max_pool1d(in[0], {3, 2, 1})};
    };
    test.reference = [=](std::span<const ReferenceInput> in) {
      return std::vector<Values>{pooled({{2, 3, 1, 11}, in[0].values}, {1, 3, 1, 2, 0, 1}, mean)};
    };
    test.tolerance = mean ? Tolerance::elementwise(type) : Tolerance::exact();
    if (mean && type == DType::bf16) test.tolerance.absolute = 1e-2;
    test.gradient = type == DType::f32;
    cases.push_back(std::move(test));
  }
}

}  // namespace

void add_conv_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : kFloatTypes) {
    add_conv(cases, random, type);
    add_pool(cases, random, type);
  }
}

}  // namespace prism
