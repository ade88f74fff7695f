// Finds and checks the parts of a split GGUF file.
#include "llm/gguf/gguf_split.h"

#include <fmt/format.h>

#include <optional>

namespace prism::llm {

namespace {

std::optional<int64_t> integer(const GgufHeader& header, std::string_view key) {
  for (const auto& [name, value] : header.metadata)
    if (name == key) return value.integer();
  return std::nullopt;
}

std::string ending(uint32_t number, uint32_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

}  // namespace

GgufSplit gguf_split(const std::string& path, const GgufHeader& header) {
  const int64_t count = integer(header, "split.count").value_or(0);
  if (count <= 1) return {};
  const int64_t number = integer(header, "split.no").value_or(-1);
  if (count > 99999 || number < 0 || number >= count)
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format(
            "{}: metadata split.no is {} and split.count {}; expected 0 <= no < count <= 99999",
            path, number, count));
  const GgufSplit split{static_cast<uint32_t>(number), static_cast<uint32_t>(count)};
  if (!path.ends_with(ending(split.number, split.count)))
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("{}: is part {} of {}, so its name must end in {} for the other parts to be "
                    "found beside it; rename it",
                    path, number + 1, count, ending(split.number, split.count)));
  return split;
}

std::string gguf_part_path(const std::string& path, uint32_t number, uint32_t count) {
  return path.substr(0, path.size() - ending(number, count).size()) + ending(number, count);
}

void check_gguf_part(const std::string& path, const GgufHeader& header, const GgufSplit& wanted) {
  const GgufSplit found = gguf_split(path, header);
  if (found.number != wanted.number || found.count != wanted.count)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: the metadata says part {} of {}, the name part {} of {}", path,
                            found.number + 1, found.count, wanted.number + 1, wanted.count));
}

void check_gguf_split_tensors(const std::string& path, const GgufHeader& joined) {
  const auto wanted = integer(joined, "split.tensors.count");
  if (wanted && *wanted != static_cast<int64_t>(joined.tensors.size()))
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: split.tensors.count is {}, the parts have {} tensors", path,
                            *wanted, joined.tensors.size()));
}

}  // namespace prism::llm
