// rope_to_cache: rotates q and k and writes k and v to the caches in their type.
#include "ops/attention/rope_to_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/types/block_formats.h"
#include "cpu/elementwise.h"
#include "cpu/rope.h"
#include "ops/attention/rope_to_cache_kernel.h"
#include "ops/index/index_reading.h"
#include "ops/products/products_to_cache.h"
#include "prism/error.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"
#include "tensor/plan/joint.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Quantises one q8_0 block; the scale comes from the largest element.
void store_block(const float* x, BlockQ8_0& block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  block.d = f16_from_f32(largest * (1.0f / 127));
  const float scale = f32_from_f16(block.d), by = scale > 0 ? scale : 1;
  for (int i = 0; i < 32; ++i)
    block.qs[i] = static_cast<int8_t>(std::clamp(std::nearbyint(x[i] / by), -127.0f, 127.0f));
}

class RopeToCacheOp : public Op, public JoinsJoint {
 public:
  RopeToCacheOp(const RopeOptions& options, bool rotates, bool has_values)
      : options_(options), rotates_(rotates), caches_(has_values ? 2 : 1) {}
  std::string_view name() const override { return "rope_to_cache"; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return static_cast<uint32_t>(caches_); }
  std::string attributes() const override { return rope_text(options_, rotates_); }

  // Inputs: k_cache, v_cache, q, k, v, places, frequencies; without values no v_cache and v.
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &k_cache = inputs[0], &v_cache = inputs[caches_ - 1], &q = inputs[caches_],
                 &k = inputs[caches_ + 1], &v = inputs[2 * caches_],
                 &places = inputs[2 * caches_ + 1];
    ops::check_changeable("rope_to_cache", k_cache);
    ops::check_changeable("rope_to_cache", v_cache);
    const auto shapes = [&] {
      return fmt::format("q {} {}, k {} {}, v {} {}, caches {} {} and {} {}", q.type().name(),
                         q.shape().text(), k.type().name(), k.shape().text(), v.type().name(),
                         v.shape().text(), k_cache.type().name(), k_cache.shape().text(),
                         v_cache.type().name(), v_cache.shape().text());
    };
    const auto suits = [&](const Tensor& x, const Tensor& cache) {
      return x.rank() == 3 && cache.rank() >= 3 && q.size(0) == x.size(0) &&
             x.size(1) == cache.size(-2) && x.size(2) == cache.size(-1);
    };
    const bool fits = q.rank() == 3 && suits(k, k_cache) && suits(v, v_cache) &&
                      q.size(2) == k.size(2) && k_cache.rank() == v_cache.rank() &&
                      k_cache.elements() / std::max<int64_t>(1, k_cache.size(-1)) ==
                          v_cache.elements() / std::max<int64_t>(1, v_cache.size(-1));
    if (!fits)
      fail(
          fmt::format("rope_to_cache: {}; q must be [rows, heads, dim], k and v [rows, kv_heads, "
                      "dim] and caches [slots..., kv_heads, dim]",
                      shapes()));
    const auto narrow = [](ElementType type) {
      return type == ElementType(DType::f32) || type == ElementType(DType::f16) ||
             type == ElementType(DType::bf16);
    };
    const ElementType cache = k_cache.type();
    if (!narrow(q.type()) || q.type() != k.type() || k.type() != v.type() ||
        cache != v_cache.type() || !(narrow(cache) || cache == ElementType(BlockType::q8_0)))
      fail(
          fmt::format("rope_to_cache: {}; q, k and v must be all f32, f16 or bf16, and both caches "
                      "one of these or q8_0",
                      shapes()));
    if (!(places.shape() == Shape{q.shape()[0], 2}) || !(places.type() == ElementType(DType::i32)))
      fail(fmt::format("rope_to_cache: places {} {} for {} rows; they must be i32 [{}, 2]",
                       places.type().name(), places.shape().text(), q.shape()[0], q.shape()[0]));
    if (rotates_) {
      const Tensor& frequencies = inputs[2 * caches_ + 2];
      if (options_.dims % 2 != 0 || options_.dims > q.shape()[2] || options_.dims < 0 ||
          !(frequencies.shape() == Shape{options_.dims / 2}) ||
          !(frequencies.type() == ElementType(DType::f32)))
        fail(fmt::format(
            "rope_to_cache: {} rotated dims of {} with frequencies {} {}; dims must "
            "be even, frequencies f32 [dims / 2]",
            options_.dims, q.shape()[2], frequencies.type().name(), frequencies.shape().text()));
    }
    std::vector<Spec> outputs = {{k_cache.shape(), cache}};
    if (caches_ == 2) outputs.push_back({v_cache.shape(), cache});
    outputs.push_back({q.shape(), q.type()});
    return outputs;
  }

  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input >= caches_ && input <= 2 * caches_)
      return tensor.shape()[2] <= 1 || tensor.layout().stride(2) == 1;
    return Op::takes_layout(input, tensor, device);
  }

  // Merges with the joint launch of the q, k and v products, whose lanes hold both elements of a
  // pair. Block-quantised caches need 32 elements at once and are excluded.
  std::optional<Joint> with_joint(const Device& device, std::span<const Tensor> inputs,
                                  std::span<const size_t> made, const OpUse& maker) const override {
    const auto* products = dynamic_cast<const SideBySideOp*>(&maker.op);
    if (caches_ != 2 || !products || !products->has_one_x() ||
        !std::ranges::equal(made, std::array<size_t, 3>{2, 3, 4}) || inputs[0].type().is_block() ||
        inputs[0].shape()[-1] % 2 != 0 || inputs[0].elements() == 0 ||
        !(inputs[0].shape() == inputs[1].shape()))
      return std::nullopt;
    for (size_t i = 0; i < 3; ++i)
      if (inputs[made[i]].type() != ElementType(DType::f32) ||
          inputs[made[i]].size(0) != maker.inputs[0].size(0))
        return std::nullopt;
    std::vector<Tensor> all(inputs.begin(), inputs.begin() + 2);
    all.insert(all.end(), inputs.begin() + 5, inputs.end());
    all.insert(all.end(), maker.inputs.begin(), maker.inputs.end());
    auto op = std::make_shared<ProductsToCacheOp>(*products, options_, rotates_);
    if (!op->fits(device.info(), all)) return std::nullopt;
    return Joint{std::move(op), std::move(all)};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &q = call.inputs[caches_], &out = call.outputs[caches_];
    const Shape& shape = q.layout.shape;
    const int64_t rows = shape[0];
    if (rows == 0) return;
    const auto* pairs = call.inputs[2 * caches_ + 1].first<int32_t>();
    const Shape& cache = call.outputs[0].layout.shape;
    const int64_t kv_heads = cache[-2], dim = cache[-1];
    const int64_t cache_rows = cache.elements() / std::max<int64_t>(1, kv_heads * dim);
    for (int64_t i = 0; i < rows; ++i) {
      if (pairs[2 * i + 1] < 0 || pairs[2 * i + 1] >= cache_rows)
        fail(fmt::format("rope_to_cache: row {} is placed at cache row {}; the caches have {} rows",
                         i, pairs[2 * i + 1], cache_rows));
    }
    cpu::Rope rope;
    rope.dims = rotates_ ? static_cast<size_t>(options_.dims) : 0;
    rope.pairing = options_.pairing;
    rope.magnitude = static_cast<float>(options_.magnitude);
    const float* const frequencies =
        rotates_ ? call.inputs[2 * caches_ + 2].first<float>() : nullptr;
    const auto heads = static_cast<size_t>(shape[1]), cached = static_cast<size_t>(kv_heads);
    const auto length = static_cast<size_t>(dim);
    // About 10 microseconds of rows per task.
    const size_t row_work = std::max<size_t>(1, (heads + caches_ * cached) * length);
    const size_t chunk = std::max<size_t>(1, 16384 / row_work);
    call.pool.parallel_for(static_cast<uint64_t>(rows), chunk, [&](uint64_t first, uint64_t last) {
      cpu::RopeAngles angles(rope, frequencies);
      const auto values = static_cast<size_t>(call.outputs[caches_ - 1].layout.shape[-1]);
      std::vector<float> wide(std::max(heads, cached) * std::max(length, values));
      const bool direct = out.type == ElementType(DType::f32);
      for (auto row = static_cast<int64_t>(first); row < static_cast<int64_t>(last); ++row) {
        if (rotates_) angles.set(pairs[2 * row]);
        float* const q_row = direct ? out.first<float>() + row * shape[1] * dim : wide.data();
        load_row(q, row, q_row);
        if (rotates_) angles.turn(q_row, heads, length);
        if (!direct)
          cpu::store(DType::f32, q_row, out.type.plain(),
                     out.first<uint16_t>() + row * shape[1] * dim, heads * length);
        for (size_t which = 0; which < caches_; ++which) {
          load_row(call.inputs[caches_ + 1 + which], row, wide.data());
          if (rotates_ && which == 0) angles.turn(wide.data(), cached, length);
          store_row(wide.data(), cached * (which == 0 ? length : values), call.outputs[which],
                    pairs[2 * row + 1]);
        }
      }
    });
  }

  void launch(DeviceCall& call) const override {
    const DeviceView &q = call.input(caches_), &cache = call.output(0);
    const Shape& shape = q.layout.shape;
    if (shape.elements() == 0) return;
    const Shape& places = cache.layout.shape;
    const int64_t kv_heads = places[-2], dim = places[-1];
    ops::CacheKernel p{q.type.plain(), cache.type, static_cast<uint32_t>(dim),
                       rotates_ ? static_cast<uint32_t>(options_.dims / 2) : 0, options_.pairing};
    p.value_dim = caches_ == 2 ? static_cast<uint32_t>(call.output(1).layout.shape[-1]) : 0;
    const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
    std::vector<DeviceView> buffers;
    for (size_t i = 0; i < caches_; ++i) buffers.push_back(call.output(i));
    std::vector<ParamValue> params = {word(shape[1]), word(kv_heads),
                                      word(places.elements() / (kv_heads * dim)),
                                      static_cast<float>(options_.magnitude)};
    for (size_t i = caches_; i <= 2 * caches_; ++i) {
      DeviceView x = call.input(i);
      for (const int64_t each : {x.layout.stride(0), x.layout.stride(1), x.layout.offset})
        params.push_back(word(each));
      x.layout.offset = 0;  // passed as a parameter
      buffers.push_back(x);
    }
    buffers.push_back(call.input(2 * caches_ + 1));
    if (rotates_) buffers.push_back(call.input(2 * caches_ + 2));
    buffers.push_back(call.output(caches_));
    const int64_t heads = shape[1] + static_cast<int64_t>(caches_) * kv_heads;
    uint32_t each = 1;
    if (!cache.type.is_block())
      each = ops::heads_of_group(heads, shape[0], call.info().compute_units);
    p.one_head = each == 1;
    if (!p.one_head) params.push_back(word(each));
    call.launch(
        p.key(), [&] { return ops::cache_kernel(p); },
        {static_cast<uint32_t>((heads + each - 1) / each), static_cast<uint32_t>(shape[0]), 1},
        buffers, std::move(params));
  }

 private:
  // Loads all heads of a row as contiguous f32.
  static void load_row(const HostView& x, int64_t row, float* to) {
    const int64_t heads = x.layout.shape[1], dim = x.layout.shape[2];
    const bool together = x.layout.stride(1) == dim || heads == 1;
    const int64_t pieces = together ? 1 : heads;
    const auto length = static_cast<size_t>(together ? heads * dim : dim);
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t at = x.layout.offset + row * x.layout.stride(0) + piece * x.layout.stride(1);
      cpu::load(x.type.plain(), x.data + static_cast<size_t>(at) * x.type.block_bytes(), 1,
                DType::f32, to + static_cast<size_t>(piece) * length, length);
    }
  }

  static void store_row(const float* from, size_t width, const HostView& cache, int32_t row) {
    const size_t row_bytes = width / cache.type.block_elements() * cache.type.block_bytes();
    std::byte* const at = cache.data + static_cast<size_t>(row) * row_bytes;
    if (!cache.type.is_block()) return cpu::store(DType::f32, from, cache.type.plain(), at, width);
    auto* const blocks = reinterpret_cast<BlockQ8_0*>(at);
    for (size_t b = 0; b < width / 32; ++b) store_block(from + 32 * b, blocks[b]);
  }

  RopeOptions options_;
  bool rotates_;
  size_t caches_;  // that are written: 2 with values, else 1
};

}  // namespace

CachedRows rope_to_cache(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& places,
                         const Tensor& frequencies, const RopeOptions& options,
                         const Tensor& k_cache, const Tensor& v_cache) {
  const auto has_values = static_cast<bool>(v);
  for (const Tensor* each : {&q, &k, &places, &k_cache})
    if (!*each || has_values != static_cast<bool>(v_cache))
      fail("rope_to_cache: an operand is an empty Tensor");
  RopeOptions whole = options;
  if (whole.dims == 0 && q.rank() > 0) whole.dims = q.shape()[-1];
  const auto rotates = static_cast<bool>(frequencies);
  std::vector<Tensor> inputs;
  for (const Tensor* each : {&k_cache, &v_cache, &q, &k, &v, &places, &frequencies})
    if (*each) inputs.push_back(*each);
  const std::vector<Tensor> outputs =
      use_op_all(std::make_shared<RopeToCacheOp>(whole, rotates, has_values), std::move(inputs));
  return {outputs.back(), outputs[0], has_values ? outputs[1] : Tensor()};
}

}  // namespace prism
