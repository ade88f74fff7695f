// Lowers grids beyond a device's limits, group reductions, and subgroup operations the device
// lacks.
#include <algorithm>

#include "lower/group_reduce.h"
#include "lower/passes.h"
#include "lower/rewriter.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

// The true group counts arrive as three extra params; excess groups return at once.
class FoldGrid : public Rewriter {
  void prepare(ir::Kernel& kernel) override { kernel.folded = true; }

  void emit_body(const ir::Block& body) override {
    for (const char* name : {"groups_x", "groups_y", "groups_z"})
      counts_.push_back(param(name, u32));
    const Value linear = group_id(1) * group_count(0) + group_id(0);
    const Value x = counts_[0], y = counts_[1];
    ids_ = {linear % x, (linear / x) % y, linear / (x * y)};
    if_(linear < x * y * counts_[2], [&] { emit(body); });
  }

  bool rewrite(const Inst& inst) override {
    if (inst.op == Op::group_id)
      bind(inst.result, ids_[inst.object]);
    else if (inst.op == Op::group_count)
      bind(inst.result, counts_[inst.object]);
    else
      return false;
    return true;
  }

  std::vector<Value> counts_, ids_;
};

class ChooseRaw : public Rewriter {
 public:
  explicit ChooseRaw(const std::string& dialect) : dialect_(dialect) {}

 private:
  bool rewrite(const Inst& inst) override {
    if (inst.op != Op::raw) return false;
    if (inst.text2 == dialect_) {
      Inst made = inst;
      made.blocks.clear();
      for (ir::Value& value : made.args) value = now(value).id();
      Builder::current().append(std::move(made));
    } else {
      emit(inst.blocks[0]);
    }
    return true;
  }
  const std::string& dialect_;
};

class LowerGroupReduce : public Rewriter {
 public:
  explicit LowerGroupReduce(const ir::Capabilities& capabilities) : capabilities_(capabilities) {}

 private:
  bool rewrite(const Inst& inst) override {
    if (inst.op != Op::group_reduce) return false;
    const auto op = static_cast<ReduceOp>(inst.bits);
    const Value value = arg(inst, 0);
    bind(inst.result, from_stored(inst.type.element, has_subgroups(source(), capabilities_)
                                                         ? by_subgroups(op, value)
                                                         : by_tree(op, to_stored(value))));
    return true;
  }

  // Each subgroup reduces its values, then every subgroup reduces the partial results.
  Value by_subgroups(ReduceOp op, Value value) {
    const uint32_t size = subgroup_size_for(source(), capabilities_),
                   count = source().group_size / size;
    const Value partial = subgroup_reduce(op, to_stored(value));
    if (count == 1) return partial;
    const Array parts = scratch(partial.element(), count);
    if_(subgroup_lane() == 0u, [&] { parts[subgroup_id()] = partial; });
    barrier();
    Var total(partial.type(), identity(op, partial.element()), "total");
    for (uint32_t first = 0; first < count; first += size) {
      const Value at = subgroup_lane() + first;
      const Value part = parts.load(min(at, count - 1));
      total = combine(op, total, select(at < count, part, identity(op, partial.element())));
    }
    const Value result = subgroup_reduce(op, total);
    barrier();
    return result;
  }

  Value by_tree(ReduceOp op, Value value) {
    const uint32_t size = source().group_size;
    const Array tile = scratch(value.element(), size);
    const Value lane = local_id();
    tile[lane] = value;
    barrier();
    uint32_t half = 1;
    while (half * 2 < size) half *= 2;
    for (; half >= 1 && size > 1; half /= 2) {
      if_(lane < half && lane + half < size,
          [&] { tile[lane] = combine(op, tile.load(lane), tile.load(lane + half)); });
      barrier();
    }
    const Value result = tile.load(0u);
    barrier();
    return result;
  }

  // All reductions of one type share a scratch array: each ends in a barrier.
  Array scratch(DType type, uint32_t length) {
    for (auto& [known, array] : scratch_)
      if (known == type) return array;
    scratch_.emplace_back(type, shared(type, length, "partial"));
    return scratch_.back().second;
  }

  const ir::Capabilities& capabilities_;
  std::vector<std::pair<DType, Array>> scratch_;
};

// Subgroup operations through shared memory. They are group-uniform, so barriers are allowed.
class LowerSubgroups : public Rewriter {
 public:
  explicit LowerSubgroups(const ir::Capabilities& capabilities) : capabilities_(capabilities) {}

 private:
  void prepare(ir::Kernel& kernel) override {
    native_ = has_subgroups(kernel, capabilities_);
    size_ = subgroup_size_for(kernel, capabilities_);
    bool used = false;
    ir::walk(source().body, [&](const Inst& inst) {
      used |= inst.op >= Op::subgroup_reduce && inst.op <= Op::fragment_convert;
      used |= inst.op == Op::subgroup_id || inst.op == Op::subgroup_lane;
    });
    kernel.subgroup_size = native_ && used ? size_ : 0;
  }

  bool rewrite(const Inst& inst) override {
    if (inst.op == Op::subgroup_size) {
      bind(inst.result, constant(u32, size_));
      return true;
    }
    if (native_) return truth_as_words(inst) || scanned(inst);
    switch (inst.op) {
      case Op::subgroup_id:
        bind(inst.result, local_id() / size_);
        return true;
      case Op::subgroup_lane:
        bind(inst.result, local_id() % size_);
        return true;
      case Op::subgroup_reduce:
        bind(inst.result, gathered(inst, false));
        return true;
      case Op::subgroup_scan:
        bind(inst.result, gathered(inst, true));
        return true;
      case Op::subgroup_shuffle:
        bind(inst.result, shuffled(inst, arg(inst, 1) % size_));
        return true;
      case Op::subgroup_shuffle_xor:
        bind(inst.result, shuffled(inst, (local_id() % size_) ^ static_cast<uint32_t>(inst.bits)));
        return true;
      default:
        return false;
    }
  }

  // Few languages shuffle b1: convert it to 0 or 1.
  bool truth_as_words(const Inst& inst) {
    const bool across = inst.op >= Op::subgroup_reduce && inst.op <= Op::subgroup_shuffle_xor;
    if (!across || inst.type.element != b1) return false;
    Inst made = inst;
    made.result = ir::kNone;
    made.type.element = u32;
    for (ir::Value& value : made.args) value = now(value).id();
    const Value words = select(arg(inst, 0), splat(constant(u32, 1), inst.type.lanes),
                               splat(constant(u32, 0), inst.type.lanes));
    made.args[0] = words.id();
    const Value moved = inst.op == Op::subgroup_scan && !language_scans(capabilities_)
                            ? by_shuffles(inst, words)
                            : Value(Builder::current().append(std::move(made)));
    bind(inst.result, moved != 0u);
    return true;
  }

  bool scanned(const Inst& inst) {
    if (inst.op != Op::subgroup_scan || language_scans(capabilities_)) return false;
    bind(inst.result, by_shuffles(inst, arg(inst, 0)));
    return true;
  }

  // Each round doubles the distance to the lane whose value is added.
  Value by_shuffles(const Inst& scan, Value total) {
    const auto op = static_cast<ReduceOp>(scan.bits);
    const Value lane = subgroup_lane();
    const auto below = [&](uint32_t step) {
      return subgroup_shuffle(total, (lane - step) & (size_ - 1));
    };
    for (uint32_t step = 1; step < size_; step *= 2)
      total = select(lane >= step, combine(op, below(step), total), total);
    if (scan.object == 0) return total;
    return select(lane == 0u, splat(identity(op, total.element()), total.type().lanes), below(1));
  }

  // Every lane reads the others' values one after another.
  Value gathered(const Inst& inst, bool scan) {
    const auto op = static_cast<ReduceOp>(inst.bits);
    const Value mine = to_stored(arg(inst, 0));
    const Array tile = scratch(mine.element());
    const Value lane = local_id() % size_, first = local_id() - lane;
    tile[local_id()] = mine;
    barrier();
    const Value last = scan ? (inst.object == 1 ? lane : lane + 1u)
                            : min(constant(u32, size_), constant(u32, source().group_size) - first);
    Var total(mine.type(), identity(op, mine.element()), "total");
    for_(0u, last, 1u, [&](Value i) { total = combine(op, total, tile.load(first + i)); });
    barrier();
    return from_stored(inst.type.element, total);
  }

  Value shuffled(const Inst& inst, Value lane) {
    const Value mine = arg(inst, 0);
    std::vector<Value> parts;
    for (uint32_t i = 0; i < inst.type.lanes; ++i) {
      const Value part = to_stored(mine[i]);
      const Array tile = scratch(part.element());
      tile[local_id()] = part;
      barrier();
      const Value at =
          min(local_id() - local_id() % size_ + lane, constant(u32, source().group_size - 1));
      parts.push_back(from_stored(inst.type.element, tile.load(at)));
      barrier();
    }
    if (parts.size() == 1) return parts[0];
    return parts.size() == 2 ? vec(parts[0], parts[1])
                             : vec(parts[0], parts[1], parts[2], parts[3]);
  }

  Array scratch(DType type) {
    for (auto& [known, array] : scratch_)
      if (known == type) return array;
    scratch_.emplace_back(type, shared(type, source().group_size, "lanes"));
    return scratch_.back().second;
  }

  const ir::Capabilities& capabilities_;
  bool native_ = false;
  uint32_t size_ = 0;
  std::vector<std::pair<DType, Array>> scratch_;
};

}  // namespace

bool has_subgroups(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  const uint32_t required = kernel.required_subgroup_size;
  if (required && capabilities.subgroup_size > 0 && required != capabilities.subgroup_size) {
    const auto& sizes = capabilities.subgroup_sizes;
    return std::find(sizes.begin(), sizes.end(), required) != sizes.end();
  }
  return capabilities.subgroup_size > 0 && kernel.group_size % capabilities.subgroup_size == 0;
}

uint32_t subgroup_size_for(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  if (kernel.required_subgroup_size) return kernel.required_subgroup_size;
  if (has_subgroups(kernel, capabilities)) return capabilities.subgroup_size;
  uint32_t size = kLogicalSubgroup;
  while (size > kernel.group_size) size /= 2;
  return size;
}

ir::Kernel fold_grid(const ir::Kernel& kernel) { return FoldGrid().run(kernel); }
ir::Kernel choose_raw(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  return ChooseRaw(capabilities.dialect).run(kernel);
}
ir::Kernel lower_group_reduce(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  return LowerGroupReduce(capabilities).run(kernel);
}
ir::Kernel lower_subgroups(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  return LowerSubgroups(capabilities).run(kernel);
}

}  // namespace prism::lower_detail
