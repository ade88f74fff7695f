// Checks and reads the rows of the texts of a batch.
#include "ops/recurrence/text_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/index/index_reading.h"
#include "prism/error.h"

namespace prism::ops {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

void check_texts(const char* op, const Tensor& state, const Tensor& texts) {
  check_changeable(op, state);
  if (texts.rank() != 2 || texts.size(1) != 4 || !(texts.type() == ElementType(DType::i32)))
    fail(fmt::format("{}: texts are {} {}; they must be i32 [texts, 4]", op, texts.type().name(),
                     texts.shape().text()));
}

void check_all_f32(const char* op, std::span<const Tensor> inputs) {
  for (const Tensor& each : inputs)
    if (!(each.type() == ElementType(DType::f32)))
      fail(fmt::format("{}: an input {} is {}; all must be f32", op, each.shape().text(),
                       each.type().name()));
}

std::vector<TextRows> read_texts(const char* op, const HostView& texts, int64_t rows,
                                 int64_t states) {
  std::vector<TextRows> result;
  const auto* const words = texts.first<int32_t>();
  for (int64_t i = 0; i < texts.layout.shape[0]; ++i) {
    const TextRows each{words[4 * i], words[4 * i + 1], words[4 * i + 3]};
    if (each.count == 0) continue;
    if (each.first < 0 || each.count < 0 || each.first + each.count > rows || each.state < 0 ||
        each.state >= states)
      fail(
          fmt::format("{}: text {} has {} rows from {} on and state {}; there are {} rows and {} "
                      "states",
                      op, i, each.count, each.first, each.state, rows, states));
    result.push_back(each);
  }
  return result;
}

void clear_other_rows(const HostView& y, std::span<const TextRows> texts) {
  int64_t end = 0;
  for (const TextRows& each : texts) end = std::max(end, each.first + each.count);
  const Shape& shape = y.layout.shape;
  const int64_t width = shape.elements() / std::max<int64_t>(1, shape[0]);
  std::fill(y.first<float>() + end * width, y.first<float>() + shape.elements(), 0.0f);
}

void KernelTexts::for_other_rows(const dsl::Value& count, const dsl::Value& rows,
                                 const std::function<void(dsl::Value)>& clear) const {
  using namespace dsl;
  if_(group_id(1) == 0u, [&] {
    Var end(u32, constant(u32, 0), "end");
    for_(count, [&](Value text) {
      const Value of = texts[text * 4u + 1u];
      if_(of > 0u, [&] { end = max(end, texts[text * 4u] + of); });
    });
    for_(end, rows, 1u, clear);
  });
}

}  // namespace prism::ops
