// uniform, normal and dropout: each lane makes four elements from one Philox block.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numbers>
#include <tuple>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "dsl/philox.h"
#include "ops/cpu_types.h"
#include "ops/create/random_keys.h"
#include "ops/float_param.h"
#include "prism/error.h"
#include "prism/ops/create.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;
using Four = std::array<Value, 4>;

constexpr uint64_t kBlocksAPiece = 256;  // per work item of a thread

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Uses 24 bits: exact in f32 and never 1.
Value unit_interval(Value word, DType type) {
  return cast(type, word >> 8u) * constant(type, 0x1p-24);
}
float unit_interval(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// Two normal numbers from two words (Box-Muller). The angle is reduced to an eighth of a turn
// before the multiplication by pi, so only sine and cosine contribute to its error.
std::pair<Value, Value> normal_pair(Value a, Value b, DType type) {
  const auto number = [&](double value) { return constant(type, value); };
  const Value u = cast(type, (a >> 8u) + 1u) * number(0x1p-24);
  const Value radius = sqrt(number(-2) * log(u));
  const Value quarters = unit_interval(b, type) * number(4);
  const Value nearest = floor(quarters + number(0.5));
  const Value angle = (quarters - nearest) * number(1.57079632679489662);
  const Value c = cos(angle), s = sin(angle);
  const Value quarter = cast(u32, nearest) & 3u;
  const Value swapped = (quarter & 1u) == 1u;
  const Value cosine = select(swapped, s, c), sine = select(swapped, c, s);
  const Value flip_cosine = quarter == 1u || quarter == 2u, flip_sine = quarter >= 2u;
  return {radius * select(flip_cosine, -cosine, cosine), radius * select(flip_sine, -sine, sine)};
}

std::pair<double, double> normal_pair(uint32_t a, uint32_t b) {
  const double u = static_cast<double>((a >> 8) + 1) * 0x1p-24;
  const double radius = std::sqrt(-2 * std::log(u));
  const double angle = 2 * std::numbers::pi * static_cast<double>(unit_interval(b));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

struct Key {
  uint32_t low, high;
  explicit Key(uint64_t key)
      : low(static_cast<uint32_t>(key)), high(static_cast<uint32_t>(key >> 32)) {}
};

// The words of `blocks` blocks from `first` on. Batches of 16 let the compiler vectorise the loops.
void draw(uint64_t first, uint64_t blocks, const Key& key, uint32_t* words) {
  constexpr size_t kLanes = 16;
  for (uint64_t done = 0; done < blocks; done += kLanes) {
    uint32_t c0[kLanes], c1[kLanes] = {}, c2[kLanes] = {}, c3[kLanes] = {};
    for (size_t i = 0; i < kLanes; ++i) c0[i] = static_cast<uint32_t>(first + done + i);
    Key round_key = key;
    for (int round = 0; round < dsl::kPhiloxRounds; ++round) {
      for (size_t i = 0; i < kLanes; ++i) {
        const uint64_t p0 = uint64_t{dsl::kPhiloxMultiply0} * c0[i];
        const uint64_t p1 = uint64_t{dsl::kPhiloxMultiply1} * c2[i];
        c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ round_key.low;
        c1[i] = static_cast<uint32_t>(p1);
        c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ round_key.high;
        c3[i] = static_cast<uint32_t>(p0);
      }
      round_key.low += dsl::kPhiloxWeyl0, round_key.high += dsl::kPhiloxWeyl1;
    }
    for (size_t i = 0; i < kLanes && done + i < blocks; ++i) {
      uint32_t* const to = words + (done + i) * 4;
      to[0] = c0[i], to[1] = c1[i], to[2] = c2[i], to[3] = c3[i];
    }
  }
}

// Stores four elements, except those at or beyond count.
void store_four(const Array& y, Value block, Value count, const Four& values, DType type) {
  for (uint32_t lane = 0; lane < 4; ++lane) {
    const Value i = block * 4u + lane;
    y.store_if(i < count, i, to_stored(values[lane], type));
  }
}

ir::Kernel random_kernel(bool is_normal, DType type) {
  return kernel(is_normal ? "normal" : "uniform", 256, [&] {
    auto y = out("y", type);
    const Value count = param("count", u32), low = param("key_low", u32),
                high = param("key_high", u32);
    const DType made = register_type(type);
    const Value offset = ops::float_param("offset", made),
                factor = ops::float_param("factor", made), limit = param("limit", f32);
    const Value block = global_id();
    if_(block * 4u < count, [&] {
      const Value words = dsl::philox_words(block, low, high);
      if (is_normal) {
        const auto [a, b] = normal_pair(words[0], words[1], made);
        const auto [c, d] = normal_pair(words[2], words[3], made);
        const auto scaled = [&](Value z) {
          return made == f64 ? z * factor + offset : fma(z, factor, offset);
        };
        store_four(y, block, count, {scaled(a), scaled(b), scaled(c), scaled(d)}, type);
      } else {
        const auto value = [&](uint32_t lane) {
          const Value unit = unit_interval(words[lane], made);
          return made == f64 ? unit * factor + offset : min(fma(unit, factor, offset), limit);
        };
        store_four(y, block, count, {value(0), value(1), value(2), value(3)}, type);
      }
    });
  });
}

ir::Kernel dropout_kernel(DType type, bool by_data) {
  return kernel("dropout", 256, [&] {
    auto x = in("x", type);
    std::optional<Array> key;
    if (by_data) key = in("key", i32);
    auto y = out("y", type);
    const Value count = param("count", u32), key_low = param("key_low", u32),
                key_high = param("key_high", u32), threshold = param("threshold", u32),
                factor = ops::float_param("factor", register_type(type));
    const Value low = key ? key_low ^ bitcast(u32, key->load(0u)) : key_low;
    const Value high = key ? key_high ^ bitcast(u32, key->load(1u)) : key_high;
    const Value block = global_id();
    if_(block * 4u < count, [&] {
      const Value words = dsl::philox_words(block, low, high);
      for (uint32_t lane = 0; lane < 4; ++lane) {
        const Value i = block * 4u + lane;
        if_(i < count, [&] {
          const Value value = load_element(x, i, type) * factor;
          const Value zero = constant(value.element(), 0.0);
          y[i] = to_stored(select((words[lane] >> 8u) >= threshold, value, zero), type);
        });
      }
    });
  });
}

std::optional<std::string> lacks_floats(const DeviceInfo& device, DType type) {
  const std::string reason = lacks_type(device.capabilities, type);
  return reason.empty() ? std::nullopt : std::optional(reason);
}

class RandomOp : public Op {
 public:
  RandomOp(bool is_normal, const Shape& shape, uint64_t key, double offset, double factor,
           DType type)
      : is_normal_(is_normal),
        shape_(shape),
        key_(key),
        offset_(offset),
        factor_(factor),
        type_(type) {}
  std::string_view name() const override { return is_normal_ ? "normal" : "uniform"; }
  std::vector<Spec> infer(std::span<const Tensor>) const override { return {{shape_, type_}}; }
  std::vector<Tensor> gradient(const GradientCall&) const override { return {}; }

  void run_cpu(const CpuCall& call) const override {
    const HostView& y = call.outputs[0];
    const auto count = static_cast<uint64_t>(shape_.elements());
    const size_t bytes = y.type.block_bytes();
    call.pool.parallel_for((count + 3) / 4, kBlocksAPiece, [&](uint64_t first, uint64_t last) {
      const uint64_t begin = first * 4, n = std::min(count, last * 4) - begin;
      std::byte* const to = y.data + begin * bytes;
      std::array<uint32_t, kBlocksAPiece * 4> words;
      draw(first, last - first, key_, words.data());
      if (!is_normal_ && type_ != DType::f64) {
        // The same operations as the kernel, for the same bits.
        const auto factor = static_cast<float>(factor_), offset = static_cast<float>(offset_);
        const float highest = limit();
        std::array<float, kBlocksAPiece * 4> values;
        for (size_t i = 0; i < n; ++i)
          values[i] = std::min(std::fma(unit_interval(words[i]), factor, offset), highest);
        cpu::store(DType::f32, values.data(), type_, to, n);
        return;
      }
      std::array<double, kBlocksAPiece * 4> values;
      for (size_t i = 0; i < (n + 1) / 2 * 2; i += 2) {
        if (is_normal_)
          std::tie(values[i], values[i + 1]) = normal_pair(words[i], words[i + 1]);
        else
          values[i] = static_cast<double>(unit_interval(words[i])),
          values[i + 1] = static_cast<double>(unit_interval(words[i + 1]));
      }
      for (size_t i = 0; i < n; ++i) values[i] = values[i] * factor_ + offset_;
      cpu::store(DType::f64, values.data(), type_, to, n);
    });
  }

  void launch(DeviceCall& call) const override {
    const int64_t count = shape_.elements();
    std::vector<ParamValue> params = {static_cast<uint32_t>(count), key_.low, key_.high};
    for (const double each : {offset_, factor_})
      ops::add_float_param(params, each, register_type(type_));
    params.emplace_back(limit());
    call.launch(
        fmt::format("{} {}", name(), dtype_name(type_)),
        [&] { return random_kernel(is_normal_, type_); }, {groups_for((count + 3) / 4, 256), 1, 1},
        {call.output()}, std::move(params));
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    return lacks_floats(device, type_);
  }

 private:
  // The largest float below the high end, which rounding could otherwise reach.
  float limit() const {
    const auto low = static_cast<float>(offset_), high = static_cast<float>(offset_ + factor_);
    return high > low ? std::nextafter(high, low) : high;
  }

  bool is_normal_;
  Shape shape_;
  Key key_;
  double offset_, factor_;
  DType type_;
};

// Linear in x, so the gradient is the same op: the key gives the same mask again. A second input,
// i32 [2], is a key in device memory, combined with the op's own.
class DropoutOp : public Op {
 public:
  DropoutOp(double p, uint64_t key) : p_(p), key_(key) {}
  std::string_view name() const override { return "dropout"; }
  std::string attributes() const override { return fmt::format("p {}", p_); }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor& x = inputs[0];
    if (x.type().is_block() || !is_float(x.type().plain()))
      fail(fmt::format("dropout: elements of type {}; cast them to floats first", x.type().name()));
    if (inputs.size() > 1 &&
        (!(inputs[1].type() == ElementType(DType::i32)) || !(inputs[1].shape() == Shape{2})))
      fail(fmt::format("dropout: a key of type {} and shape {}; it must be i32 [2]",
                       inputs[1].type().name(), inputs[1].shape().text()));
    return {{x.shape(), x.type()}};
  }
  std::vector<Tensor> gradient(const GradientCall& call) const override {
    if (call.inputs.size() == 1) return {dropout(call.output_gradients[0], p_, key_)};
    return {dropout(call.output_gradients[0], p_, call.inputs[1], key_), Tensor()};
  }

  void run_cpu(const CpuCall& call) const override {
    with_float(call.inputs[0].type.plain(), [&](auto sample) { run<decltype(sample)>(call); });
  }

  void launch(DeviceCall& call) const override {
    const DType type = call.output().type.plain();
    const int64_t count = call.output().elements();
    const Key key(key_);
    std::vector<ParamValue> params = {static_cast<uint32_t>(count), key.low, key.high, threshold()};
    ops::add_float_param(params, 1 / (1 - p_), register_type(type));
    const bool by_data = call.input_count() > 1;
    std::vector<DeviceView> buffers = {call.input(0)};
    if (by_data) buffers.push_back(call.input(1));
    buffers.push_back(call.output());
    call.launch(
        fmt::format("dropout {}{}", dtype_name(type), by_data ? " by data" : ""),
        [&] { return dropout_kernel(type, by_data); }, {groups_for((count + 3) / 4, 256), 1, 1},
        buffers, std::move(params));
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    return lacks_floats(device, inputs[0].type().plain());
  }

 private:
  uint32_t threshold() const { return static_cast<uint32_t>(std::lround(p_ * 0x1p24)); }

  template <class T>
  void run(const CpuCall& call) const {
    constexpr DType reg = dtype_of<T>();
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const DType type = x.type.plain();
    const auto bytes = static_cast<uint64_t>(x.type.block_bytes());
    const std::byte* from = x.data + static_cast<uint64_t>(x.layout.offset) * bytes;
    const auto count = static_cast<uint64_t>(y.layout.shape.elements());
    Key key(key_);
    if (call.inputs.size() > 1) {
      const int32_t* const words = call.inputs[1].first<int32_t>();
      key.low ^= static_cast<uint32_t>(words[0]), key.high ^= static_cast<uint32_t>(words[1]);
    }
    const T factor = static_cast<T>(1 / (1 - p_));
    const uint32_t lowest = threshold();
    call.pool.parallel_for((count + 3) / 4, kBlocksAPiece, [&](uint64_t first, uint64_t last) {
      std::array<T, kBlocksAPiece * 4> values;
      const uint64_t begin = first * 4, n = std::min(count, last * 4) - begin;
      cpu::load(type, from + begin * bytes, 1, reg, values.data(), n);
      std::array<uint32_t, kBlocksAPiece * 4> words;
      draw(first, last - first, key, words.data());
      for (size_t i = 0; i < n; ++i)
        values[i] = (words[i] >> 8) >= lowest ? values[i] * factor : T{0};
      cpu::store(reg, values.data(), type, y.data + begin * bytes, n);
    });
  }

  double p_;
  uint64_t key_;
};

Tensor random(bool is_normal, const Shape& shape, uint64_t key, double offset, double factor,
              DType type, const Device& device) {
  if (!is_float(type))
    fail(fmt::format("{}: elements of type {}; random numbers are floats",
                     is_normal ? "normal" : "uniform", ElementType(type).name()));
  return use_op(std::make_shared<RandomOp>(is_normal, shape, key, offset, factor, type), {},
                device);
}

// The state behind the keys of rand() and randn(), advanced by SplitMix64 (Steele et al., 2014).
std::atomic<uint64_t>& key_state() {
  static std::atomic<uint64_t> state{0};
  return state;
}

}  // namespace

uint64_t random_key_state() { return key_state(); }

uint64_t next_random_key() {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  uint64_t z = key_state().fetch_add(kStep) + kStep;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void seed(uint64_t seed) { key_state() = seed; }

Tensor rand(const Shape& shape, DType type, const Device& device) {
  return uniform(shape, next_random_key(), 0, 1, type, device);
}

Tensor randn(const Shape& shape, DType type, const Device& device) {
  return normal(shape, next_random_key(), 0, 1, type, device);
}

Tensor uniform(const Shape& shape, uint64_t key, double low, double high, DType type,
               const Device& device) {
  if (!(low <= high)) fail(fmt::format("uniform: the low end {} is above {}", low, high));
  return random(false, shape, key, low, high - low, type, device);
}

Tensor normal(const Shape& shape, uint64_t key, double mean, double deviation, DType type,
              const Device& device) {
  if (!(deviation >= 0)) fail(fmt::format("normal: a deviation of {}", deviation));
  return random(true, shape, key, mean, deviation, type, device);
}

namespace {

void check_probability(double p) {
  if (!(p >= 0 && p < 1)) fail(fmt::format("dropout: p {}; it must be at least 0 and below 1", p));
}

}  // namespace

Tensor dropout(const Tensor& x, double p, uint64_t key) {
  check_probability(p);
  if (p == 0) return x;
  return use_op(std::make_shared<DropoutOp>(p, key), {x});
}

Tensor dropout(const Tensor& x, double p, const Tensor& key, uint64_t stream) {
  check_probability(p);
  if (p == 0) return x;
  return use_op(std::make_shared<DropoutOp>(p, stream), {x, key});
}

}  // namespace prism
