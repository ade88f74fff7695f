// Maps the header of a GGUF file and changes it.
#include "support/models/gguf_mutator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

namespace prism::test {

namespace {

using Bytes = std::vector<std::byte>;
using Kind = GgufMap::Kind;

constexpr uint32_t kString = 8, kArray = 9, kFloat = 6, kDouble = 12;
constexpr size_t kCounts = 8, kHeaderStart = 24;  // offsets: the two counts, the first entry
constexpr size_t kMostFields = 1 << 16;

// The bytes of a scalar of each type; 0 for strings, arrays and unknown types.
size_t scalar_bytes(uint64_t type) {
  constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

// Walks the header and stops at the first field that does not fit.
class Mapper {
 public:
  explicit Mapper(std::span<const std::byte> file) : file_(file) {}

  GgufMap map() {
    at_ = 4;
    const auto version = field(Kind::number, 4), tensors = field(Kind::count, 8),
               entries = field(Kind::count, 8);
    if (!version || !tensors || !entries) return done();
    for (uint64_t i = 0; i < *entries && is_good_; ++i) {
      const size_t first = at_;
      entry();
      if (is_good_) map_.entries.push_back({first, at_});
    }
    for (uint64_t i = 0; i < *tensors && is_good_; ++i) {
      const size_t first = at_;
      info();
      if (is_good_) map_.infos.push_back({first, at_});
    }
    return done();
  }

 private:
  GgufMap done() {
    map_.header_end = at_;
    map_.data_at = std::min(file_.size(), (at_ + alignment_ - 1) / alignment_ * alignment_);
    return std::move(map_);
  }

  std::optional<uint64_t> field(Kind kind, size_t bytes) {
    if (!is_good_ || bytes > file_.size() - at_ || map_.fields.size() == kMostFields) {
      is_good_ = false;
      return std::nullopt;
    }
    uint64_t value = 0;
    std::memcpy(&value, file_.data() + at_, std::min(bytes, sizeof(value)));
    map_.fields.push_back({kind, at_, bytes});
    at_ += bytes;
    return value;
  }

  std::string text() {
    const auto length = field(Kind::length, 8);
    if (!length || *length > file_.size() - at_) {
      is_good_ = false;
      return {};
    }
    const std::string result(reinterpret_cast<const char*>(file_.data()) + at_, *length);
    if (*length > 0) field(Kind::text, *length);
    return result;
  }

  uint64_t value(uint64_t type, int nesting) {
    if (type == kString) {
      text();
    } else if (type == kArray && nesting < 4) {
      const auto element = field(Kind::type, 4), count = field(Kind::count, 8);
      if (!element || !count) return 0;
      for (uint64_t i = 0; i < *count && is_good_; ++i) value(*element, nesting + 1);
    } else if (const size_t bytes = scalar_bytes(type)) {
      const bool is_real = type == kFloat || type == kDouble;
      return field(is_real ? Kind::real : Kind::number, bytes).value_or(0);
    } else {
      is_good_ = false;
    }
    return 0;
  }

  void entry() {
    const std::string key = text();
    const auto type = field(Kind::type, 4);
    if (!type) return;
    const uint64_t found = value(*type, 0);
    if (key == "general.alignment" && found > 0 && found < 1 << 16) alignment_ = found;
  }

  void info() {
    text();
    const auto rank = field(Kind::rank, 4);
    for (uint64_t i = 0; i < std::min<uint64_t>(rank.value_or(0), 8); ++i) field(Kind::length, 8);
    field(Kind::tensor_type, 4);
    field(Kind::offset, 8);
  }

  std::span<const std::byte> file_;
  GgufMap map_;
  size_t at_ = 0, alignment_ = 32;
  bool is_good_ = true;
};

void put(Bytes& file, size_t at, uint64_t value, size_t bytes) {
  std::memcpy(file.data() + at, &value, std::min(bytes, sizeof(value)));
}

uint64_t get(const Bytes& file, size_t at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + at, bytes);
  return value;
}

// Replaces a part of the header and moves the data so that it stays aligned.
void replace_in_header(Bytes& file, const GgufMap& map, GgufMap::Range range, const Bytes& by) {
  const std::span<const std::byte> old(file);
  Bytes made(old.begin(), old.begin() + static_cast<ptrdiff_t>(range.at));
  made.insert(made.end(), by.begin(), by.end());
  const auto rest = old.subspan(range.end, map.header_end - range.end);
  made.insert(made.end(), rest.begin(), rest.end());
  made.resize((made.size() + 31) / 32 * 32);
  const auto data = old.subspan(map.data_at);
  made.insert(made.end(), data.begin(), data.end());
  file = std::move(made);
}

}  // namespace

GgufMap GgufMap::of(std::span<const std::byte> file) {
  if (file.size() < kHeaderStart) return {{}, {}, {}, file.size(), file.size()};
  return Mapper(file).map();
}

uint64_t GgufMutator::unusual_integer(size_t bytes) {
  const size_t bits = 8 * std::min<size_t>(bytes, 8);
  const uint64_t ones = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  switch (below(6)) {
    case 0:
      return below(4);
    case 1:
      return ones - below(4);  // -1 and the largest unsigned
    case 2:
      return (ones >> 1) + below(3);  // the largest and the smallest signed
    case 3:
      return (uint64_t{1} << below(bits)) + below(3) - 1;
    case 4:
      return 1 + below(300);
    default:
      return random_() & ones;
  }
}

uint64_t GgufMutator::unusual_real(size_t bytes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double values[] = {std::numeric_limits<double>::quiet_NaN(),
                           kInfinity,
                           -kInfinity,
                           0.0,
                           -0.0,
                           -1.0,
                           1e-45,
                           1e-30,
                           1e30,
                           -1e30,
                           3e38,
                           0.5,
                           1e300};
  const double value = values[below(std::size(values))];
  if (bytes == 8) return std::bit_cast<uint64_t>(value);
  return std::bit_cast<uint32_t>(
      static_cast<float>(std::abs(value) > 3.1e38 ? value * 1e30 : value));
}

void GgufMutator::mutate_field(Bytes& file, const GgufMap& map) {
  const GgufMap::Field field = map.fields[below(map.fields.size())];
  switch (field.kind) {
    case Kind::text: {
      Bytes text(file.begin() + static_cast<ptrdiff_t>(field.at),
                 file.begin() + static_cast<ptrdiff_t>(field.at + field.bytes));
      // The name of another field, or a changed length. The length before it follows, mostly.
      const GgufMap::Field& other = map.fields[below(map.fields.size())];
      if (other.kind == Kind::text && below(2) == 0)
        text.assign(file.begin() + static_cast<ptrdiff_t>(other.at),
                    file.begin() + static_cast<ptrdiff_t>(other.at + other.bytes));
      else if (below(2) == 0)
        text.resize(below(2 * text.size() + 2), std::byte{'a'});
      else
        text[below(text.size())] = static_cast<std::byte>(random_());
      if (below(8) != 0) put(file, field.at - 8, text.size(), 8);
      return replace_in_header(file, map, {field.at, field.at + field.bytes}, text);
    }
    case Kind::type:
      return put(file, field.at, below(14), 4);
    case Kind::tensor_type:
      return put(file, field.at, below(42), 4);
    case Kind::rank:
      return put(file, field.at, below(7), 4);
    case Kind::real:
      return put(file, field.at, unusual_real(field.bytes), field.bytes);
    case Kind::offset:
      return put(file, field.at,
                 below(2) == 0 ? unusual_integer(8) : 32 * below(file.size() / 32 + 2), 8);
    case Kind::count:
    case Kind::length: {  // slightly wrong, or very
      const uint64_t now = get(file, field.at, 8);
      return put(file, field.at, below(2) == 0 ? now + below(5) - 2 : unusual_integer(8), 8);
    }
    case Kind::number:
      return put(file, field.at, unusual_integer(field.bytes), field.bytes);
  }
}

// A hyperparameter: a number of the metadata becomes another that could be one.
void GgufMutator::mutate_number(Bytes& file, const GgufMap& map) {
  if (map.entries.empty()) return mutate_field(file, map);
  const GgufMap::Range entry = map.entries[below(map.entries.size())];
  std::vector<GgufMap::Field> numbers;
  for (const GgufMap::Field& each : map.fields)
    if (each.at >= entry.at && each.at < entry.end &&
        (each.kind == Kind::number || each.kind == Kind::real))
      numbers.push_back(each);
  if (numbers.empty()) return mutate_field(file, map);
  const GgufMap::Field field = numbers[below(numbers.size())];
  const uint64_t now = get(file, field.at, std::min<size_t>(field.bytes, 8));
  if (field.kind == Kind::real || below(4) == 0)
    return put(file, field.at,
               field.kind == Kind::real ? unusual_real(field.bytes) : unusual_integer(field.bytes),
               field.bytes);
  const uint64_t close[] = {0, 1, 2, now - 1, now + 1, now / 2, 2 * now, 3 * now, now << below(24)};
  put(file, field.at, close[below(std::size(close))], field.bytes);
}

void GgufMutator::mutate_list(Bytes& file, const GgufMap& map) {
  const bool of_tensors = below(2) == 0;
  const std::vector<GgufMap::Range>& list = of_tensors ? map.infos : map.entries;
  if (list.empty()) return mutate_bytes(file);
  const auto bytes_of = [&](GgufMap::Range range) {
    return Bytes(file.begin() + static_cast<ptrdiff_t>(range.at),
                 file.begin() + static_cast<ptrdiff_t>(range.end));
  };
  const GgufMap::Range one = list[below(list.size())], other = list[below(list.size())];
  const size_t count_at = kCounts + (of_tensors ? 0 : 8);
  const uint64_t count = get(file, count_at, 8);
  const size_t what = below(3);
  if (what == 0) {  // removed
    put(file, count_at, count - 1, 8);
    return replace_in_header(file, map, one, {});
  }
  if (what == 1) {  // in place of another
    return replace_in_header(file, map, one, bytes_of(other));
  }
  Bytes twice = bytes_of(one);  // repeated
  const Bytes again = bytes_of(other);
  twice.insert(twice.end(), again.begin(), again.end());
  put(file, count_at, count + 1, 8);
  replace_in_header(file, map, one, twice);
}

void GgufMutator::mutate_data(Bytes& file, const GgufMap& map) {
  if (map.data_at + 8 > file.size()) return mutate_bytes(file);
  // Halves first: they are the scales of blocks.
  const size_t width = below(2) == 0 ? 2 : 4, places = (file.size() - map.data_at) / width;
  constexpr uint64_t kHalves[] = {0x7e00, 0x7c00, 0xfc00, 0, 0x7bff, 0x8001};
  const size_t repeats = below(4) == 0 ? 1 + below(64) : 1;
  const size_t first = below(places);
  const uint64_t value = width == 2 ? kHalves[below(std::size(kHalves))] : unusual_real(4);
  for (size_t i = first; i < std::min(first + repeats, places); ++i)
    put(file, map.data_at + i * width, value, width);
}

void GgufMutator::mutate_bytes(Bytes& file) {
  if (file.empty()) {
    file.push_back(std::byte{'G'});
    return;
  }
  if (below(8) == 0) return file.resize(below(file.size()));
  file[below(file.size())] = static_cast<std::byte>(random_());
}

Bytes GgufMutator::mutate(std::span<const std::byte> from) {
  Bytes file(from.begin(), from.end());
  const size_t mutations = 1 + below(below(3) == 0 ? 4 : 1);
  for (size_t i = 0; i < mutations; ++i) {
    const GgufMap map = GgufMap::of(file);
    const size_t what = below(20);
    if (map.fields.empty() || what == 0)
      mutate_bytes(file);
    else if (what < 9)
      mutate_field(file, map);
    else if (what < 13)
      mutate_number(file, map);
    else if (what < 16)
      mutate_list(file, map);
    else
      mutate_data(file, map);
  }
  return file;
}

}  // namespace prism::test
