// Data for training: files of common formats, and loaders of shuffled batches.
//
//   Tensor images = nn::load_idx("train-images-idx3-ubyte.gz");
//   Tensor labels = nn::load_idx("train-labels-idx1-ubyte.gz").astype(DType::i32);
//   nn::DataLoader loader(nn::tensor_source({images, labels}), {.batch = 128});
//   std::vector<Tensor> batch = loader.next();
//
// .npy files are read by prism::load.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::nn {

// Tensors on the CPU. Files may be packed by gzip. kCorruptFile names what is wrong with a file.
Tensor load_idx(const std::string& path);  // the format of MNIST: u8, i8, i16, i32, f32, f64
// Numbers separated by commas, semicolons, tabs or spaces, as f32 [rows, columns]. A first line
// without numbers is skipped.
Tensor load_csv(const std::string& path);
std::string load_text(const std::string& path);

// Samples that a loader draws from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t size() const = 0;  // the number of samples
  // A batch of these samples, on the CPU. Called from the loader's thread.
  virtual std::vector<Tensor> batch(std::span<const int64_t> samples) const = 0;
};
// The rows of tensors with equal first axes.
std::shared_ptr<BatchSource> tensor_source(std::vector<Tensor> tensors);
// Windows of `length` tokens and their successors, i32 [batch, length] each: the first is what a
// language model reads, the second what it should say. A window begins every `stride` tokens; 0:
// where the one before ends. With overlapping windows, a small text is learned by heart later.
std::shared_ptr<BatchSource> token_source(std::vector<int32_t> tokens, int64_t length,
                                          int64_t stride = 0);
// The same over a mapped file of plain little-endian numbers of 2 or 4 bytes.
std::shared_ptr<BatchSource> token_file_source(const std::string& path, int64_t length,
                                               int bytes_per_token = 2, int64_t stride = 0);

struct DataLoaderOptions {
  int64_t batch = 32;
  bool shuffle = true;     // anew for each epoch, by seed and epoch alone
  bool keep_rest = false;  // of an epoch: a smaller last batch
  uint64_t seed = 0;
  bool prefetch = true;  // a thread prepares the next batch
  Device device = {};    // of the batches; empty: default_device()
};

// An endless sequence of batches. The position alone determines the batches that follow.
class DataLoader {
 public:
  explicit DataLoader(std::shared_ptr<BatchSource> source, const DataLoaderOptions& options = {});
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;

  std::vector<Tensor> next();
  int64_t batches_per_epoch() const;
  int64_t position() const;     // batches given so far
  void seek(int64_t position);  // continues from there
  int64_t epoch() const { return position() / batches_per_epoch(); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::nn

#pragma GCC visibility pop
