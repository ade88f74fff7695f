// Sources of batches: rows of tensors, and windows of tokens.
#include <cstring>

#include <fmt/format.h>

#include "base/system/mapped_file.h"
#include "prism/error.h"
#include "prism/nn/data.h"
#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::nn {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

class TensorSource : public BatchSource {
 public:
  explicit TensorSource(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
    if (tensors_.empty()) fail("tensor_source: no tensors");
    for (Tensor& each : tensors_) {
      if (!each || each.ndim() < 1) fail("tensor_source: a tensor without rows");
      if (each.size(0) != tensors_[0].size(0))
        fail(fmt::format("tensor_source: {} rows beside {}; all tensors need as many", each.size(0),
                         tensors_[0].size(0)));
      if (each.dtype().is_block()) fail("tensor_source: block-quantised rows; dequantise() them");
      each = from_bytes(each.to_bytes(), each.shape(), each.dtype(), Device::cpu());
    }
  }

  int64_t size() const override { return tensors_[0].size(0); }

  std::vector<Tensor> batch(std::span<const int64_t> samples) const override {
    std::vector<Tensor> result;
    for (const Tensor& each : tensors_) {
      Shape shape = each.shape();
      shape[0] = static_cast<int64_t>(samples.size());
      const Storage& storage = *each.node()->storage[0];
      const size_t row = each.size(0) ? storage.bytes / static_cast<size_t>(each.size(0)) : 0;
      std::vector<std::byte> bytes(row * samples.size());
      for (size_t i = 0; i < samples.size(); ++i)
        std::memcpy(bytes.data() + i * row,
                    storage.host.get() + static_cast<size_t>(samples[i]) * row, row);
      result.push_back(from_bytes(bytes, shape, each.dtype(), Device::cpu()));
    }
    return result;
  }

 private:
  std::vector<Tensor> tensors_;
};

// Windows that follow one another; their last token is also the first of the next.
class TokenSource : public BatchSource {
 public:
  TokenSource(const char* name, std::shared_ptr<const std::byte> tokens, int64_t count, int width,
              int64_t length, int64_t stride)
      : tokens_(std::move(tokens)),
        count_(count),
        length_(length),
        stride_(stride == 0 ? length : stride),
        width_(width) {
    if (stride < 0)
      fail(fmt::format("{}: a window begins every {} tokens; give 0 or more", name, stride));
    if (length < 1) fail(fmt::format("{}: windows of {} tokens; give at least one", name, length));
    if (count <= length)
      fail(
          fmt::format("{}: {} tokens are too few for windows of {} and the token after; use "
                      "shorter windows or more data",
                      name, count, length));
  }

  int64_t size() const override { return (count_ - 1 - length_) / stride_ + 1; }

  std::vector<Tensor> batch(std::span<const int64_t> samples) const override {
    std::vector<int32_t> read, said;
    for (const int64_t sample : samples) {
      for (int64_t i = 0; i < length_; ++i) {
        read.push_back(token(sample * stride_ + i));
        said.push_back(token(sample * stride_ + i + 1));
      }
    }
    const Shape shape{static_cast<int64_t>(samples.size()), length_};
    return {from_vector(read, shape, Device::cpu()), from_vector(said, shape, Device::cpu())};
  }

 private:
  int32_t token(int64_t i) const {
    uint32_t value = 0;
    for (int byte = 0; byte < width_; ++byte)
      value |= static_cast<uint32_t>(tokens_.get()[i * width_ + byte]) << (8 * byte);
    return static_cast<int32_t>(value);
  }

  std::shared_ptr<const std::byte> tokens_;
  int64_t count_, length_, stride_;
  int width_;
};

}  // namespace

std::shared_ptr<BatchSource> tensor_source(std::vector<Tensor> tensors) {
  return std::make_shared<TensorSource>(std::move(tensors));
}

std::shared_ptr<BatchSource> token_source(std::vector<int32_t> tokens, int64_t length,
                                          int64_t stride) {
  const auto kept = std::make_shared<std::vector<int32_t>>(std::move(tokens));
  const std::shared_ptr<const std::byte> bytes(kept,
                                               reinterpret_cast<const std::byte*>(kept->data()));
  return std::make_shared<TokenSource>("token_source", bytes, static_cast<int64_t>(kept->size()), 4,
                                       length, stride);
}

std::shared_ptr<BatchSource> token_file_source(const std::string& path, int64_t length,
                                               int bytes_per_token, int64_t stride) {
  if (bytes_per_token != 2 && bytes_per_token != 4)
    fail(fmt::format("{}: tokens of {} bytes; they must have 2 or 4", path, bytes_per_token));
  const MappedFile file = map_file(path, MapAccess::read);
  if (file.bytes % static_cast<uint64_t>(bytes_per_token) != 0)
    fail(fmt::format("{}: {} bytes are no multiple of a token's {}", path, file.bytes,
                     bytes_per_token));
  return std::make_shared<TokenSource>(path.c_str(), file.data,
                                       static_cast<int64_t>(file.bytes) / bytes_per_token,
                                       bytes_per_token, length, stride);
}

}  // namespace prism::nn
