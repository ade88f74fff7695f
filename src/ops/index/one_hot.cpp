// one_hot: compares indices with the class numbers.
#include <fmt/format.h>

#include "ops/index/index_reading.h"
#include "prism/error.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"

namespace prism {

Tensor one_hot(const Tensor& indices, int64_t classes, DType type) {
  if (!indices) throw Error(ErrorCode::kInvalidArgument, "one_hot: an empty Tensor as indices");
  ops::check_index_type("one_hot", indices);
  if (classes < 0)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("one_hot: {} classes", classes));
  const Tensor numbers = arange(classes, DType::i32, indices.device());
  return cast(equal(indices.unsqueeze(-1), numbers), type);
}

}  // namespace prism
