// The loader: the order of samples by seed and epoch, and a thread that prepares the next batch.
#include <algorithm>
#include <future>
#include <numeric>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/nn/data.h"

namespace prism::nn {

struct DataLoader::State {
  State(std::shared_ptr<BatchSource> from, const DataLoaderOptions& with)
      : source(std::move(from)), options(with) {
    const int64_t samples = source->size(), batch = options.batch;
    if (batch < 1 || (samples < batch && !options.keep_rest) || samples < 1) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("DataLoader: batches of {} from {} samples; use smaller batches, or "
                              "keep_rest",
                              batch, samples));
    }
    per_epoch = options.keep_rest ? (samples + batch - 1) / batch : samples / batch;
  }
  ~State() { forget(); }

  // Fisher-Yates with an engine whose numbers the standard fixes, so that every machine has the
  // same order.
  void shuffle(int64_t epoch) {
    if (epoch == shuffled_epoch) return;
    order.resize(static_cast<size_t>(source->size()));
    std::iota(order.begin(), order.end(), 0);
    if (options.shuffle) {
      std::mt19937_64 engine(options.seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(epoch + 1));
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[engine() % i]);
    }
    shuffled_epoch = epoch;
  }

  // Runs on the loader's thread, one call at a time.
  std::vector<Tensor> make(int64_t number) {
    shuffle(number / per_epoch);
    const auto first = static_cast<size_t>(number % per_epoch * options.batch);
    const size_t count = std::min(static_cast<size_t>(options.batch), order.size() - first);
    return source->batch(std::span(order).subspan(first, count));
  }

  void forget() {
    if (coming.valid()) coming.wait();
    coming = {};
  }

  std::shared_ptr<BatchSource> source;
  DataLoaderOptions options;
  int64_t per_epoch = 0, position = 0, shuffled_epoch = -1;
  std::vector<int64_t> order;
  std::future<std::vector<Tensor>> coming;  // the batch at position
};

DataLoader::DataLoader(std::shared_ptr<BatchSource> source, const DataLoaderOptions& options)
    : state_(std::make_unique<State>(std::move(source), options)) {}
DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;

int64_t DataLoader::batches_per_epoch() const { return state_->per_epoch; }
int64_t DataLoader::position() const { return state_->position; }

void DataLoader::seek(int64_t position) {
  if (position < 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("DataLoader: seek to {}; positions count from 0", position));
  state_->forget();
  state_->position = position;
}

std::vector<Tensor> DataLoader::next() {
  State& state = *state_;
  std::vector<Tensor> batch =
      state.coming.valid() ? state.coming.get() : state.make(state.position);
  ++state.position;
  if (state.options.prefetch) {
    try {
      state.coming = std::async(std::launch::async,
                                [&state, number = state.position] { return state.make(number); });
    } catch (const std::system_error&) {  // no thread to be had: the next call makes the batch
    }
  }
  const Device device = state.options.device ? state.options.device : default_device();
  for (Tensor& each : batch) each = each.to(device);
  return batch;
}

}  // namespace prism::nn
