// Writes and reads files of the prompt cache.
#include "llm/generate/prompt_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/fast_hash.h"
#include "base/sha256.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMark = "PRISMKV1";
constexpr size_t kKeyDigits = 64, kHashDigits = 32;
constexpr size_t kHeadBytes = kMark.size() + 2 * kKeyDigits + 2 * sizeof(uint32_t);

[[noreturn]] void fail(const std::string& reason) {
  throw Error(ErrorCode::kCorruptFile, "prompt cache: the file " + reason);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  std::span<const std::byte> take(uint64_t count) {
    if (count > left_.size()) fail(fmt::format("ends {} bytes too early", count - left_.size()));
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  std::string text(size_t count) {
    const auto bytes = take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace

const std::string PromptFile::kNoParent = std::string(kKeyDigits, '0');

std::string PromptFile::key(const std::string& layout, const std::string& parent,
                            std::span<const int32_t> tokens) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(layout)));
  hash.update(std::as_bytes(std::span(parent)));
  hash.update(std::as_bytes(tokens));
  return hash.finish();
}

uint64_t PromptFile::bytes_of(uint64_t tokens, uint64_t layers, uint64_t layer_bytes) {
  return kHeadBytes + tokens * sizeof(int32_t) + layers * sizeof(uint64_t) + layer_bytes +
         kHashDigits;
}

std::vector<std::byte> PromptFile::text() const {
  std::vector<std::byte> bytes;
  uint64_t layer_bytes = 0;
  for (const auto& layer : layers) layer_bytes += layer.size();
  bytes.reserve(bytes_of(tokens.size(), layers.size(), layer_bytes));
  const auto add = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  const auto add_number = [&](auto number) { add(std::as_bytes(std::span(&number, 1))); };
  add(std::as_bytes(std::span(kMark)));
  add(std::as_bytes(std::span(layout)));
  add(std::as_bytes(std::span(parent)));
  add_number(static_cast<uint32_t>(tokens.size()));
  add_number(static_cast<uint32_t>(layers.size()));
  add(std::as_bytes(std::span(tokens)));
  for (const auto& layer : layers) add_number(static_cast<uint64_t>(layer.size()));
  for (const auto& layer : layers) add(layer);
  const std::string hash = fast_hash(bytes);
  add(std::as_bytes(std::span(hash)));
  return bytes;
}

PromptFile PromptFile::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes + kHashDigits)
    fail(
        fmt::format("has {} bytes; its head alone has {}", bytes.size(), kHeadBytes + kHashDigits));
  const std::span<const std::byte> content = bytes.first(bytes.size() - kHashDigits);
  Reader head(content);
  if (head.text(kMark.size()) != kMark) fail("does not begin with PRISMKV1");
  if (Reader(bytes.last(kHashDigits)).text(kHashDigits) != fast_hash(content))
    fail("does not have the checksum that it names");
  PromptFile file;
  file.layout = head.text(kKeyDigits);
  file.parent = head.text(kKeyDigits);
  const auto tokens = head.number<uint32_t>(), layers = head.number<uint32_t>();
  const auto ids = head.take(uint64_t{tokens} * sizeof(int32_t));
  file.tokens.resize(tokens);
  if (tokens > 0) std::memcpy(file.tokens.data(), ids.data(), ids.size());
  Reader sizes(head.take(uint64_t{layers} * sizeof(uint64_t)));
  for (uint32_t layer = 0; layer < layers; ++layer)
    file.layers.push_back(head.take(sizes.number<uint64_t>()));
  if (head.left() > 0) fail(fmt::format("has {} bytes after its end", head.left()));
  return file;
}

}  // namespace prism::llm
