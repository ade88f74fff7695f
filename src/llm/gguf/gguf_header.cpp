// Parses and checks the header of a GGUF file, which is untrusted input.
#include "llm/gguf/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "llm/gguf/gguf_types.h"

namespace prism::llm {

namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are read in place");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kMostDimensions = 4;
constexpr int kMostNesting = 8;           // of arrays; real files do not nest them
constexpr uint64_t kMostReserved = 4096;  // entries reserved before they are read
// The minimum size of an entry in a file, which bounds the counts that a header may claim.
constexpr uint64_t kLeastEntry = 8 + 4 + 1, kLeastTensor = 8 + 4 + 4 + 8;

class HeaderReader {
 public:
  HeaderReader(const std::string& name, std::span<const std::byte> bytes, uint64_t file_bytes)
      : name_(name), bytes_(bytes), file_bytes_(std::max<uint64_t>(file_bytes, bytes.size())) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kCorruptFile, fmt::format("{}: {}", name_, what));
  }

  // Checks that this many bytes are left.
  void need(uint64_t bytes, std::string_view field) const {
    if (bytes <= bytes_.size() - at_) return;
    if (bytes > file_bytes_ - at_)
      fail(
          fmt::format("{} at byte {} takes {} bytes, the file has {} left; it is damaged or was "
                      "not downloaded completely",
                      field, at_, bytes, file_bytes_ - at_));
    throw GgufIncomplete(fmt::format("{}: the header extends beyond the {} bytes given ({})", name_,
                                     bytes_.size(), field));
  }
  // Rejects an impossible entry count before anything is allocated for it.
  void need_entries(uint64_t count, uint64_t least_bytes, std::string_view field) const {
    if (count > (file_bytes_ - at_) / least_bytes)
      fail(fmt::format("{} is {}, more than the {} bytes left in the file can hold", field, count,
                       file_bytes_ - at_));
  }

  template <class T>
  T read(std::string_view field) {
    need(sizeof(T), field);
    T value;
    std::memcpy(&value, here(), sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string_view read_string(std::string_view field) {
    const auto length = read<uint64_t>(field);
    need(length, field);
    const std::string_view text(reinterpret_cast<const char*>(here()), length);
    at_ += length;
    return text;
  }

  GgufType read_type(std::string_view field) {
    const auto number = read<uint32_t>(field);
    if (number >= kGgufTypeCount)
      fail(fmt::format("{} has type number {}; the largest is {}", field, number,
                       kGgufTypeCount - 1));
    return static_cast<GgufType>(number);
  }

  GgufValue read_value(GgufType type, std::string_view field, int nesting = 0) {
    if (type == GgufType::string) {
      const std::string_view text = read_string(field);
      return GgufValue::string(reinterpret_cast<const std::byte*>(text.data()), text.size());
    }
    if (type == GgufType::array) return read_array(field, nesting + 1);
    const uint32_t bytes = gguf_type_bytes(type);
    need(bytes, field);
    at_ += bytes;
    return GgufValue::scalar(type, here() - bytes);
  }

  const std::byte* here() const { return bytes_.data() + at_; }
  uint64_t at() const { return at_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  GgufValue read_array(std::string_view field, int nesting) {
    if (nesting > kMostNesting)
      fail(fmt::format("{} is an array nested deeper than {}", field, kMostNesting));
    const GgufType element = read_type(field);
    const auto count = read<uint64_t>(field);
    const uint32_t bytes = gguf_type_bytes(element);
    const uint64_t least = bytes ? bytes : element == GgufType::string ? 8 : 12;
    need_entries(count, least, fmt::format("the count of {}", field));
    const std::byte* const first = here();
    if (bytes) {
      need(count * bytes, field);
      at_ += count * bytes;
    } else if (element == GgufType::string) {
      for (uint64_t i = 0; i < count; ++i) read_string(field);
    } else {
      for (uint64_t i = 0; i < count; ++i) read_array(field, nesting + 1);
    }
    return GgufValue::array(element, first, count);
  }

  const std::string& name_;
  std::span<const std::byte> bytes_;
  uint64_t file_bytes_;
  uint64_t at_ = 0;
};

void read_start(HeaderReader& in, GgufHeader& header) {
  const auto magic = in.read<uint32_t>("the magic number");
  if (magic != kMagic)
    in.fail(fmt::format("starts with {:08x} instead of \"GGUF\"; it is not a GGUF file", magic));
  header.version = in.read<uint32_t>("the version");
  if (header.version == 2 || header.version == 3) return;
  if ((header.version & 0xffff) == 0)
    in.fail("is a big-endian GGUF file; convert it to little-endian");
  in.fail(fmt::format("is GGUF version {}; Prism reads 2 and 3{}", header.version,
                      header.version == 1 ? " (convert the model again)" : ""));
}

void read_metadata(HeaderReader& in, GgufHeader& header, uint64_t count) {
  header.metadata.reserve(std::min(count, kMostReserved));
  std::unordered_set<std::string_view> seen;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = in.read_string(fmt::format("metadata key {} of {}", i + 1, count));
    const std::string field = fmt::format("metadata {}", key.substr(0, 200));
    if (!seen.insert(key).second) in.fail(field + " occurs twice in the file");
    const GgufType type = in.read_type(field);
    header.metadata.emplace_back(key, in.read_value(type, field));
    if (key != "general.alignment") continue;
    const auto alignment = header.metadata.back().second.integer().value_or(0);
    if (alignment < 8 || !std::has_single_bit(static_cast<uint64_t>(alignment)) ||
        alignment > UINT32_MAX)
      in.fail(fmt::format("{} is {}; it must be a power of two, 8 or more", field,
                          header.metadata.back().second.text()));
    header.alignment = static_cast<uint64_t>(alignment);
  }
}

// Sets shape and size from the lengths; files list the innermost axis first.
void set_shape(HeaderReader& in, GgufTensor& tensor, std::span<const uint64_t> lengths,
               const GgufTensorType& type) {
  uint64_t blocks = 1;
  bool is_empty = false;
  for (size_t i = lengths.size(); i-- > 0;) {
    if (lengths[i] > INT64_MAX)
      in.fail(
          fmt::format("tensor {}: length {} of axis {} is too large", tensor.name, lengths[i], i));
    tensor.shape.append(static_cast<int64_t>(lengths[i]));
    is_empty |= lengths[i] == 0;
  }
  const uint64_t row = lengths.empty() ? 1 : lengths[0];
  if (row % type.elements != 0)
    in.fail(fmt::format("tensor {}: rows have {} elements, but {} uses blocks of {}", tensor.name,
                        row, type.name, type.elements));
  // Check for zero lengths first: they would hide an overflow of the others.
  if (is_empty) return;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const uint64_t factor = i == 0 ? lengths[0] / type.elements : lengths[i];
    if (blocks > (uint64_t{1} << 62) / type.bytes / type.elements / factor)
      in.fail(fmt::format("tensor {}: shape {} has more elements than a file can hold", tensor.name,
                          tensor.shape.text()));
    blocks *= factor;
  }
  tensor.bytes = blocks * type.bytes;
}

GgufTensor read_tensor(HeaderReader& in, std::string_view name) {
  GgufTensor tensor;
  tensor.name = name;
  const std::string field = fmt::format("tensor {}", name.substr(0, 200));
  const auto rank = in.read<uint32_t>(field);
  if (rank > kMostDimensions)
    in.fail(fmt::format("{} has {} dimensions; the maximum is {}", field, rank, kMostDimensions));
  uint64_t lengths[kMostDimensions];
  for (uint32_t i = 0; i < rank; ++i) lengths[i] = in.read<uint64_t>(field);
  tensor.gguf_type = in.read<uint32_t>(field);
  const GgufTensorType* const type = gguf_tensor_type(tensor.gguf_type);
  if (!type)
    in.fail(fmt::format("{} has type number {}, which is unknown; a newer Prism may support it",
                        field, tensor.gguf_type));
  if (type->element_type) tensor.type = *type->element_type;
  tensor.offset = in.read<uint64_t>(field);
  set_shape(in, tensor, std::span(lengths, rank), *type);
  return tensor;
}

// Converts offsets relative to the data into offsets relative to the file.
void place_tensors(HeaderReader& in, GgufHeader& header, bool is_size_known) {
  const uint64_t mask = header.alignment - 1;
  header.data_offset = (in.at() + mask) & ~mask;
  for (GgufTensor& tensor : header.tensors) {
    if ((tensor.offset & mask) != 0)
      in.fail(fmt::format("tensor {}: offset {} is not a multiple of the alignment {}", tensor.name,
                          tensor.offset, header.alignment));
    const uint64_t most = (uint64_t{1} << 63) - header.data_offset;
    if (tensor.offset > most || tensor.bytes > most - tensor.offset)
      in.fail(
          fmt::format("tensor {}: offset {} exceeds any file size", tensor.name, tensor.offset));
    tensor.offset += header.data_offset;
    if (is_size_known && tensor.bytes > 0 && tensor.offset + tensor.bytes > in.file_bytes())
      in.fail(
          fmt::format("tensor {} ends at byte {}, the file at {}; it is damaged or was not "
                      "downloaded completely",
                      tensor.name, tensor.offset + tensor.bytes, in.file_bytes()));
  }
}

void check_overlap(HeaderReader& in, const GgufHeader& header) {
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : header.tensors)
    if (tensor.bytes > 0) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
      in.fail(fmt::format("tensors {} and {} overlap at byte {}", order[i - 1]->name,
                          order[i]->name, order[i]->offset));
}

}  // namespace

GgufHeader parse_gguf_header(const std::string& name, std::span<const std::byte> bytes,
                             uint64_t file_bytes) {
  HeaderReader in(name, bytes, file_bytes);
  GgufHeader header;
  read_start(in, header);
  const auto tensors = in.read<uint64_t>("the number of tensors");
  const auto entries = in.read<uint64_t>("the number of metadata entries");
  in.need_entries(tensors, kLeastTensor, "the number of tensors");
  in.need_entries(entries, kLeastEntry, "the number of metadata entries");
  read_metadata(in, header, entries);
  header.tensors.reserve(std::min(tensors, kMostReserved));
  std::unordered_set<std::string_view> seen;
  for (uint64_t i = 0; i < tensors; ++i) {
    const std::string_view tensor =
        in.read_string(fmt::format("the name of tensor {} of {}", i + 1, tensors));
    if (!seen.insert(tensor).second)
      in.fail(fmt::format("tensor {} occurs twice in the file", tensor.substr(0, 200)));
    header.tensors.push_back(read_tensor(in, tensor));
  }
  place_tensors(in, header, file_bytes != 0);
  check_overlap(in, header);
  return header;
}

}  // namespace prism::llm
