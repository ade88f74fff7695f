// Decoding of block-quantised tensors on one device, against the device's copy in the same run, and
// on the host: conversion to the GPU layout, decoding, quantising.
//
// usage: block_decode_bench [--device D] [--quick] [--host]   (--host: the host part only)
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "base/types/gpu_block_layout.h"
#include "cpu/quantise/dequantise.h"
#include "cpu/quantise/quantise.h"
#include "ops/quantise/block_kernels.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::bench {
namespace {

std::vector<BlockType> all_types() {
  std::vector<BlockType> types;
  for (int t = 0; t < kBlockTypeCount; ++t) types.push_back(static_cast<BlockType>(t));
  return types;
}

// Random blocks whose f16 fields are finite.
std::vector<uint16_t> some_blocks(BlockType type, uint64_t elements) {
  std::vector<uint16_t> file(ElementType(type).row_bytes(elements) / 2 + 1);
  std::mt19937 random(1);
  for (uint16_t& half : file) half = static_cast<uint16_t>(random() & 0xbbff);
  return file;
}

double best_seconds(const std::function<void()>& work) {
  double best = HUGE_VAL;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void time_host(uint64_t rows, uint64_t columns) {
  ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()));
  fmt::print("host, {} threads, {} x {}\n", pool.threads(), rows, columns);
  fmt::print("  type    to planes GB/s  decode Melements/s  quantise Melements/s\n");
  std::vector<float> x(rows * columns), y(x.size());
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  for (const BlockType type : all_types()) {
    const GpuBlockLayout layout = gpu_block_layout(type, rows, columns);
    auto file = some_blocks(type, x.size());
    std::vector<uint8_t> planes(layout.bytes());
    const double bytes = static_cast<double>(rows * ElementType(type).row_bytes(columns));
    const double elements = static_cast<double>(x.size());
    const double lay =
        best_seconds([&] { to_gpu_layout(layout, file.data(), planes.data(), pool); });
    const double decode =
        best_seconds([&] { cpu::dequantise(type, file.data(), y.data(), y.size(), pool); });
    const uint64_t some = std::min<uint64_t>(rows, 64);
    std::string written = "-";
    if (cpu::can_quantise(type)) {
      const double seconds = best_seconds(
          [&] { cpu::quantise(type, x.data(), file.data(), some, columns, nullptr, pool); });
      written = fmt::format("{:.1f}", static_cast<double>(some * columns) / seconds / 1e6);
    }
    fmt::print("  {:<7} {:>14.1f}  {:>18.0f}  {:>20}\n", block_info(type).name, bytes / lay / 1e9,
               elements / decode / 1e6, written);
  }
}

// Whether row r from the device equals the host's result.
bool right(BlockType type, const std::vector<uint16_t>& file, uint64_t columns, uint64_t r,
           const std::vector<float>& found) {
  std::vector<float> row(columns);
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  cpu::dequantise(type, bytes + r * ElementType(type).row_bytes(columns), row.data(), columns);
  for (uint64_t c = 0; c < columns; ++c)
    if (!(row[c] == found[r * columns + c])) return false;
  return true;
}

void time_device(const Device& device, uint64_t rows, uint64_t columns) {
  Queue& queue = device.queue();
  const double copied = [&] {
    const uint64_t bytes = rows * columns * 4;
    const Buffer from = device.allocate(bytes), to = device.allocate(bytes);
    const Program program = device.compile(kernels::copy_words());
    const auto count = static_cast<uint32_t>(bytes / 16);
    const double seconds = seconds_each(queue, [&] {
      queue.launch(program, (count + 255) / 256, {from, to}, {count});
    });
    return 2.0 * static_cast<double>(bytes) / seconds;
  }();
  fmt::print("{} ({}), {} x {}; copy {:.0f} GB/s\n", device.name(), device.id(), rows, columns,
             copied / 1e9);
  fmt::print("  type    result      ms    GB/s  of copy\n");
  for (const BlockType type : all_types()) {
    const GpuBlockLayout layout = gpu_block_layout(type, rows, columns);
    const auto file = some_blocks(type, rows * columns);
    std::vector<uint8_t> bytes(layout.bytes());
    to_gpu_layout(layout, file.data(), bytes.data());
    const Buffer planes = device.upload(bytes);
    const ops::BlockLaunch launch = ops::dequantise_gpu_blocks_launch(layout);
    const std::vector<ParamValue> params(launch.params.begin(), launch.params.end());
    for (const DType to : {DType::f16, DType::f32}) {
      const Buffer y = device.allocate(rows * columns * dtype_bytes(to));
      const Program program = device.compile(ops::dequantise_gpu_blocks(type, to));
      const std::vector<Buffer> buffers = {planes, y};
      const double seconds = seconds_each(queue, [&] {
        queue.launch(program, launch.groups, std::span<const Buffer>(buffers), params);
      });
      const double rate = static_cast<double>(layout.bytes() + y.bytes()) / seconds;
      std::string note;
      if (to == DType::f32) {
        const auto found = device.download<float>(y);
        for (const uint64_t r : {uint64_t{0}, rows / 2, rows - 1})
          if (!right(type, file, columns, r, found)) note = "  WRONG";
      }
      fmt::print("  {:<7} {:<6} {:>7.3f} {:>7.0f}  {:>6.0f}%{}\n", block_info(type).name,
                 dtype_name(to), seconds * 1e3, rate / 1e9, 100 * rate / copied, note);
    }
  }
}

int run(int count, char** arguments) {
  std::string device = "auto";
  bool quick = false, host_only = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--device" && i + 1 < count)
      device = arguments[++i];
    else if (word == "--quick")
      quick = true;
    else if (word == "--host")
      host_only = true;
    else
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("block_decode_bench: unknown option {}; valid options: --device D, --quick, "
                      "--host",
                      word));
  }
  if (!host_only) time_device(Device::named(device), quick ? 256 : 8192, quick ? 1024 : 8192);
  time_host(quick ? 64 : 2048, quick ? 1024 : 4096);
  return 0;
}

}  // namespace
}  // namespace prism::bench

int main(int count, char** arguments) {
  try {
    return prism::bench::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
