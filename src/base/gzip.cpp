// Unpacks gzip files with zlib.
#include "base/gzip.h"

#include <algorithm>
#include <limits>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include "prism/error.h"

namespace prism {

namespace {

constexpr uint64_t kGrowth = uint64_t{1} << 20;  // bytes unpacked at a time

[[noreturn]] void corrupt(const std::string& name, const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, name + ": " + what);
}

struct Stream : z_stream {
  Stream() : z_stream{} {
    constexpr int kGzipOnly = 16;  // added to the size of the window: no other header is accepted
    if (inflateInit2(this, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::string gunzip(std::span<const std::byte> bytes, const std::string& name, uint64_t limit) {
  std::string content;
  Stream stream;
  // zlib only reads what next_in points to, and counts in 32 bits.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  uint64_t left = bytes.size();
  for (;;) {
    const auto given =
        static_cast<uInt>(std::min<uint64_t>(left, std::numeric_limits<uInt>::max()));
    const size_t before = content.size();
    content.resize(before + kGrowth);
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + before);
    stream.avail_out = static_cast<uInt>(kGrowth);
    const int status = inflate(&stream, Z_NO_FLUSH);
    left -= given - stream.avail_in;
    content.resize(before + kGrowth - stream.avail_out);
    if (content.size() > limit) corrupt(name, fmt::format("unpacks to more than {} bytes", limit));
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_STREAM_END) {
      if (left == 0) return content;
      inflateReset(&stream);  // another member
    } else if (status == Z_BUF_ERROR || (status == Z_OK && left == 0 && stream.avail_out > 0)) {
      corrupt(name, "ends in the middle of its packed data; is it truncated?");
    } else if (status != Z_OK) {
      corrupt(name, fmt::format("is not a valid gzip file: {}",
                                stream.msg ? stream.msg : "its header is damaged"));
    }
  }
}

}  // namespace prism
