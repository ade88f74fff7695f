// Adds the changes of adapters to the rows of tensors as they are written.
#include "llm/model/merge_adapters.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/quantise/quantise.h"
#include "llm/model/adapters.h"
#include "prism/ops/matmul.h"

namespace prism::llm {
namespace {

// Adds rows of b a to `values`, whole rows from first_row on; the rows of experts follow each
// other.
void add_rows(const LowRank& change, uint64_t first_row, std::span<float> values) {
  const int64_t columns = change.a.size(-1), of_expert = change.b.size(-2);
  const int64_t first = static_cast<int64_t>(first_row),
                end = first + static_cast<int64_t>(values.size()) / columns;
  for (int64_t row = first; row < end;) {
    const int64_t expert = row / of_expert, from = row % of_expert;
    const int64_t count = std::min(of_expert - from, end - row);
    const bool has_experts = change.a.rank() == 3;
    const Tensor a = has_experts ? change.a.select(0, expert) : change.a;
    const Tensor b = has_experts ? change.b.select(0, expert) : change.b;
    const std::vector<float> added = matmul(b.slice(0, from, from + count), a).to_vector<float>();
    float* const to = values.data() + (row - first) * columns;
    for (size_t i = 0; i < added.size(); ++i) to[i] += added[i];
    row += count;
  }
}

}  // namespace

QuantiseResult merge_adapters(const GgufFile& file, std::span<const LoraAdapter> adapters,
                              const std::string& to, const QuantiseMix* mix,
                              QuantiseOptions options) {
  const Adapters changes(file, adapters);
  for (const auto& [name, change] : changes.all()) {
    const GgufTensor& tensor = *file.find_tensor(name);
    if (!mix && tensor.is_supported() && tensor.type.is_block() &&
        !cpu::can_quantise(tensor.type.block()))
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("merge: tensor {} is of type {}, which Prism can read and not write; "
                              "choose another type with --type, such as Q8_0",
                              name, tensor.type_name()));
  }
  options.requantise = true;
  options.has_change = [&](const std::string& tensor) { return changes.find(tensor) != nullptr; };
  options.change = [&](const GgufTensor& tensor, uint64_t first_row, std::span<float> values) {
    add_rows(*changes.find(tensor.name), first_row, values);
  };
  return quantise_file(file, to, mix, options);
}

}  // namespace prism::llm
