// Random statements: control flow, memories, barriers, atomics and cross-lane operations.
#include "support/kernels/random_kernel.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "prism/kernel.h"
#include "support/kernels/random_values.h"

namespace prism::test {
namespace {

using namespace dsl;

constexpr uint32_t kOwnSlots = 8;       // elements of each output that one lane may write
constexpr uint32_t kInputElements = 4;  // of each input, per lane
constexpr DType kNarrow[] = {DType::i8, DType::u8, DType::i16, DType::u16, DType::f16, DType::bf16};

// Names with a meaning in one of the printed languages.
const char* const kNames[] = {"x",      "half", "kernel", "in",     "out",  "global",
                              "float4", "main", "f",      "thread", "uint", "device",
                              "tile",   "_a",   "self",   "loop"};

bool power_of_two(uint32_t n) { return (n & (n - 1)) == 0; }

class Generator {
 public:
  Generator(uint64_t seed, uint32_t index)
      : random_(seed * 0x9e3779b97f4a7c15ull + index * 0xd1b54a32d192ed03ull + 1),
        wide_(random_.chance(15)),
        values_(random_, wide_, random_.chance(15)) {
    program_.seed = seed;
    program_.index = index;
  }

  RandomProgram make() {
    lanes_ = random_.one_of({8u, 16u, 32u, 32u, 64u, 64u, 128u, 1u, 24u, 40u, 96u});
    program_.launch.groups = {1 + random_.below(3), 1 + random_.below(2), 1};
    total_ = lanes_ * program_.launch.groups[0] * program_.launch.groups[1];
    program_.kernel = kernel(fmt::format("random_{}", program_.index), lanes_, [&] { body(); });
    return std::move(program_);
  }

 private:
  struct Flow {
    int depth = 0;
    bool uniform = true;  // in group-uniform control flow
    bool in_loop = false;
    bool loop_uniform = true;  // lanes leave the innermost loop together
  };

  struct Input {
    In array;
    uint32_t elements;
  };
  struct Output {
    Array array;
    bool readable;
    uint32_t memory_bytes;
  };

  std::string name() {
    return fmt::format("{}{}", kNames[random_.below(std::size(kNames))],
                       random_.chance(50) ? "" : "_1");
  }

  void body() {
    declare_inputs();
    declare_outputs();
    const Value group = group_id(1) * group_count(0) + group_id(0);
    own_ = (group * lanes_ + local_id()).id();
    values_.keep(Value(own_));
    values_.keep(local_id());
    values_.keep_uniform(group);
    values_.keep_uniform(group_count(0));
    for (int i = 0; i < 3; ++i) load_input();
    declare_private();
    statements({}, 6 + random_.below(9));
    finish();
  }

  // --- memories and their contents

  std::vector<std::byte> content(DType type, uint32_t elements) {
    std::vector<std::byte> bytes;
    for (uint32_t i = 0; i < elements; ++i) {
      uint64_t bits =
          random_.chance(40)
              ? random_.one_of({0u, 1u, 0xffu, 0x80u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 2u})
              : random_.word();
      const float number = static_cast<float>(static_cast<int32_t>(random_.below(4001)) - 2000) /
                           (random_.chance(50) ? 1.0f : 64.0f);
      if (type == f32) bits = std::bit_cast<uint32_t>(number);
      if (type == f16) bits = f16_from_f32(number);
      if (type == bf16) bits = bf16_from_f32(number);
      for (size_t b = 0; b < dtype_bytes(type); ++b)
        bytes.push_back(static_cast<std::byte>(bits >> (8 * b)));
    }
    return bytes;
  }

  void declare_inputs() {
    const uint32_t elements = total_ * kInputElements;
    for (DType type : {u32, f32, kNarrow[random_.below(6)]}) {
      inputs_.push_back({random_.chance(80) ? in(name(), type) : weights(name(), type), elements});
      program_.launch.buffers.push_back(content(type, elements));
    }
    for (DType type : {u32, i32, f32}) {
      const Value value = param(name(), type);
      uint32_t bits = random_.chance(50) ? random_.below(20) : random_.word();
      if (type == f32)
        bits = std::bit_cast<uint32_t>(static_cast<float>(random_.below(100)) - 50.5f);
      program_.launch.params.push_back(bits);
      values_.keep(value);
      if (type == u32) values_.keep_uniform(value);
    }
  }

  void declare_outputs() {
    for (DType type : {u32, f32, kNarrow[random_.below(6)]}) {
      const bool readable = random_.chance(50);
      const uint32_t elements = total_ * kOwnSlots;
      outputs_.push_back({readable ? inout(name(), type) : out(name(), type), readable,
                          static_cast<uint32_t>(dtype_bytes(type))});
      program_.launch.buffers.push_back(content(type, elements));
    }
    sums_.push_back(inout(name(), random_.one_of({u32, i32})));
    program_.launch.buffers.push_back(content(u32, 24));
    if (random_.chance(40)) {
      float_sums_.push_back(inout(name(), f32));
      program_.launch.buffers.push_back(bytes_of(std::vector<float>(8, 1.0f)));
    }
  }

  void declare_private() {
    if (!random_.chance(50)) return;
    const DType type =
        random_.chance(60) ? random_.one_of({u32, i32, f32}) : kNarrow[random_.below(6)];
    private_length_ = random_.one_of({4u, 5u, 8u});
    private_.push_back(local(type, private_length_, name()));
    if (random_.chance(50)) {
      for_(private_length_, [&](Value i) { private_[0][i] = cast(widened(type), i); });
    } else {
      for (uint32_t i = 0; i < private_length_; ++i) private_[0][i] = values_.any(widened(type));
    }
  }

  // --- statements

  void statements(Flow flow, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) statement(flow);
  }

  // A nested block of statements: its values go out of scope afterwards.
  void nested(
      Flow flow, const std::function<void()>& first = [] {}) {
    const auto mark = values_.mark();
    const size_t variables = variables_.size();
    first();
    statements(flow, 1 + random_.below(3));
    values_.release(mark);
    variables_.resize(variables);
  }

  void statement(const Flow& flow) {
    for (uint32_t i = random_.below(4); i > 0; --i) values_.grow();
    const uint32_t choice = random_.below(100);
    if (choice < 14)
      store_own();
    else if (choice < 24)
      load_input();
    else if (choice < 32)
      use_variable();
    else if (choice < 38)
      use_private();
    else if (choice < 44)
      atomics();
    else if (choice < 54)
      branch(flow);
    else if (choice < 62)
      loop(flow);
    else if (choice < 66)
      repeat(flow);
    else if (choice < 70)
      leave(flow);
    else if (choice < 72)
      comment(random_.one_of(
          {"plain", "*/ /* odd */", "ends in \\", "{0} %d \"quoted\"", "two\nlines"}));
    else if (flow.uniform)
      across(flow);
    else
      values_.grow();
  }

  Value place(uint32_t count) { return values_.any(u32) % count; }

  void load_input() {
    const Input& input = inputs_[random_.below(static_cast<uint32_t>(inputs_.size()))];
    const DType type = input.array.element();
    const uint32_t lanes = random_.one_of({1u, 1u, 2u, 4u});
    if (random_.chance(25)) {
      const uint32_t words = static_cast<uint32_t>(input.elements * dtype_bytes(type) / 4);
      const uint32_t alignment = random_.one_of({1u, 2u, 4u});
      if (words < lanes + 4) return;
      const Value at = place((words - lanes) / alignment) * alignment;
      if (random_.chance(70)) return values_.keep(input.array.load_words(at, lanes, alignment));
      const Value wanted = values_.any(b1);
      return values_.keep(input.array.load_words_if(
          wanted, select(wanted, at, constant(u32, 0xffffff00u)), lanes, alignment));
    }
    if (random_.chance(10)) {
      const Value same = input.array.load(values_.uniform() % input.elements);
      values_.keep(same);
      if (same.element() == u32) values_.keep_uniform(same);
      return;
    }
    const Value at = place(input.elements / lanes) * lanes;
    if (random_.chance(75)) return values_.keep(input.array.load(at, lanes));
    const Value wanted = values_.any(b1);
    values_.keep(
        input.array.load_if(wanted, select(wanted, at, constant(u32, 0xffffff00u)), lanes));
  }

  void store_own() {
    const Output& output = outputs_[random_.below(static_cast<uint32_t>(outputs_.size()))];
    const DType type = widened(output.array.element());
    const Value first = Value(own_) * kOwnSlots;
    if (random_.chance(15)) {
      const uint32_t own_words = kOwnSlots * output.memory_bytes / 4,
                     lanes = random_.one_of({1u, 2u});
      const uint32_t at = random_.below(own_words / lanes) * lanes;
      // Words of a float buffer could form any float, so the program never reads them as floats.
      if (!output.readable || !is_float(type))
        return output.array.store_words(Value(own_) * own_words + at,
                                        values_.any({u32, static_cast<uint8_t>(lanes)}),
                                        random_.chance(50) ? lanes : 1);
    }
    if (output.readable && random_.chance(40)) {
      const uint32_t lanes = random_.one_of({1u, 2u, 4u});
      const Value value =
          output.array.load(first + random_.below(kOwnSlots / lanes) * lanes, lanes);
      // A large number stored as f16 becomes infinite.
      return values_.keep(
          is_float(type)
              ? RandomValues::tame(value, values_.any({type, static_cast<uint8_t>(lanes)}))
              : value);
    }
    const uint32_t lanes = random_.one_of({1u, 1u, 2u, 4u});
    const Value at = lanes == 1 && random_.chance(40)
                         ? first + (values_.any(u32) & (kOwnSlots - 1))
                         : first + random_.below(kOwnSlots / lanes) * lanes;
    const Value value = values_.any({type, static_cast<uint8_t>(lanes)});
    if (random_.chance(75)) return output.array.store(at, value);
    const Value wanted = values_.any(b1);
    output.array.store_if(wanted, select(wanted, at, constant(u32, 0xffffff00u)), value);
  }

  void use_variable() {
    if (variables_.size() < 2 || random_.chance(25)) {
      const Value value = values_.any(values_.any_type());
      variables_.push_back(std::make_unique<Var>(value.type(), value, name()));
      return;
    }
    Var& variable = *variables_[random_.below(static_cast<uint32_t>(variables_.size()))];
    if (random_.chance(40)) {
      values_.keep(variable);
    } else {
      const Value value = values_.any(variable.type());
      variable = value;
    }
  }

  void use_private() {
    if (private_.empty()) return values_.grow();
    const DType type = widened(private_[0].element());
    const Value at = place(private_length_);
    if (random_.chance(50)) {
      private_[0][at] = values_.any(type);
    } else {
      const Value value = private_[0].load(at);
      values_.keep(is_float(type) ? RandomValues::tame(value, values_.any(type)) : value);
    }
  }

  // Each element has a single operation: the result does not depend on the order of lanes.
  void atomics() {
    if (!float_sums_.empty() && random_.chance(30)) {
      const Value at = place(8);
      float_sums_[0].atomic_add(at, cast(f32, values_.any(u32) & 7u));
      return;
    }
    const uint32_t which = random_.below(6);
    const Value at = place(4) + which * 4;
    sums_[0].atomic(static_cast<AtomicOp>(which), at, values_.any(sums_[0].element()));
  }

  Value small_uniform() { return values_.uniform() & 3u; }

  void branch(const Flow& flow) {
    if (flow.depth >= 3) return values_.grow();
    Flow inner = flow;
    ++inner.depth;
    const bool together = random_.chance(40);
    inner.uniform = flow.uniform && together;
    const Value condition = together ? small_uniform() < random_.below(4) : values_.any(b1);
    if (random_.chance(50))
      if_(condition, [&] { nested(inner); });
    else
      if_(
          condition, [&] { nested(inner); }, [&] { nested(inner); });
  }

  void loop(const Flow& flow) {
    if (flow.depth >= 3) return values_.grow();
    Flow inner{flow.depth + 1, flow.uniform, true, random_.chance(50)};
    inner.uniform = flow.uniform && inner.loop_uniform;
    const auto bound = [&] { return inner.loop_uniform ? small_uniform() : values_.any(u32) & 3u; };
    const auto run = [&](Value i) {
      nested(inner, [&] {
        values_.keep(i);
        if (inner.loop_uniform && i.element() == u32) values_.keep_uniform(i);
      });
    };
    const uint32_t step = 1 + random_.below(3);
    if (random_.chance(30)) {
      const Value start = bitcast(i32, bound()) - 4;
      for_(start, bitcast(i32, bound()), static_cast<int>(step), run);
    } else if (random_.chance(20)) {
      unrolled_for(1 + random_.below(4), run);
    } else {
      const Value start = bound();
      for_(start, bound() + 2u, step, run);
    }
  }

  void repeat(const Flow& flow) {
    if (flow.depth >= 3) return values_.grow();
    Flow inner{flow.depth + 1, flow.uniform, true, random_.chance(50)};
    inner.uniform = flow.uniform && inner.loop_uniform;
    Var count(u32, 0u, "count");
    const Value limit = inner.loop_uniform ? small_uniform() : values_.any(u32) & 3u;
    while_(
        [&] {
          const auto mark = values_.mark();
          Value more = count < limit;
          if (!inner.loop_uniform) {
            values_.grow();
            more = more && values_.any(b1);
          }
          values_.release(mark);
          return more;
        },
        [&] {
          count += 1u;
          nested(inner);
        });
  }

  void leave(const Flow& flow) {
    if (!flow.in_loop) return values_.grow();
    const Value condition = flow.loop_uniform ? small_uniform() == 1u : values_.any(b1);
    // Under a varying condition, only loops that are already divergent may be left.
    if (flow.loop_uniform && !flow.uniform) return;
    if_(condition, [] { break_(); });
  }

  // --- group-uniform statements

  void across(const Flow& flow) {
    switch (random_.below(6)) {
      case 0:
        return through_shared();
      case 1:
        return shared_atomics();
      case 2:
        return copy_ahead();
      case 3:
        return reduce_group();
      default:
        return across_subgroup(flow);
    }
  }

  Array shared_array(DType type, uint32_t length) {
    for (const auto& [array, known] : tiles_)
      if (array.element() == type && known >= length) return array;
    tiles_.emplace_back(shared(type, length, name()), length);
    return tiles_.back().first;
  }

  void through_shared() {
    const DType type =
        random_.chance(60) ? random_.one_of({u32, i32, f32}) : kNarrow[random_.below(6)];
    const uint32_t lanes = random_.one_of({1u, 1u, 2u, 4u});
    const Array tile = shared_array(type, lanes_ * lanes);
    Value lane = local_id();
    if (random_.chance(40)) lane = (lanes_ - 1) - lane;
    tile.store(lane * lanes, values_.any({widened(type), static_cast<uint8_t>(lanes)}));
    barrier();
    for (uint32_t i = 1 + random_.below(2); i > 0; --i) {
      const uint32_t wanted = random_.chance(50) ? lanes : 1;
      const Value value = tile.load(place(lanes_ * lanes / wanted) * wanted, wanted);
      values_.keep(is_float(type) ? RandomValues::tame(value, values_.any(value.type())) : value);
    }
    barrier();
  }

  void shared_atomics() {
    const bool floats = random_.chance(25);
    const DType type = floats ? f32 : random_.one_of({u32, i32});
    const uint32_t length = std::min(8u, lanes_);
    const Array tile = shared_array(type, length);
    if_(local_id() < length, [&] { tile[local_id()] = cast(type, local_id()); });
    barrier();
    const auto op = floats ? AtomicOp::add : static_cast<AtomicOp>(random_.below(6));
    const Value at = place(length);
    const Value value = floats ? cast(f32, values_.any(u32) & 15u) : values_.any(type);
    if (random_.chance(50))
      tile.atomic(op, at, value);
    else
      if_(values_.any(b1), [&] { tile.atomic(op, at, value); });
    barrier();
    values_.keep(tile.load(place(length)));
    barrier();
  }

  void copy_ahead() {
    const Input& input = inputs_[random_.below(static_cast<uint32_t>(inputs_.size()))];
    const DType type = input.array.element();
    const uint32_t elements =
        static_cast<uint32_t>(random_.one_of({4u, 8u, 16u}) / dtype_bytes(type));
    if (elements == 0 || elements > kInputElements * total_) return;
    const Array tile = shared_array(type, lanes_ * elements);
    const Value from = place(input.elements / elements) * elements;
    if (random_.chance(60))
      async_copy(tile, local_id() * elements, input.array, from, elements);
    else
      async_copy_if(values_.any(b1), tile, local_id() * elements, input.array, from, elements);
    async_commit();
    async_wait(0);
    barrier();
    const Value value = tile.load(place(lanes_ * elements));
    values_.keep(value);
    barrier();
  }

  // A value and a reduction whose result does not depend on the order.
  std::pair<ReduceOp, Value> reducible() {
    switch (random_.below(5)) {
      case 0:
        return {ReduceOp::add, cast(f32, values_.any(u32) & 0xffu)};
      case 1: {  // the minimum of -0 and 0 depends on the order
        const Value value = RandomValues::plain_zero(values_.any(f32));
        return {random_.one_of({ReduceOp::min, ReduceOp::max}), value};
      }
      case 2:
        return {random_.one_of({ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}),
                values_.any(b1)};
      default:
        return {static_cast<ReduceOp>(random_.below(6)),
                values_.any(wide_ && random_.chance(30) ? random_.one_of({i64, u64})
                                                        : random_.one_of({u32, i32}))};
    }
  }

  void reduce_group() {
    const auto [op, value] = reducible();
    const Value result = group_reduce(op, value);
    values_.keep(result);
    if (result.element() == u32) values_.keep_uniform(result);
  }

  void across_subgroup(const Flow&) {
    program_.by_subgroups = true;
    const uint32_t kind = random_.below(6);
    if (kind == 0) {
      values_.keep(subgroup_size());
      values_.keep(subgroup_id());
      return values_.keep(subgroup_lane());
    }
    if (kind == 1 || (kind >= 3 && (!power_of_two(lanes_) || lanes_ < 8))) {
      const auto [op, value] = reducible();
      return values_.keep(subgroup_reduce(op, value));
    }
    if (kind == 2) {
      auto [op, value] = reducible();
      const bool exclusive = random_.chance(50);
      const Value result = subgroup_scan(op, value, exclusive);
      // The first lane of an exclusive minimum of floats is infinite.
      return values_.keep(is_float(result.element()) ? RandomValues::tame(result, value) : result);
    }
    const Value value = values_.any(values_.any_type());
    if (kind == 3) return values_.keep(subgroup_shuffle_xor(value, random_.one_of({1u, 2u, 4u})));
    values_.keep(subgroup_shuffle(value, values_.any(u32) % min(subgroup_size(), lanes_)));
  }

  // Stores the last values, so that every computed value is used.
  void finish() {
    Var sum(u32, 1u, "sum");
    std::vector<ir::Type> types = {{u32, 1}, {i32, 1}, {f32, 1}, {b1, 1},  {u32, 2}, {i32, 4},
                                   {f32, 4}, {f16, 1}, {f16, 2}, {i64, 1}, {u64, 2}, {f64, 1}};
    for (const ir::Type& type : types) {
      const auto& known = values_.all(type);
      for (size_t i = known.size(); i-- > 0 && i + 3 > known.size();)
        sum = sum * 31u + values_.word_of(known[i]);
    }
    for (const auto& variable : variables_) sum = sum * 31u + values_.word_of(*variable);
    const Value first = Value(own_) * kOwnSlots;
    outputs_[0].array.store(first, sum);
    outputs_[1].array.store(first, values_.any(f32));
    outputs_[2].array.store(first, values_.any(widened(outputs_[2].array.element())));
  }

  RandomProgram program_;
  Random random_;
  bool wide_;
  RandomValues values_;
  uint32_t lanes_ = 0, total_ = 0, private_length_ = 0;
  ir::Value own_ = 0;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Array> sums_, float_sums_, private_;
  std::vector<std::pair<Array, uint32_t>> tiles_;
  std::vector<std::unique_ptr<Var>> variables_;
};

}  // namespace

RandomProgram random_program(uint64_t seed, uint32_t index) {
  return Generator(seed, index).make();
}

}  // namespace prism::test
