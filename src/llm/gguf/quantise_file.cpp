// Quantises the tensors of one file into another, piece by piece.
#include "llm/gguf/quantise_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/system/thread_pool.h"
#include "llm/gguf/gguf_types.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/tensor_floats.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {

namespace {

// Whether a type is precise enough to quantise from.
bool is_fine(ElementType type) { return !type.is_block() || type == BlockType::q8_0; }

// Encodes rows of a tensor; weights: of the columns of each of its matrices, or none.
void encode_rows(ElementType type, std::span<const float> values, uint64_t first_row, uint64_t rows,
                 const Shape& shape, const std::vector<std::vector<float>>& weights,
                 std::span<std::byte> to, ThreadPool& pool) {
  if (weights.empty()) return from_floats(type, values, rows, to, pool);
  const auto columns = static_cast<uint64_t>(shape[-1]), each = static_cast<uint64_t>(shape[-2]);
  for (uint64_t row = 0; row < rows;) {
    const uint64_t matrix = (first_row + row) / each;
    const uint64_t count = std::min(rows - row, (matrix + 1) * each - (first_row + row));
    const std::vector<float>& importance = weights[matrix];
    from_floats(type, values.subspan(row * columns, count * columns), count,
                to.subspan(type.row_bytes(row * columns), type.row_bytes(count * columns)), pool,
                importance.empty() ? nullptr : importance.data());
    row += count;
  }
}

}  // namespace

QuantiseResult quantise_file(const GgufFile& file, const std::string& to, const QuantiseMix* mix,
                             const QuantiseOptions& options) {
  ThreadPool& pool = options.pool ? *options.pool : cpu_pool();
  std::vector<std::optional<ElementType>> types(file.tensors().size());
  if (mix) types = quantised_types(file, *mix);
  apply_tensor_type_rules(options.types, file, types);
  GgufWriter writer;
  for (const auto& [key, value] : file.metadata())
    if (!key.starts_with("split.")) writer.set(key, value);
  if (mix) writer.set("general.file_type", mix->file_type);
  if (std::ranges::any_of(types, [](const auto& type) { return type && type->is_block(); }))
    writer.set("general.quantization_version", uint32_t{2});
  if (options.importance) {
    writer.set("quantize.imatrix.file", options.importance_file);
    if (!options.importance->texts.empty())
      writer.set("quantize.imatrix.dataset", options.importance->texts.front());
    writer.set("quantize.imatrix.entries_count",
               static_cast<uint32_t>(options.importance->tensors.size()));
    writer.set("quantize.imatrix.chunks_count", options.importance->chunks);
  }

  QuantiseResult result;
  std::string at;  // the tensor being written
  for (size_t i = 0; i < types.size(); ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    result.input_bytes += tensor.bytes;
    ++result.tensors;
    const bool changes = options.has_change && options.has_change(tensor.name);
    if (changes && !types[i]) types[i] = tensor.type;
    if (!types[i] || (!changes && tensor.is_supported() && tensor.type == *types[i])) {
      writer.add_tensor(tensor, file.data(tensor));
      result.output_bytes += tensor.bytes;
      continue;
    }
    const ElementType type = *types[i];
    if (const auto loaded = loaded_type(tensor); loaded && !is_fine(*loaded) && !options.requantise)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: tensor {} is already quantised to {}; start from a file in F32, "
                              "F16, BF16 or Q8_0, or allow it to be quantised again (--requantize)",
                              file.path(), tensor.name, tensor.type_name()));
    std::vector<std::vector<float>> weights;
    if (options.importance && type.is_block()) weights = options.importance->weights_of(tensor);
    result.weighted += !weights.empty();
    ++result.changed;
    result.output_bytes += type.row_bytes(static_cast<uint64_t>(tensor.shape.elements()));
    writer.add_tensor(
        tensor.name, tensor.shape, type,
        [&file, &tensor, &at, type, &pool, &options, changes,
         weights = std::move(weights)](const GgufWriter::Sink& sink) {
          at = tensor.name;
          std::vector<std::byte> encoded;
          std::vector<float> changed;
          const auto put = [&](uint64_t first_row, uint64_t rows, std::span<const float> values) {
            if (changes) {
              changed.assign(values.begin(), values.end());
              options.change(tensor, first_row, changed);
              values = changed;
            }
            encoded.resize(type.row_bytes(values.size()));
            try {
              encode_rows(type, values, first_row, rows, tensor.shape, weights, encoded, pool);
            } catch (const Error& error) {
              throw Error(
                  error.code(),
                  fmt::format("{}: quantising tensor {} to {}, rows from {}: {}", file.path(),
                              tensor.name, type.name(), first_row, error.what()));
            }
            sink(encoded);
          };
          for_each_piece(file, tensor, pool, put);
        });
  }
  if (options.importance && result.weighted == 0)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: the importance matrix names no tensor that is to be quantised; was "
                    "it measured with another model?",
                    options.importance_file));
  writer.write(to, [&](uint64_t written, uint64_t all) {
    if (options.progress) options.progress(at, written, all);
  });
  return result;
}

}  // namespace prism::llm
