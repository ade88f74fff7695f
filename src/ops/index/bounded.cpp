// mask_beyond: a comparison of positions with counts, then a select.
#include "prism/ops/bounded.h"

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"

namespace prism {

Tensor mask_beyond(const Tensor& x, int axis, const Tensor& count, double value) {
  axis = checked_axis("mask_beyond", axis, x.rank());
  const bool counts =
      count.type() == ElementType(DType::i32) || count.type() == ElementType(DType::i64);
  Shape line = x.shape();
  line[axis] = 1;
  if (!counts || !(broadcast("mask_beyond", count.shape(), line) == line)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("mask_beyond: count {}{} for x {} along axis {}; it must be i32 or i64 "
                            "and broadcast to {}",
                            count.type().name(), count.shape().text(), x.shape().text(), axis,
                            line.text()));
  }
  Shape places;
  for (int i = axis; i < x.rank(); ++i) places.append(i == axis ? x.shape()[axis] : 1);
  const Tensor place = arange(x.shape()[axis], count.type().plain(), x.device()).reshape(places);
  return where(place < count, x, value);
}

}  // namespace prism
