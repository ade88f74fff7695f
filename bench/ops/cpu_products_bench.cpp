// Products with block-quantised weights on the CPU: one activation row relative to the read
// bandwidth of the same threads in the same rounds, and many rows in GFLOP/s.
//
// usage: cpu_products_bench [--threads N] [--type NAME] [--set NAME] [--rows N] [--seconds S]
// [--json]
// --type: one block type, or all (default q4_k and q8_0); --set: an instruction set as listed
// (default: the best); --rows: activation rows of the second part (default 128); --seconds: per
// line.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/types/block_formats.h"
#include "cpu/products/quantised_product.h"
#include "prism/error.h"

namespace prism::cpu {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<BlockType> types = {BlockType::q4_k, BlockType::q8_0};
  const QuantisedKernels* kernels = &best_quantised_kernels();
  uint64_t rows = 128;
  double seconds = 1;
  bool json = false;
};

struct Shape {
  uint64_t rows, k;
};
// The products of a 7B model.
constexpr Shape kShapes[] = {{4096, 4096}, {11008, 4096}, {4096, 11008}, {32000, 4096}};

struct Times {
  std::vector<double> all;
  void add(double seconds) { all.push_back(seconds); }
  double best() const { return *std::min_element(all.begin(), all.end()); }
  double median() {
    std::nth_element(all.begin(), all.begin() + static_cast<long>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }
};

template <class Function>
double time_of(const Function& function) {
  const auto start = Clock::now();
  function();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Random bytes with small f16 fields, so that no result overflows; larger than the caches and read
// in pieces, so that weights come from memory as they do in a model.
struct Weights {
  explicit Weights(BlockType type, Shape shape)
      : bytes(ElementType(type).row_bytes(shape.k) * shape.rows),
        copies(std::max<uint64_t>(1, (uint64_t{384} << 20) / bytes)),
        memory(new uint64_t[(copies * bytes + 7) / 8]) {
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < (copies * bytes + 7) / 8; ++i)
      memory[i] = random() & 0x1FFF1FFF1FFF1FFFull;
  }
  const uint8_t* next() {
    turn = (turn + 1) % copies;
    return reinterpret_cast<const uint8_t*>(memory.get()) + turn * bytes;
  }
  uint64_t bytes, copies, turn = 0;
  std::unique_ptr<uint64_t[]> memory;
};

// The plain sum loop: each thread adds up the words of its share.
uint64_t read_all(ThreadPool& pool, const uint8_t* from, uint64_t bytes) {
  typedef uint64_t Words __attribute__((vector_size(64)));
  std::atomic<uint64_t> total{0};
  constexpr uint64_t kPiece = 128 << 10;
  pool.parallel_for((bytes + kPiece - 1) / kPiece, 1, [&](uint64_t first, uint64_t) {
    const uint8_t* at = from + first * kPiece;
    const uint64_t count = std::min(kPiece, bytes - first * kPiece) / 256;
    Words sums[4] = {};
    for (uint64_t i = 0; i < count; ++i) {
      for (int j = 0; j < 4; ++j) {
        Words words;
        std::memcpy(&words, at + 256 * i + 64 * static_cast<uint64_t>(j), 64);
        sums[j] += words;
      }
    }
    const Words all = sums[0] + sums[1] + sums[2] + sums[3];
    total += all[0] + all[1] + all[2] + all[3] + all[4] + all[5] + all[6] + all[7];
  });
  return total;
}

void measure(ThreadPool& pool, const Options& options, BlockType type, Shape shape, uint64_t x_rows,
             std::vector<std::string>& lines) {
  Weights weights(type, shape);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(x_rows * shape.k), y(x_rows * shape.rows);
  for (float& value : x) value = normal(random);
  QuantisedActivations rounded;
  Times product, reading;
  uint64_t sums = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  while (Clock::now() < end || product.all.size() < 3) {
    ThreadPool::Busy busy(pool);
    // Each reads what the other has just evicted from the caches.
    if (x_rows == 1) {
      const uint8_t* from = weights.next();
      reading.add(time_of([&] { sums += read_all(pool, from, weights.bytes); }));
    }
    const QuantisedWeights w{type, weights.next(), shape.rows, shape.k};
    product.add(time_of([&] {
      quantise_activations(pool, type, x.data(), x_rows, shape.k, shape.k, rounded);
      quantised_product_with(*options.kernels, pool, w, rounded, y.data(), shape.rows);
    }));
  }
  const double best = product.best(), bytes = static_cast<double>(weights.bytes);
  const double operations = 2.0 * static_cast<double>(shape.rows * shape.k * x_rows);
  const double gbs = bytes / best * 1e-9, gflops = operations / best * 1e-9;
  const double read_gbs = x_rows == 1 ? bytes / reading.best() * 1e-9 : 0;
  if (options.json) {
    lines.push_back(
        fmt::format("{{\"type\": \"{}\", \"rows\": {}, \"k\": {}, \"x_rows\": {}, \"set\": \"{}\", "
                    "\"threads\": {}, \"ms\": {:.4f}, \"median_ms\": {:.4f}, \"gb_per_s\": {:.3f}, "
                    "\"gflop_per_s\": {:.2f}, \"read_gb_per_s\": {:.3f}, \"share\": {:.4f}}}",
                    block_info(type).name, shape.rows, shape.k, x_rows, options.kernels->name,
                    options.threads, best * 1e3, product.median() * 1e3, gbs, gflops, read_gbs,
                    read_gbs > 0 ? gbs / read_gbs : 0.0));
    return;
  }
  std::cout << fmt::format(
      "{:7} {:5} x {:5}, {:3} rows {:9.3f} ms (median {:.3f}) {:7.2f} GB/s "
      "{:7.1f} GFLOP/s",
      block_info(type).name, shape.rows, shape.k, x_rows, best * 1e3, product.median() * 1e3, gbs,
      gflops);
  if (read_gbs > 0)
    std::cout << fmt::format("; reading {:.2f} GB/s: {:.0f}%", read_gbs, gbs / read_gbs * 100);
  std::cout << (sums == 1 ? " " : "") << std::endl;
}

std::optional<BlockType> type_named(const std::string& name) {
  for (int i = 0; i < kBlockTypeCount; ++i)
    if (name == block_info(static_cast<BlockType>(i)).name) return static_cast<BlockType>(i);
  return std::nullopt;
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == count)
      throw Error(ErrorCode::kInvalidArgument, word + ": unknown, or its value is missing");
    const std::string value = words[++i];
    if (word == "--threads") {
      options.threads = static_cast<uint32_t>(std::max(1, std::atoi(value.c_str())));
    } else if (word == "--rows") {
      options.rows = static_cast<uint64_t>(std::max(1, std::atoi(value.c_str())));
    } else if (word == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else if (word == "--type" && value == "all") {
      options.types.clear();
      for (int t = 0; t < kBlockTypeCount; ++t) options.types.push_back(static_cast<BlockType>(t));
    } else if (word == "--type" && type_named(value)) {
      options.types = {*type_named(value)};
    } else if (word == "--set") {
      options.kernels = nullptr;
      std::string known;
      for (const QuantisedKernels* kernels : all_quantised_kernels()) {
        if (!kernels->supported()) continue;
        if (value == kernels->name) options.kernels = kernels;
        known += std::string(known.empty() ? "" : ", ") + kernels->name;
      }
      if (!options.kernels)
        throw Error(ErrorCode::kInvalidArgument, "--set " + value + ": this machine has " + known);
    } else {
      throw Error(ErrorCode::kInvalidArgument, word + " " + value + ": not understood");
    }
  }
  return options;
}

int run(const Options& options) {
  ThreadPool pool(options.threads);
  std::vector<std::string> lines;
  if (!options.json)
    std::cout << fmt::format("{}, {} threads\n", options.kernels->name, options.threads);
  for (const uint64_t x_rows : {uint64_t{1}, options.rows})
    for (const BlockType type : options.types)
      for (const Shape shape : kShapes) measure(pool, options, type, shape, x_rows, lines);
  if (options.json) std::cout << fmt::format("[{}]\n", fmt::join(lines, ",\n "));
  return 0;
}

}  // namespace
}  // namespace prism::cpu

int main(int count, char** words) {
  try {
    return prism::cpu::run(prism::cpu::read_options(count, words));
  } catch (const prism::Error& error) {
    std::cerr << "cpu_products_bench: " << error.what() << std::endl;
    return 2;
  }
}
