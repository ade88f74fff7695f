// The checking steps. Each runs before the step it checks, so that the fast paths contain no
// checks.
#include "ir/interpreter/interpreter_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace prism::ir::vm {
namespace {

constexpr uint32_t kMany = 0xfffffffeu;  // read by several lanes

}  // namespace

Checks::Checks(const Program& program) : program_(program) {
  const Kernel& kernel = program.kernel;
  cells_.resize(kernel.memories.size());
  own_.resize(kernel.memories.size());
  for (size_t i = 0; i < kernel.memories.size(); ++i) {
    const Memory& memory = kernel.memories[i];
    if (memory.space == Space::shared) cells_[i].resize(memory.length);
    if (memory.space == Space::local) own_[i].resize(memory.length * program.padded);
  }
  filled.resize(kernel.fragments.size());
}

void Checks::begin_group() {
  ++group_;
  ++epoch_;
  committed_ = 0;
  for (const Copy& copy : under_way_) copy.cell->batch = 0;
  under_way_.clear();
  filled.assign(filled.size(), false);
}

std::string Checks::agent_name(uint32_t agent) const {
  if (agent == kMany) return "other lanes";
  return agent < program_.lanes
             ? fmt::format("lane {}", agent)
             : fmt::format("the fragment of subgroup {}", agent - program_.lanes);
}

void Checks::race(const Frame& frame, const Step& step, uint32_t memory, uint64_t element,
                  uint32_t agent, const char* does, uint32_t other, const char* did) const {
  fail(frame, step,
       fmt::format("race on {}[{}]: {} {} it and {} {} it with no barrier between them",
                   program_.kernel.memories[memory].name, element, agent_name(agent), does,
                   agent_name(other), did));
}

void Checks::touch(const Frame& frame, const Step& step, uint32_t memory, uint64_t element,
                   uint32_t agent, AccessKind kind) {
  const Memory& info = program_.kernel.memories[memory];
  const bool reads = kind == kReads || kind == kAtomic;
  if (info.space == Space::local) {
    uint64_t& initialised = own_[memory][element * program_.padded + agent];
    if (reads && initialised != group_)
      fail(
          frame, step,
          fmt::format("lane {} reads {}[{}], which it has not written", agent, info.name, element));
    initialised = group_;
    return;
  }
  Cell& cell = cells_[memory][element];
  if (cell.batch)
    fail(frame, step,
         fmt::format("{} touches {}[{}] while an async copy into it is under way; {}",
                     agent_name(agent), info.name, element,
                     cell.batch > committed_ ? "commit it with async_commit, then async_wait"
                                             : "async_wait for its batch first"));
  if (reads && cell.initialised != group_)
    fail(frame, step,
         fmt::format("{} reads {}[{}], which nothing in the group has written", agent_name(agent),
                     info.name, element));
  const char* does = kind == kReads ? "reads" : kind == kAtomic ? "changes" : "writes";
  if (cell.written == epoch_ && cell.writer != agent)
    race(frame, step, memory, element, agent, does, cell.writer, "wrote");
  if (kind != kAtomic && cell.changed == epoch_ && cell.changer != agent)
    race(frame, step, memory, element, agent, does, cell.changer, "changed");
  if (kind != kReads && cell.read == epoch_ && cell.reader != agent)
    race(frame, step, memory, element, agent, does, cell.reader, "read");
  switch (kind) {
    case kReads:
      cell.reader = cell.read == epoch_ && cell.reader != agent ? kMany : agent;
      cell.read = epoch_;
      break;
    case kAtomic:
      cell.changer = cell.changed == epoch_ && cell.changer != agent ? kMany : agent;
      cell.changed = epoch_;
      break;
    default:
      cell.written = epoch_;
      cell.writer = agent;
      cell.initialised = group_;
      break;
  }
  if (kind == kCopiesAhead) {
    cell.batch = committed_ + 1;
    under_way_.push_back({&cell, agent});
  }
}

void Checks::wait(uint64_t still_under_way) {
  const uint64_t done = committed_ > still_under_way ? committed_ - still_under_way : 0;
  const auto arrived = [&](const Copy& copy) {
    if (copy.cell->batch > done) return false;
    copy.cell->batch = 0;
    copy.cell->written = epoch_;
    copy.cell->writer = copy.agent;
    return true;
  };
  under_way_.erase(std::remove_if(under_way_.begin(), under_way_.end(), arrived), under_way_.end());
}

namespace {

const Step* access_check(const Step* s, Frame& f) {
  const Memory& memory = f.program->kernel.memories[s->object];
  const MemoryView& view = f.memories[s->object];
  const AccessKind kind = static_cast<AccessKind>(s->bits);
  const bool words = kind == kReadsWords || kind == kWritesWords;
  const uint32_t elements = s->object2;
  const uint64_t limit = words ? view.words : view.length;
  const uint32_t* index = f.at<uint32_t>(s->args[0]);
  const uint32_t stride = s->is_uniform(0) ? 0 : 1;
  const uint64_t alignment = words ? std::max<uint64_t>(s->inst->bits, 1) : elements;
  const Active active = active_lanes(*s, f);
  for (uint32_t lane = 0; lane < active.end; ++lane) {
    if (!active.has(lane)) continue;
    const uint64_t first = index[lane * stride];
    if (first + elements > limit)
      fail_bounds(f, *s, s->object, index, stride, elements, limit, words ? "words" : "elements");
    if (first % alignment)
      fail(f, *s,
           fmt::format(
               "{} of {} {} of {} in lane {} at index {}: the index must be a multiple of {}",
               op_name(s->inst->op), elements, words ? "words" : "elements", memory.name, lane,
               first, alignment));
    if (memory.space == Space::buffer) continue;
    for (uint32_t e = 0; e < elements; ++e)
      f.checks->touch(f, *s, s->object, first + e, lane, kind);
  }
  return s + 1;
}

const Step* group_check(const Step* s, Frame& f) {
  const Active active = active_lanes(*s, f);
  if (active.count != f.lanes) {
    uint32_t missing = 0;
    while (active.has(missing)) ++missing;
    fail(f, *s,
         fmt::format("{} is reached by {} of {} lanes (lane {} is not here); all lanes of the "
                     "group must arrive together",
                     op_name(s->inst->op), active.count, f.lanes, missing));
  }
  switch (s->inst->op) {
    case Op::barrier:
      f.checks->barrier();
      break;
    case Op::async_commit:
      f.checks->commit();
      break;
    case Op::async_wait:
      f.checks->wait(s->bits);
      break;
    default:
      break;
  }
  return s + 1;
}

void need_filled(const Frame& f, const Step& s, uint32_t fragment) {
  if (!f.checks->filled[fragment])
    fail(f, s,
         fmt::format("{} uses fragment {}, which has not been filled", op_name(s.inst->op),
                     f.program->kernel.fragments[fragment].name));
}

void check_fragment_access(const Step* s, Frame& f) {
  const Fragment& shape = f.program->kernel.fragments[s->object];
  const Memory& memory = f.program->kernel.memories[s->object2];
  const uint64_t limit = f.memories[s->object2].length;
  const uint32_t *index = f.at<uint32_t>(s->args[0]), *stride = f.at<uint32_t>(s->args[1]);
  for (uint32_t lane = 0; lane < f.lanes; ++lane) {
    const uint32_t first = lane / f.subgroup * f.subgroup;
    if (index[lane] != index[first] || stride[lane] != stride[first])
      fail(f, *s,
           fmt::format("{}: lanes {} and {} of one subgroup give different addresses (index {} and "
                       "{}, stride {} and {})",
                       op_name(s->inst->op), first, lane, index[first], index[lane], stride[first],
                       stride[lane]));
    if (lane != first) continue;
    for (uint32_t r = 0; r < shape.rows(); ++r)
      for (uint32_t c = 0; c < shape.columns(); ++c) {
        const uint64_t at = uint64_t{index[lane]} + (s->bits ? c * uint64_t{stride[lane]} + r
                                                             : r * uint64_t{stride[lane]} + c);
        if (at >= limit)
          fail(f, *s,
               fmt::format("{} in lane {}: index {}, but {} has {} elements", op_name(s->inst->op),
                           lane, at, memory.name, limit));
        if (memory.space == Space::shared)
          f.checks->touch(f, *s, s->object2, at, f.lanes + lane / f.subgroup,
                          s->inst->op == Op::fragment_load ? kReads : kWrites);
      }
  }
}

const Step* fragment_check(const Step* s, Frame& f) {
  const Op op = s->inst->op;
  for (uint32_t source : s->inst->objects) need_filled(f, *s, source);
  if (op == Op::fragment_multiply || op == Op::fragment_store) need_filled(f, *s, s->object);
  if (op == Op::fragment_load || op == Op::fragment_store) check_fragment_access(s, f);
  f.checks->filled[s->object] = true;
  return s + 1;
}

}  // namespace

Run find_access_check() { return access_check; }
Run find_group_check() { return group_check; }
Run find_fragment_check() { return fragment_check; }

}  // namespace prism::ir::vm
