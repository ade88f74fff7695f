// Implements sampling of rows on the device, on the host, or both.
#include "llm/generate/row_chooser.h"

#include <algorithm>

#include "llm/generate/model_failure.h"

namespace prism::llm {

RowChooser::RowChooser(const Tensor& logits, std::vector<Row> rows)
    : logits_(logits), rows_(std::move(rows)) {
  for (const Row& each : rows_) {
    samplings_.push_back(each.sequence->device_sampling());
    positions_.push_back(each.position);
  }
  // Sample on the device if possible, by the same rule as the decode loop, so that a text does not
  // depend on the rest of its batch.
  if (std::ranges::all_of(rows_, [](const Row& row) { return row.sequence->samples_on_device(); }))
    chosen_ = on_devices([&] { return llm::sample(logits_, samplings_, positions_); });
  else
    values_ = on_devices([&] { return logits_.to_vector<float>(); });
}

int32_t RowChooser::token(size_t row) {
  if (!chosen_.empty()) return chosen_[row];
  Sequence& sequence = *rows_[row].sequence;
  const size_t width = values_.size() / rows_.size();
  if (!sequence.samples_on_device())
    return sequence.sample(std::span(values_).subspan(row * width, width));
  const auto at = static_cast<int64_t>(row);
  return on_devices([&] {
    return llm::sample(logits_.slice(0, at, at + 1), std::span(samplings_).subspan(row, 1),
                       std::span(positions_).subspan(row, 1))[0];
  });
}

}  // namespace prism::llm
