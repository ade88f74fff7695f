// Attention kernels on one device: time, bandwidth relative to the peak read bandwidth of the same
// run, operations per second.
//
// usage: gpu_attention_bench [--device D] [--json] [--tune] [--quick] [--chain] [--only WORD]
// --tune: try many tiles and splits, and mark the default; --only: lines whose name contains the
// word. Caches rotate over more than a gigabyte, so that none of them stays in L2; launches are
// recorded and replayed. Each call writes its own results, so that none depends on the previous one
// if the backend tracks that; --chain: all share one result buffer.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include "kernel_bench.h"
#include "ops/attention/attention_kernels.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/measure/case_run.h"

namespace prism::bench {
namespace {

using namespace ops;

// The layout of one sequence's cache, and its size.
struct CacheShape {
  AttentionParams params;
  uint64_t bytes = 0;
};

CacheShape cache_shape(const AttentionOptions& options, uint32_t kv_heads, uint32_t positions,
                       bool by_head) {
  const uint32_t dim = options.head_dim, heads = kv_heads * options.group;
  CacheShape shape;
  AttentionParams& p = shape.params;
  p.q_head = p.out_head = dim;
  p.q_row = p.out_row = heads * dim;
  p.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const bool q8 = options.cache.is_block();
  const uint32_t width = by_head ? dim : dim * kv_heads;
  const uint32_t row = q8 ? (width + width / 32 * 2 + 31) / 32 * 32 : width;
  p.kv_position = row;
  p.kv_head = by_head ? row * positions : dim;
  p.kv_slot = row * (options.block > 0 ? options.block : positions) * (by_head ? kv_heads : 1);
  p.factor_offset = width;
  p.factor_head = by_head ? p.kv_head : dim / 32 * 2;
  p.table_row = options.block > 0 ? positions / options.block : 0;
  shape.bytes = uint64_t{row} * positions * (by_head ? kv_heads : 1) *
                (q8 ? 1 : dtype_bytes(options.cache.plain()));
  return shape;
}

class Bench {
 public:
  Bench(const Device& device, const Options& options) : device_(device), options_(options) {
    const DeviceInfo& info = device.info();
    host_ = info.software || info.is_cpu;
    const uint64_t megabytes = host_ || options.quick ? 64 : 1536;
    // f16 values below 2: cache contents are finite.
    std::vector<uint16_t> halves(megabytes << 19);
    uint64_t state = 1;
    for (size_t i = 0; i < halves.size(); i += 4) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth
      for (size_t j = 0; j < 4; ++j)
        halves[i + j] = static_cast<uint16_t>(state >> (16 * j)) & 0xBBFF;
    }
    pool_ = device.upload(halves);
    q_ = device.upload(std::vector<uint16_t>(halves.begin(), halves.begin() + (16 << 20)));
    out_ = device.allocate(host_ ? 16 << 20 : 128 << 20);
    partial_ = device.allocate(host_ ? 16 << 20 : 128 << 20);
  }

  double read_rate() {
    const Program program = device_.compile(read_all());
    const auto count = static_cast<uint32_t>(pool_.bytes() / 16);
    Queue& queue = device_.queue();
    const auto read = [&] { queue.launch(program, (count + 1023) / 1024, {pool_, out_}, {count}); };
    read_ = static_cast<double>(pool_.bytes()) / seconds_each(queue, read, host_ ? 0.01 : 0.1);
    return read_;
  }

  // block: positions of a block, by position, in an order that a table lists; 0: one slot.
  void decode(ElementType cache, uint32_t kv_heads, uint32_t group, uint32_t keys, bool by_head,
              uint32_t block = 0) {
    AttentionOptions options;
    options.group = group;
    options.cache = cache;
    options.block = block;
    const CacheShape shape = cache_shape(options, kv_heads, keys, by_head);
    const Buffer spans = device_.upload(std::vector<uint32_t>{0, 1, keys, 0});
    std::vector<uint32_t> table(1);
    if (block > 0) table.resize(keys / block);
    for (uint32_t i = 0; i < table.size(); ++i)
      table[i] = (i * 7 + 3) % static_cast<uint32_t>(table.size());
    const Buffer blocks = device_.upload(table);
    struct Try {
      DecodeTile tile;
      uint32_t splits;
    };
    DecodeTile chosen = decode_tile_for(options, 1, device_.info().capabilities);
    const uint32_t chosen_splits = default_splits(options, chosen, kv_heads);
    chosen.merges = suits_merges(options, chosen, chosen_splits, device_.info().capabilities);
    std::vector<Try> tries = {{chosen, chosen_splits}};
    if (options_.tune) {
      if (device_.info().capabilities.device_fence) {
        chosen.merges = !chosen.merges;
        tries.push_back({chosen, chosen_splits});
      }
      DecodeTile by_lanes = decode_tile(options, 1);
      for (const uint32_t key_lanes : {by_lanes.key_lanes, by_lanes.key_lanes * 2})
        for (const uint32_t unroll : {1u, 2u, 3u, 4u})
          for (const uint32_t groups : {2u, 3u, 4u, 5u, 6u}) {
            DecodeTile tile = by_lanes;
            tile.key_lanes = key_lanes;
            tile.unroll = unroll;
            tries.push_back({tile, device_.info().compute_units * groups / kv_heads});
          }
      struct Shape {
        uint32_t warps, blocks, stages;
      };
      const std::vector<Shape> copied = {{4, 1, 3}, {4, 1, 4}, {4, 1, 5}, {4, 2, 2},
                                         {4, 2, 3}, {8, 1, 2}, {8, 1, 3}};
      const std::vector<Shape> unpacked = {{4, 1, 1}, {4, 1, 2}, {4, 2, 1}, {8, 1, 1}, {8, 1, 2}};
      for (const Shape& each : cache.is_block() ? unpacked : copied)
        for (const uint32_t groups : {1u, 2u, 3u}) {
          DecodeTile tile = fragment_decode_tile(options, 1);
          tile.lanes = 32 * each.warps;
          tile.unroll = each.blocks;
          tile.stages = each.stages;
          const uint32_t splits = device_.info().compute_units * groups / kv_heads;
          const uint64_t shared = attention_decode(options, tile).shared_bytes() + 1024;
          if (!device_.info().capabilities.fragment_layout || splits == 0 ||
              (keys > 64 && splits * tile.keys() > 2 * keys) ||
              groups * shared > 228 << 10)  // shared memory of a compute unit of an H100 or H200
            continue;
          tries.push_back({tile, splits});
        }
    }
    for (size_t i = 0; i < tries.size(); ++i) {
      const DecodeTile tile = tries[i].tile;
      const uint32_t splits = tries[i].splits;
      Line line;
      line.what = fmt::format("decode {} {} kv heads x{}, {} keys{}", cache.name(), kv_heads, group,
                              keys, by_head ? "" : ", by position");
      if (block > 0) line.what += fmt::format(", blocks of {}", block);
      line.note = tile.stages > 0 ? fmt::format("{} rows, {} lanes, {} keys per step, {} stages",
                                                tile.rows, tile.lanes, tile.keys(), tile.stages)
                                  : fmt::format("{} rows, {} lanes, {} lanes per key, {} keys each",
                                                tile.rows, tile.lanes, tile.key_lanes, tile.unroll);
      line.note += fmt::format(", {} splits{}{}", splits, tile.merges ? " in one launch" : "",
                               i == 0 ? "" : " (tried)");
      if (!wanted(line)) continue;
      const Program program = device_.compile(attention_decode(options, tile)),
                    merge = device_.compile(attention_merge(options, tile));
      const auto params = shape.params.values(options);
      std::vector<ParamValue> merge_params = {splits};
      merge_params.insert(merge_params.end(), params.begin(), params.end());
      const uint32_t calls = host_ ? 2 : 100;
      const uint64_t counter_bytes =
          ranged(4 * uint64_t{decode_counters(options, tile, kv_heads, 1)});
      const Buffer counters = device_.upload(std::vector<uint32_t>(counter_bytes / 4 * calls));
      line.seconds = time(shape.bytes, calls, [&](const Call& call) {
        const auto grid = decode_grid(options, tile, splits, kv_heads, 1);
        const BufferRange partial = share(partial_, call, calls), out = share(out_, call, calls),
                          counter(counters, (options_.chain ? 0 : call.number) * counter_bytes,
                                  counter_bytes);
        std::vector<BufferRange> buffers = {q_, call.k, call.v, spans};
        if (block > 0) buffers.emplace_back(blocks);
        buffers.push_back(partial);
        if (tile.merges) buffers.insert(buffers.end(), {counter, out});
        call.queue.launch(program, grid, buffers, params);
        if (tile.merges) return;
        call.queue.launch(merge, merge_grid(options, tile, kv_heads, 1),
                          std::vector<BufferRange>{partial, spans, out}, merge_params);
      });
      line.bytes = 2.0 * static_cast<double>(shape.bytes);
      line.operations = 4.0 * kv_heads * group * keys * options.head_dim;
      add(line);
    }
  }

  void prompt(uint32_t tokens, uint32_t kv_heads, uint32_t group, uint32_t dim, DType q_type) {
    AttentionOptions options;
    options.head_dim = dim;
    options.group = group;
    options.q_type = options.out_type = q_type;
    std::vector<PromptTile> tries = {prompt_tile(options)};
    if (options_.tune)
      for (const PromptTile& tile :
           {PromptTile{4, 2, 64, 2, false}, PromptTile{4, 2, 32, 2, false},
            PromptTile{4, 2, 32, 3, false}, PromptTile{4, 2, 64, 1, false},
            PromptTile{8, 1, 64, 2, true}, PromptTile{8, 1, 64, 2, false},
            PromptTile{4, 1, 64, 2, true}, PromptTile{4, 1, 64, 2, false},
            PromptTile{4, 1, 32, 2, true}, PromptTile{8, 1, 32, 3, true},
            PromptTile{8, 1, 128, 2, true}, PromptTile{8, 2, 64, 2, false}})
        tries.push_back(tile);
    const CacheShape shape = cache_shape(options, kv_heads, tokens, false);
    const Buffer spans = device_.upload(std::vector<uint32_t>{0, tokens, tokens, 0});
    const bool fragments = !device_.info().capabilities.fragments.empty();
    for (size_t i = 0; i < tries.size(); ++i) {
      const PromptTile& tile = tries[i];
      Line line;
      line.what = fmt::format("prompt {} tokens, {} kv heads x{} of {}, {}", tokens, kv_heads,
                              group, dim, dtype_name(q_type));
      line.note = fragments ? fmt::format("{} warps of {} blocks, {} keys, {} stages{}{}",
                                          tile.warps, tile.blocks, tile.keys, tile.stages,
                                          tile.q_in_registers ? ", q in registers" : "",
                                          i == 0 ? "" : " (tried)")
                            : "plain f32";
      if (!wanted(line)) continue;
      const PlainTile plain = plain_tile(options, device_.info().capabilities.shared_bytes);
      const uint32_t queries = fragments ? tile.queries() : plain.queries;
      try {
        const Program program = device_.compile(fragments ? attention_prompt(options, tile)
                                                          : attention_plain(options, plain));
        const auto params = shape.params.values(options);
        line.seconds = time(shape.bytes, host_ ? 1 : 20, [&](const Call& call) {
          call.queue.launch(program, {kv_heads * group, (tokens + queries - 1) / queries, 1},
                            std::vector<BufferRange>{q_, call.k, call.v, spans, out_}, params);
        });
      } catch (const Error& error) {
        if (i == 0) throw;
        std::cerr << line.note << ": " << error.what() << "\n";  // exceeds the device's registers
        continue;
      }
      line.bytes = 2.0 * static_cast<double>(shape.bytes);
      line.operations = 2.0 * tokens * (tokens + 1.0) * kv_heads * group * dim;
      add(line);
    }
  }

  void print_json() const {
    std::cout << fmt::format(
        "{{\"device\": \"{}\", \"name\": \"{}\", \"read_gb_s\": {:.1f}, \"lines\": [", device_.id(),
        device_.name(), read_ * 1e-9);
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      std::cout << fmt::format(
          "{}\n  {{\"what\": \"{}\", \"us\": {:.3f}, \"gb_s\": {:.1f}, \"share\": {:.4f}, "
          "\"tflop_s\": {:.3f}, \"note\": \"{}\"}}",
          i ? "," : "", line.what, line.seconds * 1e6, line.bytes / line.seconds * 1e-9,
          line.bytes / line.seconds / read_, line.operations / line.seconds * 1e-12, line.note);
    }
    std::cout << "\n]}\n";
  }
  bool host() const { return host_; }

 private:
  uint32_t default_splits(const AttentionOptions& options, const DecodeTile& tile,
                          uint32_t kv_heads) const {
    return decode_split_kv(options, tile, kv_heads, 1, device_.info().compute_units);
  }

  // One of the calls that are timed together, and its cache.
  struct Call {
    Queue& queue;
    uint32_t number;
    BufferRange k, v;
  };

  static uint64_t ranged(uint64_t bytes) {
    return (bytes + kRangeAlignment - 1) / kRangeAlignment * kRangeAlignment;
  }
  // A call's own range of a buffer.
  BufferRange share(const Buffer& of, const Call& call, uint32_t calls) const {
    const uint64_t bytes = of.bytes() / calls / kRangeAlignment * kRangeAlignment;
    return {of, (options_.chain ? 0 : call.number) * bytes, bytes};
  }

  // Seconds per call; each call uses another part of the pool.
  double time(uint64_t cache_bytes, uint32_t calls, const std::function<void(const Call&)>& call) {
    const uint64_t stride = ranged(cache_bytes);
    const uint64_t places = pool_.bytes() / stride;
    if (places < 2)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("a cache of {} bytes does not fit the bench's pool", cache_bytes));
    Queue& queue = device_.queue();
    uint64_t at = 0;
    const auto next = [&] { return BufferRange(pool_, at++ % places * stride, cache_bytes); };
    const CommandGraph recording = queue.record([&] {
      for (uint32_t i = 0; i < calls; ++i) {
        const BufferRange k = next();
        call({queue, i, k, next()});
      }
    });
    const auto replay = [&] { queue.replay(recording); };
    return seconds_each(queue, replay, host_ ? 0.001 : 0.03) / calls;
  }

  bool wanted(const Line& line) const {
    return options_.only.empty() || line.what.find(options_.only) != std::string::npos;
  }
  void add(const Line& line) {
    lines_.push_back(line);
    if (options_.json) return;
    std::cout << fmt::format("{:52} {:9.2f} us {:7.0f} GB/s {:5.1f}% {:8.2f} TFLOP/s  {}\n",
                             line.what, line.seconds * 1e6, line.bytes / line.seconds * 1e-9,
                             line.bytes / line.seconds / read_ * 100,
                             line.operations / line.seconds * 1e-12, line.note)
              << std::flush;
  }

  const Device& device_;
  const Options& options_;
  bool host_ = false;
  double read_ = 0;
  Buffer pool_, q_, out_, partial_;
  std::vector<Line> lines_;
};

int run(const Options& options) {
  const Device device = Device::named(options.device);
  std::cerr << fmt::format("{}: {}\n", device.id(), device.name());
  Bench bench(device, options);
  const double rate = bench.read_rate();
  if (!options.json) std::cout << fmt::format("reads {:.0f} GB/s\n", rate * 1e-9);
  const bool small = bench.host();
  const bool decodes = suits_decode(device.info().capabilities);
  const uint32_t keys = small ? 128 : 4096;
  if (decodes) {
    for (const ElementType cache : {ElementType(DType::f16), ElementType(BlockType::q8_0)})
      for (const auto& [kv_heads, group] :
           small ? std::vector<std::pair<uint32_t, uint32_t>>{{2, 2}}
                 : std::vector<std::pair<uint32_t, uint32_t>>{{32, 1}, {8, 4}})
        bench.decode(cache, kv_heads, group, keys, true);
    for (const uint32_t block :
         small ? std::vector<uint32_t>{0, 64} : std::vector<uint32_t>{0, 64, 128, 256})
      bench.decode(DType::f16, small ? 2 : 8, small ? 2 : 4, keys, false, block);
    if (options.tune && !small) {
      bench.decode(DType::f16, 32, 1, 64, true);
      bench.decode(BlockType::q8_0, 8, 4, 32768, true);
    }
    if (!options.tune && !small) {
      bench.decode(DType::f16, 32, 1, keys, false);
      bench.decode(DType::f16, 32, 1, keys, false, 128);
      bench.decode(DType::f16, 8, 8, keys, true);
      bench.decode(DType::f16, 8, 4, 512, true);
      bench.decode(DType::f16, 32, 1, 64, true);
      bench.decode(DType::f16, 32, 1, 512, true);
      bench.decode(DType::f16, 8, 4, 32768, true);
      bench.decode(BlockType::q8_0, 8, 4, 32768, false);
      bench.decode(DType::f16, 32, 1, 32768, true);
    }
  }
  const uint32_t tokens = small ? 32 : 2048;
  bench.prompt(tokens, small ? 1 : 32, 1, 128, DType::f16);
  if (!options.tune && !small) {
    bench.prompt(tokens, 8, 4, 128, DType::f32);
    bench.prompt(512, 32, 1, 128, DType::f16);
    bench.prompt(tokens, 32, 1, 64, DType::f16);
    bench.prompt(tokens, 16, 1, 256, DType::f16);
  }
  if (options.json) bench.print_json();
  return 0;
}

}  // namespace
}  // namespace prism::bench

int main(int count, char** words) {
  prism::bench::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--tune") {
      options.tune = true;
    } else if (word == "--quick") {
      options.quick = true;
    } else if (word == "--chain") {
      options.chain = true;
    } else if (word == "--device" && i + 1 < count) {
      options.device = words[++i];
    } else if (word == "--only" && i + 1 < count) {
      options.only = words[++i];
    } else {
      std::cerr << "usage: gpu_attention_bench [--device D] [--json] [--tune] [--quick] "
                   "[--chain] [--only WORD]\n";
      return 2;
    }
  }
  try {
    return prism::bench::run(options);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
