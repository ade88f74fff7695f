// Small passes: async copies, dot products, float atomics, split buffers.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lower/passes.h"
#include "lower/rewriter.h"
#include "prism/error.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

// Makes an async copy synchronous: its wait becomes a no-op, barriers stay in place.
class LowerAsync : public Rewriter {
 public:
  LowerAsync(const ir::Capabilities& capabilities, const std::vector<uint32_t>& pieces)
      : caps_(capabilities), pieces_(pieces) {}

 private:
  std::optional<DType> element_left(const ir::Memory& memory) const {
    if (memory.element == f32 && memory.atomic && !caps_.float_atomics) return std::nullopt;
    return stored_element(memory, caps_);
  }

  bool stays(const Inst& inst) const {
    const ir::Memory &to = source().memories[inst.object], &from = source().memories[inst.object2];
    const bool split = from.binding < pieces_.size() && pieces_[from.binding] > 1;
    return caps_.async_copy && !split && element_left(to) && element_left(to) == element_left(from);
  }

  bool rewrite(const Inst& inst) override {
    if (inst.op == Op::async_commit || inst.op == Op::async_wait) return !caps_.async_copy;
    if (inst.op != Op::async_copy || stays(inst)) return false;
    const Array to(inst.object), from(inst.object2);
    const uint32_t total = static_cast<uint32_t>(inst.bits), lanes = std::min(total, 4u);
    for (uint32_t first = 0; first < total; first += lanes) {
      const Value source_index = arg(inst, 1) + first;
      const Value value = inst.args.size() > 2 ? from.load_if(arg(inst, 2), source_index, lanes)
                                               : from.load(source_index, lanes);
      to.store(arg(inst, 0) + first, value);
    }
    return true;
  }

  const ir::Capabilities& caps_;
  const std::vector<uint32_t>& pieces_;
};

class LowerDot : public Rewriter {
  bool rewrite(const Inst& inst) override {
    if (inst.op != Op::dot4_i8 && inst.op != Op::dot4_u8) return false;
    const bool is_signed = inst.op == Op::dot4_i8;
    const Value a = arg(inst, 0), b = arg(inst, 1);
    Value sum = arg(inst, 2);
    for (uint32_t i = 0; i < 4; ++i) {
      const Value x =
          is_signed ? extract_bits(bitcast(i32, a), i * 8, 8u) : extract_bits(a, i * 8, 8u);
      const Value y =
          is_signed ? extract_bits(bitcast(i32, b), i * 8, 8u) : extract_bits(b, i * 8, 8u);
      sum = sum + x * y;
    }
    bind(inst.result, sum);
    return true;
  }
};

// Memories with f32 atomics become u32; an addition is a compare-exchange loop.
class LowerFloatAtomics : public Rewriter {
  void prepare(ir::Kernel& kernel) override {
    for (ir::Memory& memory : kernel.memories) {
      const bool chosen = memory.atomic && memory.element == f32;
      chosen_.push_back(chosen);
      if (chosen) memory.element = u32;
    }
  }

  bool rewrite(const Inst& inst) override {
    const bool memory_op = inst.op == Op::load || inst.op == Op::store || inst.op == Op::atomic;
    if (!memory_op || !chosen_[inst.object]) return false;
    const Array memory(inst.object);
    if (inst.op == Op::load) {
      const Value words = inst.args.size() > 1
                              ? memory.load_if(arg(inst, 1), arg(inst, 0), inst.type.lanes)
                              : memory.load(arg(inst, 0), inst.type.lanes);
      bind(inst.result, bitcast(inst.type, words));
    } else if (inst.op == Op::store) {
      const Value words = bitcast(Type{u32, arg(inst, 1).type().lanes}, arg(inst, 1));
      if (inst.args.size() > 2)
        memory.store_if(arg(inst, 2), arg(inst, 0), words);
      else
        memory.store(arg(inst, 0), words);
    } else if (static_cast<AtomicOp>(inst.bits) == AtomicOp::exchange) {
      bind(inst.result, bitcast(f32, memory.atomic(AtomicOp::exchange, arg(inst, 0),
                                                   bitcast(u32, arg(inst, 1)))));
    } else {
      bind(inst.result, add_by_exchange(memory, arg(inst, 0), arg(inst, 1)));
    }
    return true;
  }

  Value add_by_exchange(const Array& memory, Value index, Value value) {
    Var seen(u32, memory.atomic(AtomicOp::bit_or, index, 0u), "seen");
    Var before(u32, 0u, "before");
    Var waiting(u32, 1u, "waiting");
    while_([&] { return waiting != 0u; },
           [&] {
             before = static_cast<Value>(seen);
             const Value sum = bitcast(f32, before) + value;
             seen = memory.compare_exchange(index, before, bitcast(u32, sum));
             waiting = select(seen == before, constant(u32, 0), constant(u32, 1));
           });
    return bitcast(f32, before);
  }

  std::vector<bool> chosen_;
};

// Binds a buffer beyond the binding limit in pieces; an access selects its piece by the index.
class SplitBuffers : public Rewriter {
 public:
  SplitBuffers(uint64_t bytes, const std::vector<uint32_t>& pieces)
      : bytes_(bytes), pieces_(pieces) {}

 private:
  void prepare(ir::Kernel& kernel) override {
    const size_t count = kernel.memories.size();
    for (uint32_t i = 0; i < count; ++i) {
      const ir::Memory memory = kernel.memories[i];
      std::vector<uint32_t> own = {i};
      if (memory.space == ir::Space::buffer && memory.binding < pieces_.size()) {
        for (uint32_t piece = 1; piece < pieces_[memory.binding]; ++piece) {
          ir::Memory next = memory;
          next.piece = piece;
          next.name = fmt::format("{}_{}", memory.name, piece);
          own.push_back(static_cast<uint32_t>(kernel.memories.size()));
          kernel.memories.push_back(next);
        }
      }
      own_.push_back(own);
    }
  }

  bool rewrite(const Inst& inst) override {
    switch (inst.op) {
      case Op::load:
      case Op::store:
      case Op::load_words:
      case Op::store_words:
      case Op::atomic:
        break;
      case Op::fragment_load:
      case Op::fragment_store:
        if (own_[inst.object2].size() > 1)
          throw Error(ErrorCode::kNotSupported,
                      fmt::format("kernel {}: a fragment accesses buffer {}, which exceeds the "
                                  "device's binding limit",
                                  source().name, source().memories[inst.object2].name));
        return false;
      default:
        return false;
    }
    if (own_[inst.object].size() == 1) return false;
    Inst made = inst;
    made.result = ir::kNone;
    for (ir::Value& value : made.args) value = now(value).id();
    const uint32_t lanes =
        inst.op == Op::store_words ? Value(made.args[1]).type().lanes : inst.type.lanes;
    const bool crosses = is_words(inst) && inst.bits < lanes;
    const std::vector<Value> parts = crosses ? in_aligned_parts(made, lanes) : in_pieces(made);
    if (inst.result != ir::kNone) bind(inst.result, joined(parts));
    return true;
  }

  static bool is_words(const Inst& inst) {
    return inst.op == Op::load_words || inst.op == Op::store_words;
  }

  static Value joined(const std::vector<Value>& parts) {
    if (parts.size() == 1) return parts[0];
    return parts.size() == 2 ? vec(parts[0], parts[1])
                             : vec(parts[0], parts[1], parts[2], parts[3]);
  }

  // An access aligned to less than its size may straddle a boundary: split it into aligned parts.
  // Returns the words loaded.
  std::vector<Value> in_aligned_parts(const Inst& whole, uint32_t lanes) {
    const uint32_t width = static_cast<uint32_t>(whole.bits);
    std::vector<Value> words;
    for (uint32_t first = 0; first < lanes; first += width) {
      Inst part = whole;
      part.args[0] = (Value(whole.args[0]) + first).id();
      if (whole.op == Op::load_words) {
        part.type.lanes = static_cast<uint8_t>(width);
        const Value got = in_pieces(part)[0];
        for (uint32_t i = 0; i < width; ++i) words.push_back(got[i]);
      } else {
        const Value value(whole.args[1]);
        part.args[1] = (width == 1 ? value[first] : vec(value[first], value[first + 1])).id();
        in_pieces(part);
      }
    }
    return words;
  }

  // An access within one piece; its arguments belong to the new kernel. Returns its result, if any.
  std::vector<Value> in_pieces(const Inst& access) {
    const std::vector<uint32_t>& own = own_[access.object];
    const size_t width =
        is_words(access) ? 4 : dtype_bytes(source().memories[access.object].element);
    const uint32_t each = static_cast<uint32_t>(bytes_ / width);
    const Value index(access.args[0]), piece = index / each, within = index % each;
    std::vector<Var> result;
    if (access.type.lanes > 0) result.emplace_back(access.type, Operand(0), "piece");
    for (uint32_t p = 0; p < own.size(); ++p) {
      if_(piece == p, [&] {
        Inst made = access;
        made.args[0] = within.id();
        made.object = own[p];
        const ir::Value got = Builder::current().append(std::move(made));
        if (!result.empty()) result[0] = Value(got);
      });
    }
    if (result.empty()) return {};
    return {static_cast<Value>(result[0])};
  }

  uint64_t bytes_;
  const std::vector<uint32_t>& pieces_;
  std::vector<std::vector<uint32_t>> own_;
};

}  // namespace

ir::Kernel lower_async(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                       const std::vector<uint32_t>& pieces) {
  return LowerAsync(capabilities, pieces).run(kernel);
}
ir::Kernel lower_dot(const ir::Kernel& kernel) { return LowerDot().run(kernel); }
ir::Kernel lower_float_atomics(const ir::Kernel& kernel) { return LowerFloatAtomics().run(kernel); }

ir::Kernel split_buffers(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                         const std::vector<uint32_t>& pieces) {
  return SplitBuffers(piece_bytes(capabilities), pieces).run(kernel);
}

}  // namespace prism::lower_detail
