// Masks are planes of 0 and 1 followed by how many lanes take part and one past the last of them.
#include "ir/interpreter_flow.h"

namespace prism::ir::vm::flow {
namespace {

// Keeps lanes for which keep(i) holds among those of `from` (null: all); true when any is left.
template <class Keep>
bool build(const Frame& f, uint32_t* mask, const uint32_t* from, Keep keep) {
  uint32_t count = 0;
  const uint32_t n = f.lanes;
  if (from) {
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t on = from[i] & keep(i);
      mask[i] = on;
      count += on;
    }
  } else {
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t on = keep(i);
      mask[i] = on;
      count += on;
    }
  }
  for (uint32_t i = n; i < f.padded; ++i) mask[i] = 0;
  uint32_t end = n;
  while (end > 0 && !mask[end - 1]) --end;
  mask[f.padded] = count;
  mask[f.padded + 1] = end;
  return count != 0;
}

const uint32_t* own_mask(const Step* s, const Frame& f) { return s->mask == kNone ? nullptr : f.at<uint32_t>(s->mask); }

uint32_t less(uint32_t a, uint32_t b, bool is_signed) {
  return is_signed ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
}

}  // namespace

const Step* stop(const Step*, Frame&) { return nullptr; }
const Step* jump(const Step* s, Frame& f) { return f.steps + s->jump; }
const Step* jump_unless(const Step* s, Frame& f) { return *f.at<uint32_t>(s->args[0]) ? s + 1 : f.steps + s->jump; }

const Step* make_mask(const Step* s, Frame& f) {
  const uint32_t* condition = f.at<uint32_t>(s->args[1]);
  const uint32_t flip = static_cast<uint32_t>(s->bits);
  const bool any = build(f, f.at<uint32_t>(s->args[0]), own_mask(s, f), [=](uint32_t i) { return condition[i] ^ flip; });
  return any || s->jump == kNone ? s + 1 : f.steps + s->jump;
}

const Step* copy_mask(const Step* s, Frame& f) {
  build(f, f.at<uint32_t>(s->args[0]), own_mask(s, f), [](uint32_t) { return 1u; });
  return s + 1;
}

const Step* narrow_mask(const Step* s, Frame& f) {
  uint32_t* mask = f.at<uint32_t>(s->args[0]);
  const uint32_t* other = f.at<uint32_t>(s->args[1]);
  return build(f, mask, mask, [=](uint32_t i) { return other[i]; }) ? s + 1 : f.steps + s->jump;
}

const Step* drop_lanes(const Step* s, Frame& f) {
  uint32_t* mask = f.at<uint32_t>(s->args[0]);
  const uint32_t* dropped = f.at<uint32_t>(s->mask);
  build(f, mask, mask, [=](uint32_t i) { return dropped[i] ^ 1u; });
  return s + 1;
}

const Step* for_head(const Step* s, Frame& f) {
  return less(*f.at<uint32_t>(s->args[0]), *f.at<uint32_t>(s->args[1]), s->bits) ? s + 1 : f.steps + s->jump;
}

// The distance to the end is compared, not the next index, which might wrap.
const Step* for_next(const Step* s, Frame& f) {
  uint32_t& index = *f.at<uint32_t>(s->args[0]);
  const uint32_t end = *f.at<uint32_t>(s->args[1]), step = *f.at<uint32_t>(s->args[2]);
  if (end - index <= step) return s + 1;
  index += step;
  return f.steps + s->jump;
}

const Step* for_head_masked(const Step* s, Frame& f) {
  uint32_t* mask = f.at<uint32_t>(s->args[0]);
  const uint32_t* index = f.at<uint32_t>(s->args[1]);
  const uint32_t* end = f.at<uint32_t>(s->args[2]);
  const bool is_signed = s->bits;
  const bool any = is_signed ? build(f, mask, mask, [=](uint32_t i) { return less(index[i], end[i], true); })
                             : build(f, mask, mask, [=](uint32_t i) { return less(index[i], end[i], false); });
  return any ? s + 1 : f.steps + s->jump;
}

const Step* for_next_masked(const Step* s, Frame& f) {
  uint32_t* mask = f.at<uint32_t>(s->args[0]);
  uint32_t* index = f.at<uint32_t>(s->args[1]);
  const uint32_t* end = f.at<uint32_t>(s->args[2]);
  const uint32_t* step = f.at<uint32_t>(s->args[3]);
  const bool any = build(f, mask, mask, [=](uint32_t i) { return static_cast<uint32_t>(end[i] - index[i] > step[i]); });
  // All lanes count on, so that indices that began side by side stay so.
  for (uint32_t i = 0; i < f.padded; ++i) index[i] += step[i];
  return any ? f.steps + s->jump : s + 1;
}

const Step* for_head_once(const Step* s, Frame& f) {
  uint32_t* mask = f.at<uint32_t>(s->args[0]);
  const uint32_t index = *f.at<uint32_t>(s->args[1]);
  const uint32_t* end = f.at<uint32_t>(s->args[2]);
  const bool is_signed = s->bits;
  return build(f, mask, mask, [=](uint32_t i) { return less(index, end[i], is_signed); }) ? s + 1 : f.steps + s->jump;
}

const Step* for_next_once(const Step* s, Frame& f) {
  uint32_t* mask = f.at<uint32_t>(s->args[0]);
  uint32_t& index = *f.at<uint32_t>(s->args[1]);
  const uint32_t* end = f.at<uint32_t>(s->args[2]);
  const uint32_t step = *f.at<uint32_t>(s->args[3]), now = index;
  const bool any = build(f, mask, mask, [=](uint32_t i) { return static_cast<uint32_t>(end[i] - now > step); });
  index = now + step;
  return any ? f.steps + s->jump : s + 1;
}

}  // namespace prism::ir::vm::flow
