// Reads and writes plain vectors.
#include "search/vector_file.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "base/json.h"
#include "base/system/input_file.h"
#include "base/system/mapped_file.h"
#include "base/system/output_file.h"
#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops/elementwise.h"

namespace prism::search {

namespace {

namespace fs = std::filesystem;

std::string extension_of(const std::string& path) { return fs::path(path).extension().string(); }

VectorTable from_npy(const std::string& path) {
  const Tensor tensor = load(path, Device::cpu());
  if (tensor.rank() != 1 && tensor.rank() != 2)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: has the shape {}; vectors are [rows, width], or [width] for one",
                            path, tensor.shape().text()));
  const bool one = tensor.rank() == 1;
  VectorTable table;
  table.rows = one ? 1 : static_cast<uint64_t>(tensor.size(0));
  table.width = static_cast<uint64_t>(tensor.size(-1));
  table.values = cast(tensor, DType::f32).to_vector<float>();
  return table;
}

[[noreturn]] void corrupt(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, path + ": " + what);
}

Tensor tensor_of(const std::vector<float>& values, const Shape& shape) {
  return from_vector(values, shape, Device::cpu());
}

std::vector<float> norms_of(const VectorTable& table) {
  std::vector<float> norms;
  for (uint64_t r = 0; r < table.rows; ++r) {
    double squares = 0;
    for (const float value : table.row(r)) squares += static_cast<double>(value) * value;
    norms.push_back(static_cast<float>(std::sqrt(squares)));
  }
  return norms;
}

// The lengths of the rows, which another program computed: they tell whether both files belong
// together.
void check_norms(const std::string& path, const VectorTable& table) {
  const std::vector<float> given = cast(load(path, Device::cpu()), DType::f32).to_vector<float>();
  const std::vector<float> right = norms_of(table);
  if (given.size() != right.size())
    corrupt(path, fmt::format("has {} lengths for {} vectors", given.size(), right.size()));
  for (uint64_t r = 0; r < right.size(); ++r)
    if (!(std::abs(given[r] - right[r]) <= 1e-2f * std::max(1.0f, right[r])))
      corrupt(path, fmt::format("vector {} has the length {}, not {}; is it of other vectors?", r,
                                right[r], given[r]));
}

Json json_of(const Field& field) {
  return std::visit([](const auto& value) { return Json(value); },
                    static_cast<const FieldValue&>(field));
}

void write_folder(const std::string& path, const VectorTable& table) {
  const fs::path folder(path);
  fs::create_directories(folder);
  // The vectors are removed first and written last: without them the folder cannot be read, so old
  // and new files never count as one.
  const std::string vectors = (folder / "embeddings.npy").string();
  fs::remove(vectors);
  const auto rows = static_cast<int64_t>(table.rows), width = static_cast<int64_t>(table.width);
  save((folder / "embeddings_norms.npy").string(), tensor_of(norms_of(table), {rows}));
  Json all = Json::array();
  for (uint64_t r = 0; r < table.rows; ++r) {
    const Id id = table.ids.empty() ? Id(r) : table.ids[r];
    Json row = {{"id", id.is_text() ? Json(id.text()) : Json(id.number())}};
    if (!table.fields.empty())
      for (const auto& [name, value] : table.fields[r]) row[name] = json_of(value);
    all.push_back(std::move(row));
  }
  const std::string text = all.dump();
  OutputFile file((folder / "embeddings_meta.json").string());
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  save(vectors, tensor_of(table.values, {rows, width}));
}

// One number of .bvecs or .ivecs.
template <class T>
void write_integers(const std::string& path, OutputFile& file, std::span<const float> row) {
  std::vector<T> integers;
  for (const float value : row) {
    const double number = static_cast<double>(value);
    if (number != std::floor(number) ||
        number < static_cast<double>(std::numeric_limits<T>::min()) ||
        number > static_cast<double>(std::numeric_limits<T>::max()))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} is not an integer of this format; use .fvecs", path, value));
    integers.push_back(static_cast<T>(number));
  }
  file.write(std::as_bytes(std::span(integers)));
}

}  // namespace

VectorTable read_vectors(const std::string& path) {
  std::error_code ignored;  // a path that cannot be looked at fails when it is read
  if (fs::is_directory(path, ignored)) {
    VectorTable table = from_npy((fs::path(path) / "embeddings.npy").string());
    const std::string meta = (fs::path(path) / "embeddings_meta.json").string();
    if (fs::exists(meta, ignored)) parse_meta(meta, read_input_file(meta), table);
    const std::string norms = (fs::path(path) / "embeddings_norms.npy").string();
    if (fs::exists(norms, ignored)) check_norms(norms, table);
    return table;
  }
  const std::string extension = extension_of(path);
  if (extension == ".npy") return from_npy(path);
  const bool vecs = extension == ".fvecs" || extension == ".bvecs" || extension == ".ivecs";
  if (!vecs && extension != ".fbin")
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: vectors come from .npy, .fvecs, .bvecs, .ivecs or .fbin files, or "
                            "a folder with embeddings.npy",
                            path));
  const MappedFile mapped = map_file(path, MapAccess::read);
  const std::string_view file(reinterpret_cast<const char*>(mapped.data.get()), mapped.bytes);
  return vecs ? parse_vecs(path, file, extension) : parse_fbin(path, file);
}

void write_vectors(const std::string& path, const VectorTable& table) {
  const std::string extension = extension_of(path);
  if (extension.empty()) return write_folder(path, table);
  const auto width = static_cast<uint32_t>(table.width), rows = static_cast<uint32_t>(table.rows);
  if (extension == ".npy") return save(path, tensor_of(table.values, {rows, width}));
  const bool vecs = extension == ".fvecs" || extension == ".bvecs" || extension == ".ivecs";
  if (!vecs && extension != ".fbin")
    throw Error(ErrorCode::kInvalidArgument,
                path +
                    ": vectors are written as .npy, .fvecs, .bvecs, .ivecs or .fbin, or without "
                    "an extension as a folder");
  OutputFile file(path);
  if (extension == ".fbin") {
    file.write(std::as_bytes(std::span(&rows, 1)));
    file.write(std::as_bytes(std::span(&width, 1)));
  }
  for (uint64_t r = 0; r < table.rows; ++r) {
    if (vecs) file.write(std::as_bytes(std::span(&width, 1)));
    if (extension == ".bvecs")
      write_integers<uint8_t>(path, file, table.row(r));
    else if (extension == ".ivecs")
      write_integers<int32_t>(path, file, table.row(r));
    else
      file.write(std::as_bytes(table.row(r)));
  }
  file.commit();
}

}  // namespace prism::search
