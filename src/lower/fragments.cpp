// Emulates matrix fragments: operands in shared memory, accumulators distributed over the lanes.
//
// Lane l of a subgroup of S owns elements l, l+S, ... of an accumulator, in row-major order. An
// operand is a shared-memory tile private to its subgroup. Fragment operations are group-uniform,
// so barriers can order the accesses.
#include <algorithm>

#include <fmt/format.h>

#include "lower/group_reduce.h"
#include "lower/passes.h"
#include "lower/rewriter.h"
#include "prism/error.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

bool is_fragment_op(Op op) { return op >= Op::fragment_fill && op <= Op::fragment_convert; }

// Operations that depend on the lane-to-element mapping.
bool needs_layout(Op op) {
  return op == Op::fragment_map || op == Op::fragment_row_reduce || op == Op::fragment_convert;
}

bool device_has(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  if (!has_subgroups(kernel, capabilities)) return false;
  // A known layout applies to the device's default subgroup size only.
  if (capabilities.fragment_layout &&
      subgroup_size_for(kernel, capabilities) != capabilities.subgroup_size)
    return false;
  bool all = true;
  for (const ir::Fragment& f : kernel.fragments) {
    const bool accumulates = f.role == ir::FragmentRole::accumulator;
    all &= std::any_of(capabilities.fragments.begin(), capabilities.fragments.end(),
                       [&](const ir::FragmentShape& s) {
                         return s.m == f.m && s.n == f.n && s.k == f.k &&
                                (accumulates ? s.accumulator : s.operand) == f.element;
                       });
  }
  if (!capabilities.fragment_layout)  // made operands are staged
    ir::walk(kernel.body, [&](const Inst& inst) { all &= !needs_layout(inst.op); });
  return all;
}

// What both lowerings share: operands made in pairs of elements, blocks that yield, scratch memory.
class MakesOperands : public Rewriter {
 protected:
  // Calls store(place in the operand, element as f32) for the pairs of this lane.
  void make(const Inst& inst, uint32_t lanes, Value lane,
            const std::function<void(Value, Value)>& store) {
    const ir::Fragment& f = source().fragments[inst.object];
    const uint32_t pairs = f.rows() * f.columns() / 2;
    const auto one = [&](Value pair) {
      bind(inst.blocks[0].params[0], pair / (f.columns() / 2));
      bind(inst.blocks[0].params[1], pair % (f.columns() / 2) * 2u);
      const Value word = emit_yielding(inst.blocks[0]);
      const Value both[2] = {word, word >> 16u};
      for (uint32_t half = 0; half < 2; ++half)
        store(pair * 2u + half, f.element == f16 ? unpack_f16(both[half] & 0xFFFFu)[0]
                                                 : bitcast(f32, both[half] << 16u));
    };
    for_((pairs + lanes - 1) / lanes, [&](Value turn) {
      const Value pair = lane + turn * lanes;
      if (pairs % lanes == 0)
        one(pair);
      else
        if_(pair < pairs, [&] { one(pair); });
    });
  }

  // Uses of one type share a scratch array if it is large enough; barriers separate them.
  Array scratch(DType type, uint64_t length) {
    for (const Array& array : scratch_) {
      const ir::Memory& memory = target().memories[array.memory()];
      if (memory.element == type && memory.length >= length) return array;
    }
    scratch_.push_back(shared(type, length, "rows"));
    return scratch_.back();
  }

  // Emits a block that ends in yield; returns the value.
  Value emit_yielding(const ir::Block& block) {
    ir::Block inner = block;
    const ir::Value yielded = inner.body.back().args[0];
    inner.body.pop_back();
    emit(inner);
    return now(yielded);
  }

 private:
  std::vector<Array> scratch_;
};

// Makes operands in shared memory and loads them from there, for devices that do not say which lane
// holds which element.
class StageMadeOperands : public MakesOperands {
 public:
  explicit StageMadeOperands(const ir::Capabilities& capabilities) : capabilities_(capabilities) {}

 private:
  bool rewrite(const Inst& inst) override {
    if (inst.op != Op::fragment_make) return false;
    const ir::Fragment& f = source().fragments[inst.object];
    const uint32_t size = subgroup_size_for(source(), capabilities_);
    const uint32_t elements = f.rows() * f.columns();
    const Array tile = scratch(f.element, uint64_t(elements) * (source().group_size / size));
    const Value start = local_id() / size * elements;
    barrier();  // wait for lanes still reading the old contents
    make(inst, size, local_id() % size,
         [&](Value at, Value value) { tile.store(start + at, value); });
    barrier();
    Fragment(inst.object).load(tile, start, f.columns());
    return true;
  }

  const ir::Capabilities& capabilities_;
};

class LowerFragments : public MakesOperands {
 public:
  explicit LowerFragments(const ir::Capabilities& capabilities) : capabilities_(capabilities) {}

 private:
  void prepare(ir::Kernel& kernel) override { kernel.fragments.clear(); }

  void emit_body(const ir::Block& body) override {
    size_ = subgroup_size_for(source(), capabilities_);
    if (source().group_size % size_ != 0)
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("kernel {}: fragments need groups of whole subgroups; {} lanes are "
                              "not a multiple of {}",
                              source().name, source().group_size, size_));
    for (const ir::Fragment& f : source().fragments) {
      const uint32_t elements = f.rows() * f.columns();
      if (f.role == ir::FragmentRole::accumulator)
        arrays_.push_back(local(f.element, (elements + size_ - 1) / size_, f.name));
      else
        arrays_.push_back(
            shared(f.element, uint64_t(elements) * (source().group_size / size_), f.name));
    }
    emit(body);
  }

  const ir::Fragment& fragment(uint32_t index) const { return source().fragments[index]; }
  Value lane() { return local_id() % size_; }
  Value tile_start(const ir::Fragment& f) { return local_id() / size_ * (f.rows() * f.columns()); }

  // Calls body(slot, element) for each element of the fragment that this lane owns.
  void for_owned(const ir::Fragment& f, const std::function<void(Value, Value)>& body) {
    const uint32_t elements = f.rows() * f.columns();
    const Value first = lane();
    for_((elements + size_ - 1) / size_, [&](Value slot) {
      const Value element = first + slot * size_;
      if (elements % size_ == 0)
        body(slot, element);
      else
        if_(element < elements, [&] { body(slot, element); });
    });
  }

  bool rewrite(const Inst& inst) override {
    if (!is_fragment_op(inst.op)) return false;
    const ir::Fragment& f = fragment(inst.object);
    const Array mine = arrays_[inst.object];
    switch (inst.op) {
      case Op::fragment_fill:
        write(f, mine, [&](Value) { return arg(inst, 0); });
        break;
      case Op::fragment_load: {
        const Array memory(inst.object2);
        write(f, mine, [&](Value element) { return memory.load(place(inst, f, element)); });
        break;
      }
      case Op::fragment_store: {
        const Array memory(inst.object2);
        for_owned(f, [&](Value slot, Value element) {
          memory.store(place(inst, f, element), mine.load(slot));
        });
        break;
      }
      case Op::fragment_multiply:
        multiply(inst, f, mine);
        break;
      case Op::fragment_map:
        map_elements(inst, f, mine);
        break;
      case Op::fragment_row_reduce:
        row_reduce(inst, f, mine);
        break;
      case Op::fragment_make: {
        const Value start = tile_start(f);
        barrier();  // wait for lanes still reading the old contents
        make(inst, size_, lane(), [&](Value at, Value value) { mine.store(start + at, value); });
        barrier();
        break;
      }
      case Op::fragment_convert:
        convert(inst, f, mine);
        break;
      default:
        return false;
    }
    return true;
  }

  Value place(const Inst& inst, const ir::Fragment& f, Value element) {
    const Value row = element / f.columns(), column = element % f.columns();
    const Value index = arg(inst, 0), stride = arg(inst, 1);
    return inst.bits ? index + column * stride + row : index + row * stride + column;
  }

  void write(const ir::Fragment& f, const Array& mine, const std::function<Value(Value)>& content) {
    if (f.role == ir::FragmentRole::accumulator) {
      for_owned(f, [&](Value slot, Value element) { mine.store(slot, content(element)); });
      return;
    }
    barrier();  // wait for lanes still reading the old contents
    const Value start = tile_start(f);
    for_owned(f, [&](Value, Value element) { mine.store(start + element, content(element)); });
    barrier();
  }

  void multiply(const Inst& inst, const ir::Fragment& f, const Array& mine) {
    const ir::Fragment &fa = fragment(inst.objects[0]), &fb = fragment(inst.objects[1]);
    const Array a = arrays_[inst.objects[0]], b = arrays_[inst.objects[1]];
    const Value a_start = tile_start(fa), b_start = tile_start(fb);
    for_owned(f, [&](Value slot, Value element) {
      const Value row = element / f.columns(), column = element % f.columns();
      Var sum(f.element, mine.load(slot), "sum");
      for_(fa.columns(), [&](Value k) {
        const Value x = a.load(a_start + row * fa.columns() + k);
        const Value y = b.load(b_start + k * fb.columns() + column);
        if (f.element == f32)
          sum = fma(x, y, sum);
        else
          sum += x * y;
      });
      mine.store(slot, sum);
    });
  }

  void map_elements(const Inst& inst, const ir::Fragment& f, const Array& mine) {
    const ir::Block& block = inst.blocks[0];
    for_owned(f, [&](Value slot, Value element) {
      for (size_t i = 0; i < inst.objects.size(); ++i)
        bind(block.params[i], arrays_[inst.objects[i]].load(slot));
      bind(block.params[inst.objects.size()], element / f.columns());
      bind(block.params[inst.objects.size() + 1], element % f.columns());
      mine.store(slot, emit_yielding(block));
    });
  }

  void row_reduce(const Inst& inst, const ir::Fragment& f, const Array& mine) {
    const auto op = static_cast<ReduceOp>(inst.bits);
    const Array from = arrays_[inst.objects[0]];
    const uint32_t elements = f.rows() * f.columns();
    const Array rows = scratch(f.element, uint64_t(elements) * (source().group_size / size_));
    const Value start = tile_start(f);
    for_owned(f, [&](Value slot, Value element) { rows.store(start + element, from.load(slot)); });
    barrier();
    for_owned(f, [&](Value slot, Value element) {
      const Value row = start + element / f.columns() * f.columns();
      Var total(f.element, rows.load(row), "total");
      for_(1u, f.columns(), 1u, [&](Value c) { total = combine(op, total, rows.load(row + c)); });
      mine.store(slot, total);
    });
    barrier();
  }

  void convert(const Inst& inst, const ir::Fragment& f, const Array& mine) {
    const Array from = arrays_[inst.objects[0]];
    barrier();
    const Value start = tile_start(f);
    for_owned(fragment(inst.objects[0]),
              [&](Value slot, Value element) { mine.store(start + element, from.load(slot)); });
    barrier();
  }

  const ir::Capabilities& capabilities_;
  uint32_t size_ = 0;
  std::vector<Array> arrays_;
};

}  // namespace

ir::Kernel lower_fragments(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  if (kernel.fragments.empty()) return kernel;
  if (!device_has(kernel, capabilities)) return LowerFragments(capabilities).run(kernel);
  return capabilities.fragment_layout ? kernel : StageMadeOperands(capabilities).run(kernel);
}

}  // namespace prism::lower_detail
