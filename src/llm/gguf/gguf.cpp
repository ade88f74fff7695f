// Opens GGUF files with all their parts and gives access to metadata and tensors.
#include "prism/llm/gguf.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/system/mapped_file.h"
#include "llm/gguf/gguf_header.h"
#include "llm/gguf/gguf_split.h"
#include "llm/gguf/gguf_types.h"

namespace prism::llm {

struct GgufFile::State {
  GgufHeader header;                 // first part's header, with the tensors of all parts
  std::vector<std::string> paths;    // one per part
  std::vector<MappedFile> mappings;  // one per part; none if only parsed
  uint64_t file_bytes = 0;
  std::unordered_map<std::string_view, const GgufValue*> values;
  std::unordered_map<std::string_view, const GgufTensor*> tensors;  // keys are views of the names

  void add_part(uint32_t number, GgufHeader part) {
    for (GgufTensor& tensor : part.tensors) {
      tensor.part = number;
      header.tensors.push_back(std::move(tensor));
    }
  }

  void index() {
    for (const auto& [key, value] : header.metadata) values.emplace(key, &value);
    for (const GgufTensor& tensor : header.tensors)
      if (!tensors.emplace(tensor.name, &tensor).second)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("{}: tensor {} occurs in more than one part of the file",
                                paths.front(), tensor.name));
  }
};

bool GgufTensor::is_supported() const {
  const GgufTensorType* const known = gguf_tensor_type(gguf_type);
  return known && known->element_type.has_value();
}

const char* GgufTensor::type_name() const {
  const GgufTensorType* const known = gguf_tensor_type(gguf_type);
  return known ? known->name : "unknown";
}

GgufFile GgufFile::open(const std::string& path) {
  auto state = std::make_shared<State>();
  const auto open_part = [&](const std::string& part) {
    state->mappings.push_back(map_file(part, MapAccess::read));
    const MappedFile& mapping = state->mappings.back();
    state->file_bytes += mapping.bytes;
    state->paths.push_back(part);
    if (mapping.bytes == 0) throw Error(ErrorCode::kCorruptFile, part + ": is empty");
    return parse_gguf_header(part, {mapping.data.get(), mapping.bytes}, mapping.bytes);
  };
  state->header = open_part(path);
  const GgufSplit split = gguf_split(path, state->header);
  if (split.count > 1) {
    if (split.number != 0) {  // restart from the first part
      *state = {};
      state->header = open_part(gguf_part_path(path, 0, split.count));
      check_gguf_part(state->paths.back(), state->header, {0, split.count});
    }
    for (uint32_t i = 1; i < split.count; ++i) {
      GgufHeader part = open_part(gguf_part_path(path, i, split.count));
      check_gguf_part(state->paths.back(), part, {i, split.count});
      state->add_part(i, std::move(part));
    }
    check_gguf_split_tensors(state->paths.front(), state->header);
  }
  state->index();
  return GgufFile(std::move(state));
}

GgufFile GgufFile::parse(std::span<const std::byte> header, uint64_t file_bytes,
                         const std::string& name) {
  auto state = std::make_shared<State>();
  state->header = parse_gguf_header(name, header, file_bytes);
  state->paths.push_back(name);
  state->file_bytes = file_bytes ? file_bytes : header.size();
  state->index();
  return GgufFile(std::move(state));
}

GgufFile GgufFile::parse_parts(std::span<const PartStart> parts) {
  auto state = std::make_shared<State>();
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartStart& part = parts[i];
    GgufHeader header = parse_gguf_header(part.name, part.header, part.file_bytes);
    state->paths.push_back(part.name);
    state->file_bytes += part.file_bytes;
    check_gguf_part(part.name, header,
                    {static_cast<uint32_t>(i), static_cast<uint32_t>(parts.size())});
    if (i == 0)
      state->header = std::move(header);
    else
      state->add_part(static_cast<uint32_t>(i), std::move(header));
  }
  check_gguf_split_tensors(state->paths.front(), state->header);
  state->index();
  return GgufFile(std::move(state));
}

const std::string& GgufFile::path() const { return state_->paths.front(); }
uint32_t GgufFile::version() const { return state_->header.version; }
uint64_t GgufFile::alignment() const { return state_->header.alignment; }
uint64_t GgufFile::file_bytes() const { return state_->file_bytes; }
uint64_t GgufFile::data_offset() const { return state_->header.data_offset; }
const std::vector<std::string>& GgufFile::parts() const { return state_->paths; }

const std::vector<std::pair<std::string_view, GgufValue>>& GgufFile::metadata() const {
  return state_->header.metadata;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = state_->values.find(key);
  return found == state_->values.end() ? nullptr : found->second;
}

const GgufValue& GgufFile::value(std::string_view key) const {
  if (const GgufValue* const found = find(key)) return *found;
  throw Error(ErrorCode::kNotFound, fmt::format("{}: metadata {} is missing", path(), key));
}

namespace {

template <class T>
T wanted(const GgufFile& file, std::string_view key, const GgufValue& value, const char* type,
         const std::optional<T>& found) {
  if (found) return *found;
  throw Error(ErrorCode::kCorruptFile,
              fmt::format("{}: metadata {} is {} of type {}; {} is needed", file.path(), key,
                          value.is_array() ? "a value" : value.text(), value.type_text(), type));
}

// Reads the elements of an array with get; empty if absent.
template <class T, class Get>
std::vector<T> elements(const GgufFile& file, std::string_view key, const char* type,
                        const Get& get) {
  std::vector<T> out;
  const GgufValue* const array = file.find(key);
  if (!array) return out;
  if (!array->is_array())
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: metadata {} is of type {}; an array of {}s is needed", file.path(),
                            key, array->type_text(), type));
  out.reserve(array->count());
  array->for_each([&](const GgufValue& value) {
    out.push_back(static_cast<T>(wanted(file, key, value, type, get(value))));
  });
  return out;
}

}  // namespace

int64_t GgufFile::integer(std::string_view key) const {
  const GgufValue& found = value(key);
  return wanted(*this, key, found, "integer", found.integer());
}
int64_t GgufFile::integer_or(std::string_view key, int64_t otherwise) const {
  return has(key) ? integer(key) : otherwise;
}
double GgufFile::number(std::string_view key) const {
  const GgufValue& found = value(key);
  return wanted(*this, key, found, "number", found.number());
}
double GgufFile::number_or(std::string_view key, double otherwise) const {
  return has(key) ? number(key) : otherwise;
}
std::string_view GgufFile::string(std::string_view key) const {
  const GgufValue& found = value(key);
  return wanted(*this, key, found, "string", found.string());
}
std::string_view GgufFile::string_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? string(key) : otherwise;
}
bool GgufFile::boolean(std::string_view key) const {
  const GgufValue& found = value(key);
  return wanted(*this, key, found, "bool", found.boolean());
}
bool GgufFile::boolean_or(std::string_view key, bool otherwise) const {
  return has(key) ? boolean(key) : otherwise;
}

std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  return elements<std::string_view>(*this, key, "string",
                                    [](const GgufValue& value) { return value.string(); });
}
std::vector<float> GgufFile::floats(std::string_view key) const {
  return elements<float>(*this, key, "number",
                         [](const GgufValue& value) { return value.number(); });
}
std::vector<int64_t> GgufFile::integers(std::string_view key) const {
  return elements<int64_t>(*this, key, "integer", [](const GgufValue& value) {
    const auto boolean = value.boolean();
    return boolean ? std::optional<int64_t>(*boolean) : value.integer();
  });
}

const std::vector<GgufTensor>& GgufFile::tensors() const { return state_->header.tensors; }

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = state_->tensors.find(name);
  return found == state_->tensors.end() ? nullptr : found->second;
}

std::shared_ptr<const std::byte> GgufFile::memory(const GgufTensor& tensor) const {
  const std::span<const std::byte> bytes = data(tensor);
  if (bytes.empty()) return nullptr;
  const auto& mapping = state_->mappings[tensor.part].data;
  return std::shared_ptr<const std::byte>(mapping, mapping.get() + tensor.offset);
}

std::span<const std::byte> GgufFile::data(const GgufTensor& tensor) const {
  if (tensor.part >= state_->mappings.size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: only the header was read, not the data of tensor {}; use open()",
                            path(), tensor.name));
  const MappedFile& mapping = state_->mappings[tensor.part];
  if (tensor.offset > mapping.bytes || tensor.bytes > mapping.bytes - tensor.offset) {
    if (tensor.bytes == 0) return {};
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: has no tensor {} at byte {}", path(), tensor.name, tensor.offset));
  }
  return {mapping.data.get() + tensor.offset, tensor.bytes};
}

}  // namespace prism::llm
