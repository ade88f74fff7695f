// Reads and writes the files of importance matrices.
#include "llm/gguf/importance.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>

#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

// The numbers of a tensor, each finite and not negative.
std::vector<float> numbers(const GgufFile& file, const GgufTensor& tensor) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: tensor {} {}; was the file cut or changed?", file.path(),
                            tensor.name, what));
  };
  if (!tensor.is_supported() || tensor.type != ElementType(DType::f32))
    fail(fmt::format("is of type {}, importance is stored as f32", tensor.type_name()));
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  if (values.empty()) fail("is empty");
  std::memcpy(values.data(), file.data(tensor).data(), values.size() * sizeof(float));
  for (const float value : values)
    if (!std::isfinite(value) || value < 0)
      fail(fmt::format("holds {}, importance is finite and not negative", value));
  return values;
}

}  // namespace

ImportanceMatrix ImportanceMatrix::open(const std::string& path) {
  const GgufFile file = GgufFile::open(path);
  if (const auto kind = file.string_or("general.type", "a model"); kind != "imatrix")
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the file is {}, not an importance matrix; `prism model imatrix` "
                            "makes one",
                            path, kind));
  ImportanceMatrix matrix;
  for (const std::string_view text : file.strings("imatrix.datasets"))
    matrix.texts.emplace_back(text);
  matrix.chunks = static_cast<uint32_t>(file.integer_or("imatrix.chunk_count", 0));
  matrix.chunk_tokens = static_cast<uint32_t>(file.integer_or("imatrix.chunk_size", 0));
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - kSums.size());
    const GgufTensor* const counts = file.find_tensor(name + std::string(kCounts));
    if (!counts)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: tensor {} is there without {}{}; was the file cut or changed?",
                              path, tensor.name, name, kCounts));
    Importance entry{numbers(file, tensor), numbers(file, *counts)};
    if (entry.sums.size() % entry.counts.size() != 0)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: {} sums of {} do not belong to {} counts; was the file cut or "
                              "changed?",
                              path, entry.sums.size(), name, entry.counts.size()));
    matrix.tensors.emplace(name, std::move(entry));
  }
  if (matrix.tensors.empty())
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("{}: the importance matrix has no tensors; was the file cut or changed?",
                    path));
  return matrix;
}

void ImportanceMatrix::write(const std::string& path) const {
  GgufWriter writer;
  writer.set("general.type", "imatrix");
  writer.set("imatrix.datasets", texts);
  writer.set("imatrix.chunk_count", chunks);
  writer.set("imatrix.chunk_size", chunk_tokens);
  for (const auto& [name, entry] : tensors) {
    const auto count = static_cast<int64_t>(entry.counts.size());
    const int64_t columns = static_cast<int64_t>(entry.sums.size()) / count;
    const bool is_one = count == 1;  // llama.cpp leaves out outer axes of length 1
    writer.add_tensor(name + std::string(kSums), is_one ? Shape{columns} : Shape{count, columns},
                      DType::f32, std::as_bytes(std::span(entry.sums)));
    writer.add_tensor(name + std::string(kCounts), is_one ? Shape{1} : Shape{count, 1}, DType::f32,
                      std::as_bytes(std::span(entry.counts)));
  }
  writer.write(path);
}

std::vector<std::vector<float>> ImportanceMatrix::weights_of(const GgufTensor& tensor) const {
  const auto found = tensors.find(tensor.name);
  if (found == tensors.end() || tensor.shape.rank() < 2) return {};
  const Importance& entry = found->second;
  const auto columns = static_cast<size_t>(tensor.shape[-1]);
  const auto matrices =
      static_cast<size_t>(tensor.shape.elements() / (tensor.shape[-1] * tensor.shape[-2]));
  const size_t stored = entry.sums.size() / columns;  // matrices that have sums of their own
  if (entry.sums.size() != stored * columns || (stored != 1 && stored != matrices) ||
      (entry.counts.size() != 1 && entry.counts.size() != stored))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("importance of tensor {}: {} sums and {} counts, the tensor has {} "
                    "matrices with {} columns; was it measured with another model?",
                    tensor.name, entry.sums.size(), entry.counts.size(), matrices, columns));
  std::vector<std::vector<float>> weights(matrices);
  for (size_t m = 0; m < matrices; ++m) {
    const float count = entry.counts[entry.counts.size() == 1 ? 0 : m];
    const float* const sums = entry.sums.data() + (stored == 1 ? 0 : m * columns);
    if (count > 0)
      for (size_t c = 0; c < columns; ++c) weights[m].push_back(sums[c] / count);
  }
  return weights;
}

}  // namespace prism::llm
