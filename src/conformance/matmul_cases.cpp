// Cases of matrix products: all types, few and many rows, batches, transposed operands.
#include <cmath>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"

namespace prism {

namespace {

// c[z] = a[z] b[z] in float64; one operand may have no batch axis.
Values product_reference(std::span<const ReferenceInput> in, bool b_by_rows) {
  const Shape &a = in[0].shape, &b = in[1].shape;
  const int64_t m = a.rank() > 1 ? a[-2] : 1, k = a[-1], n = b_by_rows ? b[-2] : b[-1];
  int64_t batch = 1;
  for (const Shape& each : {a, b})
    if (each.rank() == 3) batch = each[0];
  Values c;
  const auto from = [](const ReferenceInput& input, int64_t z, int64_t size, int64_t place) {
    const int64_t matrices = size == 0 ? 1 : input.shape.elements() / size;
    return input.values[static_cast<size_t>((matrices > 1 ? z : 0) * size + place)];
  };
  for (int64_t z = 0; z < batch; ++z) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t e = 0; e < k; ++e)
          sum += from(in[0], z, m * k, i * k + e) *
                 from(in[1], z, n * k, b_by_rows ? j * k + e : e * n + j);
        c.push_back(sum);
      }
    }
  }
  return c;
}

// For sums of k products of size about 1: the bound of an element grows with sqrt(k).
Tolerance dense_tolerance(DType type, int64_t k) {
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(k, 1)));
  switch (type) {
    case DType::f32:
      return {1e-7, 1e-5, 4e-6 * root};
    case DType::f64:
      return {1e-20, 1e-10, 1e-12 * root};
    case DType::f16:
      return {1e-6, 2e-3, 2e-3 * root};
    default:
      return {1e-4, 1.6e-2, 1.6e-2 * root};
  }
}

struct Sizes {
  int64_t m, n, k;
};

void add_dense(std::vector<OpCase>& cases, CaseRandom& random, DType type, const Sizes& s,
               int64_t batch, bool a_turned, bool b_turned) {
  OpCase test;
  test.op = "matmul";
  test.what = fmt::format("{} {}x{}x{}{}{}{}", dtype_name(type), s.m, s.n, s.k,
                          batch > 1 ? fmt::format(" batch {}", batch) : "",
                          a_turned ? ", a transposed" : "", b_turned ? ", b transposed" : "");
  const auto side = [&](int64_t rows, int64_t columns, bool turned) {
    CaseInput input;
    input.type = type;
    if (batch > 1) input.shape.append(batch);
    input.shape.append(turned ? columns : rows);
    input.shape.append(turned ? rows : columns);
    input.values = random.uniform(input.shape.elements());
    if (turned) input.view = [](const Tensor& t) { return t.transpose(); };
    return input;
  };
  test.inputs = {side(s.m, s.k, a_turned), side(s.k, s.n, b_turned)};
  test.compute = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{matmul(in[0], in[1])};
  };
  test.reference = [](std::span<const ReferenceInput> in) {
    return std::vector<Values>{product_reference(in, false)};
  };
  test.tolerance = dense_tolerance(type, s.k);
  test.gradient = type == DType::f32 && s.m * s.n * s.k > 0 && s.m * s.n * s.k <= 400;
  cases.push_back(std::move(test));
}

void add_quantised(std::vector<OpCase>& cases, CaseRandom& random, BlockType type, DType x,
                   const Sizes& s) {
  OpCase test;
  test.op = "linear";
  test.what = fmt::format("{} x {} {}x{}x{}", dtype_name(x), block_info(type).name, s.m, s.n, s.k);
  test.inputs = {random.input({s.m, s.k}, x),
                 CaseInput{{s.n, s.k}, type, random.normal(s.n * s.k)}};
  test.compute = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{linear(in[0], in[1])};
  };
  test.reference = [](std::span<const ReferenceInput> in) {
    return std::vector<Values>{product_reference(in, true)};
  };
  // The error of an 8-bit activation is at most 1/254 of the largest in its block, here 2: 0.008
  // for each product. The error of a sum of k products rarely exceeds 6 sqrt(k) times that.
  const double root = std::sqrt(static_cast<double>(s.k));
  test.tolerance = {5e-4, 2e-3, 6 * 0.005 * root};
  cases.push_back(std::move(test));
}

// 16-bit weights with x in f32. For many rows, matrix instructions need x rounded to the weights'
// type or to f16. The relative error of an element is at most 2^-11 (f16) or 2^-8 (bf16), for
// elements up to 2. The error of a sum of k products rarely exceeds 6 sqrt(k) times the average.
void add_narrow(std::vector<OpCase>& cases, CaseRandom& random, DType weight, const Sizes& s) {
  OpCase test;
  test.op = "linear";
  test.what = fmt::format("f32 x {} {}x{}x{}", dtype_name(weight), s.m, s.n, s.k);
  test.inputs = {random.input({s.m, s.k}, DType::f32), random.input({s.n, s.k}, weight)};
  test.compute = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{linear(in[0], in[1])};
  };
  test.reference = [](std::span<const ReferenceInput> in) {
    return std::vector<Values>{product_reference(in, true)};
  };
  const double unit = weight == DType::f16 ? 1.0 / 2048 : 1.0 / 256;
  test.tolerance = {unit * unit, 2 * unit, 6 * unit * std::sqrt(static_cast<double>(s.k))};
  cases.push_back(std::move(test));
}

// Typical epilogues, which plans fuse: (silu(gate) * (x w + bias) + residual) times a number per
// row, in f32 or cast to f16.
void add_joined(std::vector<OpCase>& cases, CaseRandom& random, ElementType weight, DType x,
                const Sizes& s, bool narrow) {
  OpCase test;
  test.op = "linear";
  test.what = fmt::format("{} x {} {}x{}x{} with bias, gate and residual{}", dtype_name(x),
                          weight.name(), s.m, s.n, s.k, narrow ? " to f16" : "");
  test.inputs = {random.input({s.m, s.k}, x),
                 weight.is_block() ? CaseInput{{s.n, s.k}, weight, random.normal(s.n * s.k)}
                                   : random.input({s.n, s.k}, weight),
                 random.input({s.n}, DType::f32),
                 random.input({s.m, s.n}, x),
                 random.input({s.m, s.n}, DType::f32),
                 random.input({s.m, 1}, DType::f32)};
  test.compute = [narrow](std::span<const Tensor> in) {
    const Tensor y = (silu(in[3]) * linear(in[0], in[1], in[2]) + in[4]) * in[5];
    return std::vector<Tensor>{narrow ? cast(y, DType::f16) : y};
  };
  test.reference = [s](std::span<const ReferenceInput> in) {
    Values y = product_reference(in, true);
    for (size_t i = 0; i < y.size(); ++i) {
      const auto n = static_cast<size_t>(s.n);
      const double gate = in[3].values[i];
      y[i] = (gate / (1 + std::exp(-gate)) * (y[i] + in[2].values[i % n]) + in[4].values[i]) *
             in[5].values[i / n];
    }
    return std::vector<Values>{y};
  };
  // Gates are below 1.8 and row factors below 2: four times the bounds of the product.
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(s.k, 1)));
  const Tolerance own = weight.is_block() ? Tolerance{5e-4, 2e-3, 6 * 0.005 * root}
                                          : dense_tolerance(narrow ? DType::f16 : x, s.k);
  test.tolerance = {own.nmse, 4 * own.relative, 4 * own.absolute + (narrow ? 4e-3 : 1e-5)};
  test.gradient = !weight.is_block() && x == DType::f32 && !narrow && s.m * s.n * s.k <= 200;
  cases.push_back(std::move(test));
}

}  // namespace

void add_matmul_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const Sizes sizes[] = {{1, 1, 1},    {1, 17, 64},   {3, 5, 7},      {8, 40, 96},
                         {9, 16, 32},  {33, 65, 1},   {0, 4, 5},      {4, 3, 0},
                         {64, 64, 64}, {130, 70, 37}, {1, 301, 1024}, {17, 129, 259}};
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (const Sizes& each : sizes) {
      add_dense(cases, random, type, each, 1, false, false);
      add_dense(cases, random, type, each, 1, false, true);
      add_dense(cases, random, type, each, 1, true, false);
    }
    for (const Sizes& each : {Sizes{3, 5, 7}, Sizes{16, 33, 64}, Sizes{1, 9, 40}}) {
      add_dense(cases, random, type, each, 3, false, true);
      add_dense(cases, random, type, each, 5, true, false);
    }
  }
  for (const Sizes& each : {Sizes{1, 9, 32}, Sizes{3, 5, 7}, Sizes{19, 33, 64}}) {
    for (const bool narrow : {false, true}) {
      add_joined(cases, random, DType::f32, DType::f32, each, narrow);
      add_joined(cases, random, DType::f16, DType::f16, each, narrow);
      if (each.k % 32 == 0) add_joined(cases, random, BlockType::q8_0, DType::f32, each, narrow);
    }
  }
  for (const DType weight : {DType::f16, DType::bf16})
    for (const Sizes& each :
         {Sizes{1, 33, 64}, Sizes{7, 19, 40}, Sizes{13, 33, 65}, Sizes{70, 40, 96}})
      add_narrow(cases, random, weight, each);
  for (int code = 0; code < kBlockTypeCount; ++code) {
    const auto type = static_cast<BlockType>(code);
    const int64_t block = block_info(type).elements;
    for (const DType x : {DType::f32, DType::f16}) {
      for (const int64_t m : {1, 2, 5, 8, 9, 13, 40, 64, 70}) {
        add_quantised(cases, random, type, x,
                      {m, random.between(1, 70), block * random.between(1, 4)});
      }
    }
  }
  // Long sums for few results, as gradients of weights have: cut into parts on many devices.
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    add_dense(cases, random, type, {66, 40, 1024}, 1, true, false);
    add_dense(cases, random, type, {66, 40, 1024}, 1, false, true);
  }
}

}  // namespace prism
