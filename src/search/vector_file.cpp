// Reads and writes plain vectors.
#include "search/vector_file.h"

#include <filesystem>

#include <fmt/format.h>

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

}  // namespace

VectorTable read_vectors(const std::string& path) {
  std::error_code ignored;  // a path that cannot be looked at fails when it is read
  if (fs::is_directory(path, ignored)) {
    VectorTable table = from_npy((fs::path(path) / "embeddings.npy").string());
    const std::string meta = (fs::path(path) / "embeddings_meta.json").string();
    if (fs::exists(meta, ignored)) parse_meta(meta, read_input_file(meta), table);
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
  if (extension == ".npy")
    return save(path,
                from_vector(table.values,
                            {static_cast<int64_t>(table.rows), static_cast<int64_t>(table.width)},
                            Device::cpu()));
  if (extension != ".fvecs" && extension != ".fbin")
    throw Error(ErrorCode::kInvalidArgument,
                path + ": vectors are written as .npy, .fvecs or .fbin");
  OutputFile file(path);
  const auto width = static_cast<uint32_t>(table.width), rows = static_cast<uint32_t>(table.rows);
  if (extension == ".fbin") {
    file.write(std::as_bytes(std::span(&rows, 1)));
    file.write(std::as_bytes(std::span(&width, 1)));
  }
  for (uint64_t r = 0; r < table.rows; ++r) {
    if (extension == ".fvecs") file.write(std::as_bytes(std::span(&width, 1)));
    file.write(std::as_bytes(table.row(r)));
  }
  file.commit();
}

}  // namespace prism::search
