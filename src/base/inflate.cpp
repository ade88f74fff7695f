// Inflate: Huffman codes and back references of RFC 1951, inside the frame of RFC 1952.
#include "base/inflate.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

namespace {

constexpr int kMostBits = 15, kLengthCodes = 288, kDistanceCodes = 30;

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& name, uint64_t limit)
      : bytes_(bytes), name_(name), limit_(limit) {}

  std::string unpack() {
    std::string all;
    do {
      read_header();
      out_.clear();
      while (!read_block()) {
      }
      bit_ = 0;  // the rest of this byte is padding
      const uint32_t sum = word(), size = word();
      if (sum != crc32(out_)) fail("its checksum is wrong");
      if (size != static_cast<uint32_t>(out_.size())) fail("its length is wrong");
      all += out_;
    } while (at_ < bytes_.size());
    return all;
  }

 private:
  // Codes of one alphabet: how many codes each length has, and the symbols in the order of codes.
  struct Codes {
    std::array<uint16_t, kMostBits + 1> counts = {};
    std::vector<uint16_t> symbols;
  };

  [[noreturn]] void fail(const char* what) const {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: not a whole gzip file: {}; fetch it again", name_, what));
  }

  uint8_t byte() {
    if (at_ >= bytes_.size()) fail("it ends too early");
    return static_cast<uint8_t>(bytes_[at_++]);
  }

  uint32_t word() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value |= static_cast<uint32_t>(byte()) << (8 * i);
    return value;
  }

  uint32_t bits(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) {
      if (bit_ == 0) held_ = byte();
      value |= static_cast<uint32_t>(held_ >> bit_ & 1) << i;
      bit_ = (bit_ + 1) % 8;
    }
    return value;
  }

  void read_header() {
    if (byte() != 0x1f || byte() != 0x8b || byte() != 8) fail("it does not begin as one");
    const uint8_t flags = byte();
    for (int i = 0; i < 6; ++i) byte();  // time, level, system
    if (flags & 4) {
      const int low = byte(), extra = low | byte() << 8;
      for (int i = 0; i < extra; ++i) byte();
    }
    for (const int text : {8, 16})  // name and comment
      if (flags & text)
        while (byte() != 0) {
        }
    if (flags & 2) byte(), byte();
  }

  Codes codes_of(std::span<const uint8_t> lengths) const {
    Codes codes;
    for (const uint8_t length : lengths) ++codes.counts[length];
    codes.counts[0] = 0;
    int left = 1;
    std::array<uint16_t, kMostBits + 2> first = {};
    for (size_t length = 1; length <= kMostBits; ++length) {
      left = left * 2 - codes.counts[length];
      if (left < 0) fail("a code is given twice");
      first[length + 1] = static_cast<uint16_t>(first[length] + codes.counts[length]);
    }
    codes.symbols.resize(lengths.size());
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol] != 0)
        codes.symbols[first[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
    return codes;
  }

  int decode(const Codes& codes) {
    int code = 0, first = 0, index = 0;
    for (size_t length = 1; length <= kMostBits; ++length) {
      code |= static_cast<int>(bits(1));
      const int count = codes.counts[length];
      if (code - count < first) return codes.symbols[static_cast<size_t>(index + (code - first))];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    fail("an unknown code");
  }

  void add(char value) {
    if (out_.size() >= limit_) fail("it unpacks to more than is allowed");
    out_ += value;
  }

  bool read_block() {  // returns whether it is the last
    const bool last = bits(1) != 0;
    switch (bits(2)) {
      case 0:
        read_stored();
        break;
      case 1:
        read_coded(fixed_lengths(), fixed_distances());
        break;
      case 2:
        read_dynamic();
        break;
      default:
        fail("an unknown kind of block");
    }
    return last;
  }

  void read_stored() {
    bit_ = 0;
    const int low = byte(), length = low | byte() << 8;
    const int low_check = byte(), check = low_check | byte() << 8;
    if ((length ^ 0xffff) != check) fail("a stored block has no valid length");
    for (int i = 0; i < length; ++i) add(static_cast<char>(byte()));
  }

  Codes fixed_lengths() const {
    std::array<uint8_t, kLengthCodes> lengths = {};
    for (size_t i = 0; i < kLengthCodes; ++i)
      lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    return codes_of(lengths);
  }
  Codes fixed_distances() const {
    std::array<uint8_t, kDistanceCodes> lengths = {};
    lengths.fill(5);
    return codes_of(lengths);
  }

  void read_dynamic() {
    const size_t lengths = bits(5) + 257, distances = bits(5) + 1, count = bits(4) + 4;
    if (lengths > 286 || distances > kDistanceCodes) fail("too many codes");
    constexpr std::array<uint8_t, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<uint8_t, 19> small = {};
    for (size_t i = 0; i < count; ++i) small[kOrder[i]] = static_cast<uint8_t>(bits(3));
    const Codes codes = codes_of(small);
    std::vector<uint8_t> all;
    while (all.size() < lengths + distances) {
      const int symbol = decode(codes);
      if (symbol < 16) {
        all.push_back(static_cast<uint8_t>(symbol));
        continue;
      }
      if (symbol == 16 && all.empty()) fail("a length without one before it");
      const uint8_t repeated = symbol == 16 ? all.back() : uint8_t{0};
      const size_t times = symbol == 16 ? 3 + bits(2) : symbol == 17 ? 3 + bits(3) : 11 + bits(7);
      if (all.size() + times > lengths + distances) fail("too many lengths");
      all.insert(all.end(), times, repeated);
    }
    const std::span<const uint8_t> view(all);
    read_coded(codes_of(view.first(lengths)), codes_of(view.subspan(lengths)));
  }

  void read_coded(const Codes& lengths, const Codes& distances) {
    constexpr std::array<uint16_t, 29> kLength = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                  15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                  67, 83, 99, 115, 131, 163, 195, 227, 258};
    constexpr std::array<uint8_t, 29> kLengthBits = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                     2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    constexpr std::array<uint16_t, 30> kDistance = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
      const int symbol = decode(lengths);
      if (symbol == 256) return;
      if (symbol < 256) {
        add(static_cast<char>(symbol));
        continue;
      }
      if (symbol > 285) fail("an unknown length");
      const auto which = static_cast<size_t>(symbol - 257);
      const size_t length = kLength[which] + bits(kLengthBits[which]);
      const auto far = static_cast<size_t>(decode(distances));
      if (far >= kDistance.size()) fail("an unknown distance");
      const size_t distance = kDistance[far] + bits(far < 4 ? 0 : static_cast<int>(far) / 2 - 1);
      if (distance > out_.size()) fail("a reference before its beginning");
      for (size_t i = 0; i < length; ++i) add(out_[out_.size() - distance]);
    }
  }

  static uint32_t crc32(const std::string& text) {
    static const std::array<uint32_t, 256> table = [] {
      std::array<uint32_t, 256> made = {};
      for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        made[i] = value;
      }
      return made;
    }();
    uint32_t sum = ~0u;
    for (const char each : text) sum = table[(sum ^ static_cast<uint8_t>(each)) & 255] ^ sum >> 8;
    return ~sum;
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  uint64_t limit_;
  size_t at_ = 0;
  uint8_t held_ = 0;
  int bit_ = 0;
  std::string out_;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::string gunzip(std::span<const std::byte> bytes, const std::string& name, uint64_t limit) {
  return Inflater(bytes, name, limit).unpack();
}

}  // namespace prism
