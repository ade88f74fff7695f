// The ops that are timed, at the sizes of a 7B language model if the device is fast enough.
#include <algorithm>

#include <fmt/format.h>

#include "ops/bench/op_bench.h"
#include "prism/ops/attention.h"
#include "prism/ops/conv.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/reduce.h"
#include "prism/ops/scan.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"

namespace prism {

namespace {

constexpr int64_t kWidth = 4096;  // embedding width of a 7B model

double bytes_of(int64_t elements, ElementType type) {
  return static_cast<double>(elements) / static_cast<double>(type.block_elements()) *
         static_cast<double>(type.block_bytes());
}

// Row indices in an order that hardware cannot prefetch.
Tensor scattered_rows(int64_t count, int64_t below, const Device& device) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(i * 7919 % below));
  return from_vector(values, {count}, device);
}

// Collects the cases of one device.
class Bench {
 public:
  explicit Bench(const Device& device) : device_(device) {}

  using Function = std::function<Tensor(std::span<const Tensor>)>;
  // Adds a case with this many inputs of one shape and type; the result has `out` elements.
  void over(const char* op, const Shape& shape, DType type, int inputs, int64_t out, double flops,
            Function f, DType out_type) {
    BenchCase bench;
    bench.op = op;
    bench.what = fmt::format("{} {}", dtype_name(type), shape.text());
    bench.bytes = inputs * bytes_of(shape.elements(), type) + bytes_of(out, out_type);
    bench.flops = flops * static_cast<double>(shape.elements());
    bench.inputs = [device = device_, shape, type, inputs] {
      std::vector<Tensor> tensors;
      for (int i = 0; i < inputs; ++i)
        tensors.push_back(uniform(shape, static_cast<uint64_t>(i + 1), -1, 1, type, device));
      return tensors;
    };
    bench.compute_one = std::move(f);
    cases.push_back(std::move(bench));
  }
  void over(const char* op, const Shape& shape, DType type, int inputs, double flops, Function f) {
    over(op, shape, type, inputs, shape.elements(), flops, std::move(f), type);
  }

  std::vector<BenchCase> cases;

 private:
  Device device_;
};

// Blocks whose bytes are all equal: small scales, no NaN.
Tensor constant_blocks(const Shape& shape, ElementType type, const Device& device) {
  const auto bytes = static_cast<size_t>(bytes_of(shape.elements(), type));
  return from_bytes(std::vector<std::byte>(bytes, std::byte{0x11}), shape, type, device);
}

BenchCase product_case(int64_t m, int64_t n, int64_t k, DType type, const Device& device) {
  BenchCase bench;
  bench.op = "matmul";
  bench.what = fmt::format("{} {}x{}x{}", dtype_name(type), m, n, k);
  bench.bytes = bytes_of(m * k + k * n + m * n, type);
  bench.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  bench.is_product = true;
  bench.compute = type;
  bench.inputs = [=] {
    return std::vector<Tensor>{uniform({m, k}, 1, -1, 1, type, device),
                               uniform({k, n}, 2, -1, 1, type, device)};
  };
  bench.compute_one = [](auto in) { return matmul(in[0], in[1]); };
  return bench;
}

// f16 x [m, k] times quantised weight [n, k].
BenchCase linear_case(int64_t m, int64_t n, int64_t k, ElementType type, const Device& device) {
  BenchCase bench;
  bench.op = "linear";
  bench.what = fmt::format("{} {}x{}, {} row{}", type.name(), n, k, m, m == 1 ? "" : "s");
  bench.bytes = bytes_of(n * k, type) + bytes_of(m * k + m * n, DType::f16);
  bench.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  bench.is_product = true;
  bench.compute = DType::f16;
  bench.is_quantised = type.is_block();
  bench.inputs = [=] {
    return std::vector<Tensor>{uniform({m, k}, 1, -1, 1, DType::f16, device),
                               type.is_block() ? constant_blocks({n, k}, type, device)
                                               : uniform({n, k}, 2, -1, 1, type.plain(), device)};
  };
  bench.compute_one = [](auto in) { return linear(in[0], in[1]); };
  return bench;
}

// Each row uses 8 of 64 experts of n x k, spread evenly as routers do.
BenchCase expert_case(int64_t rows, int64_t n, int64_t k, BlockType type, const Device& device) {
  constexpr int64_t kExperts = 64, kUsed = 8;
  const int64_t slots = rows * kUsed;
  BenchCase bench;
  bench.op = "expert_matmul";
  bench.what = fmt::format("{} {}x{}, {} row{} by {} of {}", block_info(type).name, n, k, rows,
                           rows == 1 ? "" : "s", kUsed, kExperts);
  bench.bytes = bytes_of(std::min(slots, kExperts) * n * k, type) +
                bytes_of(rows * k + slots * n, DType::f16);
  bench.flops = 2.0 * static_cast<double>(slots) * static_cast<double>(n) * static_cast<double>(k);
  bench.is_product = true;
  bench.compute = DType::f16;
  bench.is_quantised = true;
  bench.inputs = [=] {
    return std::vector<Tensor>{uniform({rows, k}, 1, -1, 1, DType::f16, device),
                               constant_blocks({kExperts, n, k}, type, device),
                               scattered_rows(slots, kExperts, device).reshape({rows, kUsed})};
  };
  bench.compute_one = [](auto in) { return expert_matmul(in[0], in[1], in[2]); };
  return bench;
}

// As many filters as channels, 3 x 3 windows with padding, as in the layers of an image network.
BenchCase conv_case(int64_t images, int64_t channels, int64_t side, DType type,
                    const Device& device) {
  const Shape x = {images, channels, side, side}, weight = {channels, channels, 3, 3};
  BenchCase bench;
  bench.op = "conv2d";
  bench.what = fmt::format("{} {} by 3 x 3", dtype_name(type), x.text());
  bench.bytes = bytes_of(2 * x.elements() + weight.elements(), type);
  bench.flops = 2.0 * static_cast<double>(x.elements()) * static_cast<double>(channels) * 9;
  bench.is_product = true;
  bench.compute = type;
  bench.inputs = [=] {
    return std::vector<Tensor>{uniform(x, 1, -1, 1, type, device),
                               uniform(weight, 2, -1, 1, type, device)};
  };
  bench.compute_one = [](auto in) { return conv2d(in[0], in[1], {1, 1, 1, 1}); };
  return bench;
}

// Causal attention with 32 heads over 8 key heads of size 128, as in a 7B or 8B model.
BenchCase attention_case(int64_t queries, int64_t keys, const Device& device) {
  constexpr int64_t kHeads = 32, kKeyHeads = 8, kDim = 128;
  BenchCase bench;
  bench.op = "attention";
  bench.what = fmt::format("f16 {} of {} positions", queries, keys);
  bench.bytes = bytes_of(2 * (kHeads * queries + kKeyHeads * keys) * kDim, DType::f16);
  // On average a query sees half of the positions of its own batch and all earlier ones.
  const double seen = static_cast<double>(queries) *
                      (static_cast<double>(keys) - 0.5 * static_cast<double>(queries - 1));
  bench.flops = 4.0 * kHeads * kDim * seen;
  bench.is_product = true;
  bench.compute = DType::f16;
  bench.inputs = [=] {
    return std::vector<Tensor>{uniform({1, kHeads, queries, kDim}, 1, -1, 1, DType::f16, device),
                               uniform({1, kKeyHeads, keys, kDim}, 2, -1, 1, DType::f16, device),
                               uniform({1, kKeyHeads, keys, kDim}, 3, -1, 1, DType::f16, device)};
  };
  bench.compute_one = [](auto in) { return attention(in[0], in[1], in[2]); };
  return bench;
}

// The same for one query over a KV cache: one slot, or blocks that a table lists in another order.
BenchCase cached_attention_case(int64_t keys, int64_t block, const Device& device) {
  constexpr int64_t kHeads = 32, kKeyHeads = 8, kDim = 128;
  const int64_t blocks = block > 0 ? keys / block : 1;
  BenchCase bench;
  bench.op = "cached_attention";
  bench.what = block > 0 ? fmt::format("f16 1 of {} positions, blocks of {}", keys, block)
                         : fmt::format("f16 1 of {} positions", keys);
  bench.bytes = bytes_of(2 * (kHeads + kKeyHeads * keys) * kDim, DType::f16);
  bench.flops = 4.0 * kHeads * kDim * static_cast<double>(keys);
  bench.is_product = true;
  bench.compute = DType::f16;
  bench.inputs = [=] {
    const Shape cache = {blocks, keys / blocks, kKeyHeads, kDim};
    std::vector<int32_t> table;
    for (int64_t i = 0; i < blocks; ++i)
      table.push_back(static_cast<int32_t>((i * 7 + 3) % blocks));
    return std::vector<Tensor>{
        uniform({1, kHeads, kDim}, 1, -1, 1, DType::f32, device),
        uniform(cache, 2, -1, 1, DType::f16, device), uniform(cache, 3, -1, 1, DType::f16, device),
        from_vector(std::vector<int32_t>{0, 1, static_cast<int32_t>(keys), 0}, {1, 4}, device),
        from_vector(table, {1, blocks}, device)};
  };
  bench.compute_one = [block](auto in) {
    AttentionSettings settings;
    if (block > 0) settings.table = in[4];
    return cached_attention(in[0], in[1], in[2], in[3], 1, settings);
  };
  return bench;
}

}  // namespace

std::vector<BenchCase> bench_cases(const Device& device) {
  Bench bench(device);
  const bool cpu = device.info().is_cpu, software = device.info().software && !cpu;
  const int64_t rows = software ? 64 : cpu ? 1024 : 16384;
  const Shape matrix = {rows, kWidth};
  const auto both = {DType::f32, DType::f16};

  for (const DType type : both)
    bench.over("add", matrix, type, 2, 1, [](auto in) { return in[0] + in[1]; });
  bench.over("silu", matrix, DType::f32, 1, 4, [](auto in) { return silu(in[0]); });
  bench.over("chain of five", matrix, DType::f32, 2, 8,
             [](auto in) { return tanh(in[0] * in[1] + in[0]) * 0.5 - in[1]; });
  bench.over("swiglu", matrix, DType::f16, 2, 5, [](auto in) { return swiglu(in[0], in[1]); });
  bench.over(
      "cast", matrix, DType::f32, 1, matrix.elements(), 0,
      [](auto in) { return cast(in[0], DType::f16); }, DType::f16);
  bench.over("transpose", matrix, DType::f32, 1, 0,
             [](auto in) { return in[0].transpose().contiguous(); });
  for (const DType type : both)
    bench.over(
        "sum", matrix, type, 1, rows, 1, [](auto in) { return sum(in[0], {-1}); }, type);
  bench.over(
      "sum of columns", matrix, DType::f32, 1, kWidth, 1, [](auto in) { return sum(in[0], {0}); },
      DType::f32);
  bench.over(
      "argmax", matrix, DType::f32, 1, rows, 1, [](auto in) { return argmax(in[0]); }, DType::i32);
  for (const DType type : both) {
    bench.over("softmax", matrix, type, 1, 4, [](auto in) { return softmax(in[0]); });
    bench.over("rms_norm", matrix, type, 1, 4, [](auto in) { return rms_norm(in[0]); });
    bench.over("layer_norm", matrix, type, 1, 6, [](auto in) { return layer_norm(in[0]); });
  }
  bench.over("cumsum", matrix, DType::f32, 1, 1, [](auto in) { return cumsum(in[0]); });
  const int64_t few = software ? 2 : 16, words = software ? 4096 : 151936;  // vocabulary size
  bench.over(
      "top_k 40", {few, words}, DType::f32, 1, few * 40, 1,
      [](auto in) { return top_k(in[0], 40).values; }, DType::f32);
  bench.over("sort", {few, words}, DType::f32, 1, 1, [](auto in) { return sort(in[0]).values; });

  BenchCase gather;
  gather.op = "gather_rows";
  gather.what = fmt::format("f16 {} rows of {}", rows / 4, kWidth);
  gather.bytes = 2 * bytes_of(rows / 4 * kWidth, DType::f16);
  gather.inputs = [device, rows] {
    return std::vector<Tensor>{uniform({rows, kWidth}, 1, -1, 1, DType::f16, device),
                               scattered_rows(rows / 4, rows, device)};
  };
  gather.compute_one = [](auto in) { return gather_rows(in[0], in[1]); };
  bench.cases.push_back(std::move(gather));

  const int64_t side = software ? 256 : cpu ? 1024 : 4096;
  for (const DType type : both) bench.cases.push_back(product_case(side, side, side, type, device));
  const int64_t k = software ? 512 : kWidth, n = software ? 1024 : 11008;
  for (const int64_t m : {int64_t{1}, int64_t{software ? 64 : cpu ? 128 : 512}}) {
    for (const ElementType type :
         {ElementType(DType::f16), ElementType(BlockType::q8_0), ElementType(BlockType::q4_k)}) {
      bench.cases.push_back(linear_case(m, n, k, type, device));
      if (m == 1) bench.cases.push_back(linear_case(m, k, k, type, device));
    }
  }
  const int64_t keys = software ? 128 : 4096, prompt = software ? 64 : cpu ? 256 : 2048;
  for (const int64_t m : {int64_t{1}, software ? int64_t{16} : int64_t{512}})
    bench.cases.push_back(software ? expert_case(m, 64, 256, BlockType::q4_k, device)
                                   : expert_case(m, 1408, 2048, BlockType::q4_k, device));
  for (const DType type : both)
    bench.cases.push_back(software ? conv_case(1, 32, 16, type, device)
                                   : conv_case(cpu ? 1 : 32, cpu ? 64 : 256, 56, type, device));
  bench.cases.push_back(attention_case(1, keys, device));
  bench.cases.push_back(attention_case(prompt, prompt, device));
  for (const int64_t block : {0, 64, 128, 256})
    if (block < keys) bench.cases.push_back(cached_attention_case(keys, block, device));
  return std::move(bench.cases);
}

}  // namespace prism
