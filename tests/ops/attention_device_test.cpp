// Tests the attention kernels on the checked interpreter and on every device found, against a
// float64 reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "ir/interpreter/interpreter.h"
#include "ops/attention/attention_split_kv.h"
#include "ops/products/product_kernels.h"
#include "prism/device.h"
#include "runtime/driver.h"
#include "support/ops/attention_case.h"
#include "support/seed.h"

namespace prism {
namespace {

using namespace ops;
using test::AttentionCase;
using test::AttentionSequence;
using Bytes = std::vector<std::byte>;

// Error bounds for values up to 2; with fragments q, the weights and the products' inputs are
// rounded to f16.
constexpr double kFragmentBound = 6e-3, kPlainBound = 5e-5, kHalfBound = 2e-3;

// A place to run kernels: the checked interpreter, or a device.
struct Place {
  std::shared_ptr<DeviceDriver> driver;  // none: the interpreter
  std::string name() const { return driver ? driver->info().id : "interpreter"; }
  bool fences() const { return !driver || driver->info().capabilities.device_fence; }

  // Returns all buffers after several launches; the last buffer is reset before each.
  std::vector<Bytes> run_all(const ir::Kernel& kernel, std::array<uint32_t, 3> groups,
                             std::vector<Bytes> buffers, const std::vector<ParamValue>& params,
                             int times = 1) const {
    const Bytes last = buffers.back();
    if (!driver) {
      std::vector<uint32_t> words;
      for (const ParamValue& param : params) words.push_back(param.bits);
      for (int i = 0; i < times; ++i) {
        buffers.back() = last;
        std::vector<ir::HostBuffer> views;
        for (Bytes& bytes : buffers) views.push_back({bytes.data(), bytes.size()});
        ir::interpret(kernel, groups, views, words);
      }
      return buffers;
    }
    const Device device(driver, "");
    const Program program = device.compile(kernel);
    std::vector<Buffer> uploaded;
    for (const Bytes& bytes : buffers) uploaded.push_back(device.upload(bytes));
    for (int i = 0; i < times; ++i) {
      device.queue().write(uploaded.back(), last);
      device.queue().launch(program, groups, uploaded, params);
    }
    for (size_t i = 0; i < buffers.size(); ++i)
      buffers[i] = device.download<std::byte>(uploaded[i]);
    return buffers;
  }
  // Returns the last buffer after the launch.
  Bytes run(const ir::Kernel& kernel, std::array<uint32_t, 3> groups,
            const std::vector<Bytes>& buffers, const std::vector<ParamValue>& params) const {
    return run_all(kernel, groups, buffers, params).back();
  }
};

Bytes poisoned_partial(const AttentionCase& one, uint32_t splits) {
  const uint64_t elements = partial_elements(one.options, splits, one.kv_heads, one.rows);
  return Bytes(std::max<uint64_t>(elements, 1) * 4, std::byte{0xFF});
}

// Runs a launch whose last groups merge, repeatedly with the counters that it left. partial: if
// given, receives the partial results.
Bytes run_merging(const Place& place, const AttentionCase& one, const DecodeTile& tile,
                  uint32_t splits, Bytes* partial = nullptr) {
  const uint32_t sequences = static_cast<uint32_t>(one.sequences.size());
  std::vector<Bytes> buffers = one.inputs(true);
  buffers.push_back(poisoned_partial(one, splits));
  const Bytes zeros(decode_counters(one.options, tile, one.kv_heads, sequences) * 4);
  buffers.push_back(zeros);
  buffers.push_back(one.out);
  const std::vector<Bytes> found =
      place.run_all(attention_decode(one.options, tile),
                    decode_grid(one.options, tile, splits, one.kv_heads, sequences), buffers,
                    one.params.values(one.options), 3);
  EXPECT_TRUE(found[found.size() - 2] == zeros) << "counters";
  if (partial) *partial = found[found.size() - 3];
  return found.back();
}

Bytes run_decode(const Place& place, const AttentionCase& one, const DecodeTile& tile,
                 uint32_t splits) {
  if (tile.merges) return run_merging(place, one, tile, splits);
  const uint32_t sequences = static_cast<uint32_t>(one.sequences.size());
  std::vector<Bytes> buffers = one.inputs(tile.direct);
  const auto grid = decode_grid(one.options, tile, splits, one.kv_heads, sequences);
  const std::vector<ParamValue> params = one.params.values(one.options);
  const ir::Kernel decode = attention_decode(one.options, tile);
  if (tile.direct) {
    buffers.push_back(one.out);
    return place.run(decode, grid, buffers, params);
  }
  buffers.push_back(poisoned_partial(one, splits));
  std::vector<Bytes> merged = {place.run(decode, grid, buffers, params), one.spans};
  if (one.options.sinks) merged.push_back(one.sinks);
  merged.push_back(one.out);
  std::vector<ParamValue> all = {splits};
  all.insert(all.end(), params.begin(), params.end());
  return place.run(attention_merge(one.options, tile),
                   merge_grid(one.options, tile, one.kv_heads, sequences), merged, all);
}

// The ways to merge splits on this place: a second launch, and the last group.
std::vector<DecodeTile> ways_of(const Place& place, const AttentionCase& one, DecodeTile tile) {
  std::vector<DecodeTile> ways = {tile};
  tile.merges = true;
  const bool fits = !one.options.mask || !one.options.sinks;  // within the buffers that every
                                                              // device has
  if (!tile.direct && place.fences() && fits) ways.push_back(tile);
  return ways;
}

// Rows whose keys are split must have the same bits both ways.
bool same_where_shared(const AttentionCase& one, const DecodeTile& tile, const Bytes& a,
                       const Bytes& b) {
  const size_t row_bytes = a.size() / (one.rows + 1);
  size_t row = 0;
  for (const AttentionSequence& each : one.sequences) {
    const bool shared = each.keys + 1 > keys_alone(tile) + each.queries && !one.options.window;
    for (uint32_t i = 0; i < each.queries; ++i, ++row)
      if (shared && !std::equal(a.begin() + row * row_bytes, a.begin() + (row + 1) * row_bytes,
                                b.begin() + row * row_bytes))
        return false;
  }
  return true;
}

// Returns an empty string if every way is within the bound of the reference.
std::string decode_error(const Place& place, const AttentionCase& one, const DecodeTile& tile,
                         uint32_t splits, double bound) {
  std::vector<Bytes> found;
  for (const DecodeTile& way : ways_of(place, one, tile)) {
    found.push_back(run_decode(place, one, way, splits));
    const std::string error = compare(one, found.back(), bound);
    if (!error.empty()) return error + (way.merges ? ", merged by the last group" : "");
  }
  return same_where_shared(one, tile, found.front(), found.back())
             ? ""
             : "the last group merges to other bits";
}

Bytes run_tiles(const Place& place, const AttentionCase& one, const ir::Kernel& kernel,
                uint32_t tile_queries) {
  std::vector<Bytes> buffers = one.inputs(true);
  buffers.push_back(one.out);
  const std::array<uint32_t, 3> grid = {one.heads(),
                                        (one.most_queries + tile_queries - 1) / tile_queries,
                                        static_cast<uint32_t>(one.sequences.size())};
  return place.run(kernel, grid, buffers, one.params.values(one.options));
}

AttentionOptions options_of(uint32_t dim, uint32_t group, ElementType cache) {
  AttentionOptions options;
  options.head_dim = dim;
  options.group = group;
  options.cache = cache;
  return options;
}

class Attention : public ::testing::TestWithParam<Place> {
 protected:
  uint64_t seed = test_seed();
  void SetUp() override { std::cout << GetParam().name() << ", seed " << seed << "\n"; }
  // Software devices take minutes to compile kernels with many rows and keys.
  bool slow_compiler() const {
    return GetParam().driver && GetParam().driver->info().software &&
           !GetParam().driver->info().is_cpu;
  }
  DecodeTile tile_for(const AttentionOptions& options, uint32_t queries) const {
    DecodeTile tile = decode_tile(options, queries);
    if (slow_compiler()) {
      tile.lanes = 32;
      tile.unroll = tile.rows = 1;
    }
    return tile;
  }
  bool suits_fragments() const {
    return !GetParam().driver || GetParam().driver->info().is_cpu ||
           !GetParam().driver->info().capabilities.fragments.empty();
  }
  uint64_t shared_bytes() const {
    return GetParam().driver ? GetParam().driver->info().capabilities.shared_bytes : UINT64_MAX;
  }
  AttentionCase make(const AttentionOptions& options, uint32_t kv_heads, uint32_t positions,
                     bool by_head, const std::vector<AttentionSequence>& sequences) {
    return test::attention_case(options, kv_heads, positions, by_head, sequences, seed++);
  }
};

// Lengths 0 and 1, around the maximum and around the keys of an iteration, in one launch.
TEST_P(Attention, DecodeMatchesAReference) {
  if (slow_compiler() && GetParam().driver->info().backend == "opencl")
    GTEST_SKIP() << "OpenCL on the CPU takes minutes to compile subgroup shuffles";
  const AttentionOptions options = options_of(64, 3, DType::f16);
  DecodeTile tile = tile_for(options, 1);
  tile.lanes = std::min(tile.lanes, 64u);
  const uint32_t turn = tile.keys();
  const AttentionCase one =
      make(options, 2, 203, true,
           {{1, 203}, {1, 1}, {1, 202}, {0, 0}, {1, turn}, {1, turn + 1}, {1, 2 * turn}});
  EXPECT_EQ(decode_error(GetParam(), one, tile, 3, kPlainBound), "");
  if (slow_compiler()) return;
  for (const uint32_t key_lanes : {1u, 2u, 32u}) {
    DecodeTile other = tile;
    other.key_lanes = key_lanes;
    EXPECT_EQ(decode_error(GetParam(), one, other, 3, kPlainBound), "")
        << key_lanes << " lanes per key";
  }
  tile.direct = true;
  EXPECT_EQ(decode_error(GetParam(), one, tile, 1, kPlainBound), "") << "direct";
}

// Rounded rows equal those of a separate rounding launch bit for bit.
TEST_P(Attention, DecodeRoundsItsRows) {
  if (slow_compiler() && GetParam().driver->info().backend == "opencl")
    GTEST_SKIP() << "OpenCL on the CPU takes minutes to compile subgroup shuffles";
  const std::vector<uint32_t> sizes =
      slow_compiler() ? std::vector<uint32_t>{32} : std::vector<uint32_t>{32, 64, 96, 160};
  for (const uint32_t dim : sizes) {
    AttentionOptions options =
        options_of(dim, 3, dim == 96 ? BlockType::q8_0 : ElementType(DType::f16));
    options.sinks = dim == 64;
    AttentionCase one = make(options, 2, 70, false, {{2, 70}, {0, 0}, {1, 1}, {1, 33}});
    DecodeTile tile = tile_for(options, 2);
    const uint32_t k = one.heads() * dim;
    one.params.out_row = k;
    const auto poison = [&](uint64_t bytes_of_row) {
      return Bytes((one.rows + 1) * bytes_of_row, std::byte{0xCD});
    };
    const auto check = [&](const DecodeTile& way, uint32_t splits) {
      SCOPED_TRACE(
          fmt::format("heads of {}, {} splits{}", dim, splits, way.merges ? ", merged" : ""));
      one.options.rounded = false;
      one.out = poison(k * 4);
      const Bytes plain = run_decode(GetParam(), one, way, splits);
      const ProductLaunch launch = round_rows_launch(one.rows, k, k);
      const Bytes wanted = GetParam().run(round_rows(DType::f32), launch.groups,
                                          {plain, poison(rounded_bytes(1, k))},
                                          {launch.params.begin(), launch.params.end()});
      one.options.rounded = true;
      one.out = poison(rounded_bytes(1, k));
      EXPECT_TRUE(run_decode(GetParam(), one, way, splits) == wanted);
    };
    for (const DecodeTile& way : ways_of(GetParam(), one, tile)) check(way, 3);
    tile.direct = true;
    check(tile, 1);
  }
}

// A group that has all keys writes the result; with one key more, splits are merged.
TEST_P(Attention, FewKeysAreNotSplit) {
  if (slow_compiler()) GTEST_SKIP() << "slow compiler: one decode test is enough";
  if (!GetParam().fences()) GTEST_SKIP() << "no fences: a second launch merges";
  const auto check = [&](bool window, uint32_t keys, bool alone) {
    AttentionOptions options = options_of(64, 1, DType::f16);
    options.window = window;
    DecodeTile tile = decode_tile(options, 1);
    tile.merges = true;
    const AttentionCase one = make(options, 2, keys + 1, false, {{1, keys}});
    Bytes partial;
    EXPECT_EQ(compare(one, run_merging(GetParam(), one, tile, 3, &partial), kPlainBound), "")
        << keys << " keys";
    EXPECT_EQ(std::ranges::count(partial, std::byte{0xFF}) == std::ssize(partial), alone)
        << keys << " keys";
  };
  const uint32_t few = keys_alone(decode_tile(options_of(64, 1, DType::f16), 1));
  check(false, 0, true);
  check(false, 1, true);
  check(false, few, true);
  check(false, few + 1, false);
  check(true, few + 1, true);  // of which the query sees five
}

TEST_P(Attention, DecodeReadsQuantisedCaches) {
  if (slow_compiler()) GTEST_SKIP() << "slow compiler: one decode test is enough";
  for (const bool by_head : {false, true}) {
    AttentionOptions options = options_of(96, 2, BlockType::q8_0);
    options.q_type = options.out_type = DType::f16;
    const AttentionCase one = make(options, 3, 67, by_head, {{1, 66}, {1, 67}, {1, 2}});
    DecodeTile tile = tile_for(options, 1);
    EXPECT_EQ(decode_error(GetParam(), one, tile, 2, kHalfBound), "");
    tile.key_lanes *= 2;
    EXPECT_EQ(decode_error(GetParam(), one, tile, 2, kHalfBound), "")
        << tile.key_lanes << " lanes per key";
  }
}

// Several queries, more rows than a group holds, and every option that changes a score.
TEST_P(Attention, DecodeKnowsEveryOption) {
  if (slow_compiler()) GTEST_SKIP() << "slow compiler: one decode test is enough";
  AttentionOptions options = options_of(80, 5, DType::f32);
  options.window = options.soft_cap = options.mask = options.sinks = true;
  DecodeTile tile = tile_for(options, 3);
  const AttentionCase one = make(options, 1, 41, false, {{3, 41}, {2, 40}, {1, 1}, {3, 3}, {0, 7}});
  EXPECT_EQ(decode_error(GetParam(), one, tile, 2, kPlainBound), "");
  tile.direct = true;
  EXPECT_EQ(decode_error(GetParam(), one, tile, 1, kPlainBound), "") << "direct";
}

// Values shorter than keys, chunks and linear biases: one query, whose split ends before the chunk,
// and several. Heads of latent attention are the longest.
TEST_P(Attention, DecodeKnowsShortValuesChunksAndBiases) {
  if (slow_compiler()) GTEST_SKIP() << "slow compiler: one decode test is enough";
  for (const uint32_t queries : {1u, 3u}) {
    AttentionOptions options = options_of(48, 3, DType::f16);
    options.value_dim = 40;
    options.window = options.chunked = options.slopes = true;
    DecodeTile tile = tile_for(options, queries);
    const AttentionCase one = make(options, 2, 41, false, {{queries, 41}, {1, 40}, {queries, 3}});
    EXPECT_EQ(decode_error(GetParam(), one, tile, 2, kPlainBound), "") << queries;
    tile.direct = true;
    EXPECT_EQ(decode_error(GetParam(), one, tile, 1, kPlainBound), "") << queries << ", direct";
  }
  AttentionOptions latent = options_of(576, 5, DType::f16);
  latent.value_dim = 512;
  const AttentionCase two = make(latent, 1, 20, false, {{1, 20}, {1, 3}});
  EXPECT_EQ(decode_error(GetParam(), two, tile_for(latent, 1), 2, kPlainBound), "");
  AttentionOptions packed = options_of(96, 2, BlockType::q8_0);
  packed.value_dim = 32;
  packed.slopes = true;
  const AttentionCase three = make(packed, 3, 33, true, {{1, 33}, {1, 8}});
  EXPECT_EQ(decode_error(GetParam(), three, tile_for(packed, 1), 2, kPlainBound), "");
}

// Fragments: caches that are copied or unpacked, with one or several tiles in flight.
TEST_P(Attention, FragmentDecodeMatchesAReference) {
  if (!suits_fragments()) GTEST_SKIP() << "no fragments on this device: decode uses lanes";
  for (const ElementType cache : {ElementType(DType::f16), ElementType(BlockType::q8_0)})
    for (const uint32_t stages : {1u, 2u, 3u}) {
      const AttentionOptions options = options_of(64, stages + 2, cache);
      DecodeTile tile = fragment_decode_tile(options, 1);
      tile.lanes = stages == 2 ? 64 : 96;
      tile.unroll = stages == 3 ? 2 : 1;
      tile.stages = stages;
      if (fragment_shared_bytes(options, tile) > shared_bytes()) tile.stages = tile.unroll = 1;
      const uint32_t turn = tile.keys();
      const AttentionCase one =
          make(options, 2, 403, stages == 2,
               {{1, 403}, {1, 1}, {1, 202}, {0, 0}, {1, turn}, {1, turn + 1}, {1, 3 * turn}});
      EXPECT_EQ(decode_error(GetParam(), one, tile, 3, kFragmentBound), "")
          << cache.name() << ", " << stages << " stages";
      tile.direct = true;
      EXPECT_EQ(decode_error(GetParam(), one, tile, 1, kFragmentBound), "")
          << cache.name() << ", " << stages << " stages, direct";
    }
}

TEST_P(Attention, FragmentDecodeKnowsEveryOption) {
  if (!suits_fragments()) GTEST_SKIP() << "no fragments on this device: decode uses lanes";
  for (const ElementType cache : {ElementType(DType::f16), ElementType(BlockType::q8_0)})
    for (const uint32_t dim : {96u, 40u}) {
      if (cache.is_block() && dim == 40) continue;
      AttentionOptions options = options_of(dim, 7, cache);
      options.mask = dim == 96;
      options.window = options.soft_cap = options.sinks = true;
      options.out_type = DType::f16;
      DecodeTile tile = fragment_decode_tile(options, 3);  // 21 rows: two blocks
      tile.lanes = 32;
      const AttentionCase one =
          make(options, 1, 141, false, {{3, 141}, {2, 40}, {1, 1}, {3, 3}, {0, 7}});
      EXPECT_EQ(decode_error(GetParam(), one, tile, 2, kFragmentBound), "") << dim;
      tile.direct = true;
      EXPECT_EQ(decode_error(GetParam(), one, tile, 1, kFragmentBound), "") << dim << ", direct";
    }
}

TEST_P(Attention, FragmentDecodeKnowsShortValuesChunksAndBiases) {
  if (!suits_fragments()) GTEST_SKIP() << "no fragments on this device: decode uses lanes";
  for (const ElementType cache : {ElementType(DType::f16), ElementType(BlockType::q8_0)}) {
    AttentionOptions options = options_of(96, 3, cache);
    options.value_dim = cache.is_block() ? 64 : 72;
    options.window = options.chunked = options.slopes = true;
    DecodeTile tile = fragment_decode_tile(options, 3);
    tile.lanes = 32;
    tile.stages = cache.is_block() ? 1 : 2;
    const AttentionCase one = make(options, 2, 141, true, {{3, 141}, {2, 40}, {1, 1}});
    EXPECT_EQ(decode_error(GetParam(), one, tile, 2, kFragmentBound), "") << cache.name();
  }
}

// More splits than the merge takes at once, with heads of every width.
TEST_P(Attention, MergeTakesManySplits) {
  if (slow_compiler()) GTEST_SKIP() << "slow compiler: one decode test is enough";
  for (const uint32_t dim : {4u, 130u, 512u}) {
    const AttentionOptions options = options_of(dim, 1, DType::f32);
    DecodeTile tile = decode_tile(options, 1);
    tile.lanes = 32;
    tile.unroll = 1;
    const AttentionCase one = make(options, 1, 331, true, {{1, 331}, {1, 67}, {1, 1}});
    EXPECT_EQ(decode_error(GetParam(), one, tile, 99, kPlainBound), "") << dim;
  }
}

TEST_P(Attention, PlainPromptMatchesAReference) {
  const AttentionOptions options = options_of(64, 2, DType::f16);
  const PlainTile tile = plain_tile(options, 16384);
  const AttentionCase one =
      make(options, 2, 45, true, {{37, 45}, {1, 1}, {16, 16}, {0, 0}, {2, 44}});
  EXPECT_EQ(compare(one, run_tiles(GetParam(), one, attention_plain(options, tile), tile.queries),
                    kPlainBound),
            "");
  AttentionOptions every = options_of(96, 1, BlockType::q8_0);
  every.window = every.soft_cap = every.mask = every.sinks = true;
  const PlainTile small = plain_tile(every, 16384);
  const AttentionCase two = make(every, 2, 33, false, {{9, 33}, {1, 8}});
  EXPECT_EQ(compare(two, run_tiles(GetParam(), two, attention_plain(every, small), small.queries),
                    kPlainBound),
            "");
}

TEST_P(Attention, PlainPromptWithoutCausalSeesAllKeys) {
  AttentionOptions options = options_of(80, 1, DType::f32);
  options.causal = false;
  const PlainTile tile{8, 8};
  const AttentionCase one = make(options, 2, 19, false, {{3, 19}, {5, 2}, {2, 0}});
  EXPECT_EQ(compare(one, run_tiles(GetParam(), one, attention_plain(options, tile), tile.queries),
                    kPlainBound),
            "");
}

// Without hardware, fragments are lowered to shared memory, so the tiles are small.
TEST_P(Attention, FragmentPromptMatchesAReference) {
  const Place& place = GetParam();
  if (slow_compiler() && place.driver->info().backend == "opencl")
    GTEST_SKIP() << "no fragments on this device: prompts use attention_plain";
  const bool whole = suits_fragments();
  // With little shared memory, test shorter heads with the op's fallback tile.
  const bool roomy = shared_bytes() >= 128u << 10;
  const AttentionOptions options = options_of(!whole ? 32 : roomy ? 128 : 64, 2, DType::f16);
  const PromptTile large = roomy ? prompt_tile(options) : PromptTile{4, 1, 32, 1, true};
  const PromptTile tile = whole ? large : PromptTile{1, 1, 16, 2, false};
  const uint32_t most = whole ? 301 : 45;
  const AttentionCase one =
      make(options, 2, most, true, {{whole ? 137u : 37u, most}, {1, 1}, {16, 16}, {0, 0}, {2, 44}});
  EXPECT_EQ(compare(one, run_tiles(place, one, attention_prompt(options, tile), tile.queries()),
                    kFragmentBound),
            "");
}

TEST_P(Attention, FragmentPromptKnowsEveryOption) {
  const Place& place = GetParam();
  if (!suits_fragments())
    GTEST_SKIP() << "no fragments on this device: prompts use attention_plain";
  AttentionOptions options = options_of(64, 1, BlockType::q8_0);
  options.window = options.soft_cap = options.mask = options.sinks = true;
  options.out_type = DType::f16;
  const PromptTile tile{2, 2, 32, 1, true};
  const AttentionCase one = make(options, 2, 90, false, {{70, 90}, {1, 33}, {3, 3}});
  EXPECT_EQ(compare(one, run_tiles(place, one, attention_prompt(options, tile), tile.queries()),
                    kFragmentBound),
            "");
  AttentionOptions all = options_of(80, 1, DType::f16);
  all.causal = false;
  const PromptTile staged{2, 1, 32, 3, true};
  const AttentionCase two = make(all, 1, 131, true, {{40, 131}, {3, 0}, {5, 2}});
  EXPECT_EQ(compare(two, run_tiles(place, two, attention_prompt(all, staged), staged.queries()),
                    kFragmentBound),
            "");
}

TEST_P(Attention, PromptsKnowShortValuesChunksAndBiases) {
  AttentionOptions options = options_of(72, 3, DType::f16);
  options.value_dim = 40;
  options.window = options.chunked = options.slopes = true;
  const AttentionCase one = make(options, 2, 90, false, {{70, 90}, {1, 33}, {3, 3}});
  const PlainTile plain{16, 16};
  EXPECT_EQ(compare(one, run_tiles(GetParam(), one, attention_plain(options, plain), plain.queries),
                    kPlainBound),
            "");
  if (!suits_fragments()) return;
  const PromptTile tile{2, 1, 32, 2, true};
  EXPECT_EQ(
      compare(one, run_tiles(GetParam(), one, attention_prompt(options, tile), tile.queries()),
              kFragmentBound),
      "");
}

// Heads that end inside a 16-byte chunk, inside a word and inside a fragment.
TEST_P(Attention, HeadsHaveAnySize) {
  const Place& place = GetParam();
  // A slow compiler gets one of each kind: elements, words, half and whole chunks.
  const std::vector<uint32_t> sizes =
      slow_compiler() ? std::vector<uint32_t>{3, 8, 20}
                      : std::vector<uint32_t>{1, 3, 8, 20, 24, 40, 80, 100, 250};
  for (const uint32_t dim : sizes)
    for (const DType cache : {DType::f16, DType::f32, DType::bf16}) {
      if (cache == DType::bf16 && dim != 3 && dim != 20 && dim != 80) continue;
      AttentionOptions options = options_of(dim, 2, cache);
      options.q_type = dim % 2 != 0 ? DType::f16 : DType::f32;
      const std::string what = fmt::format("heads of {} in {}", dim, dtype_name(cache));
      const AttentionCase one = make(options, 2, 23, dim % 4 != 0, {{9, 23}, {1, 1}, {0, 0}});
      const PlainTile plain{8, 8};
      EXPECT_EQ(compare(one, run_tiles(place, one, attention_plain(options, plain), plain.queries),
                        kPlainBound),
                "")
          << what << ", plain";
      if (slow_compiler()) continue;
      const PromptTile prompt{1, 1, 16, 2, dim < 128};
      EXPECT_EQ(compare(one, run_tiles(place, one, attention_prompt(options, prompt), 16),
                        kFragmentBound),
                "")
          << what << ", prompt";
      const AttentionCase few = make(options, 2, 70, dim % 4 != 0, {{2, 70}, {1, 1}, {0, 0}});
      DecodeTile decode = tile_for(options, 2);
      EXPECT_EQ(decode_error(place, few, decode, 2, kPlainBound), "") << what << ", decode";
      decode.direct = true;
      EXPECT_EQ(decode_error(place, few, decode, 1, kPlainBound), "") << what << ", decode at once";
    }
}

// Caches in shuffled blocks that sequences share: blocks that hold several tiles and tiles over
// several blocks, with lengths around their borders.
TEST_P(Attention, ReadsBlocksThroughATable) {
  const Place& place = GetParam();
  const auto with = [](AttentionOptions options, uint32_t block, bool window) {
    options.block = block;
    options.window = window;
    return options;
  };
  for (const bool window : {false, true}) {
    const uint32_t block = window ? 4 : 16;
    const AttentionOptions options =
        with(options_of(32, 2, window ? ElementType(BlockType::q8_0) : DType::f16), block, window);
    const AttentionCase one =
        make(options, 2, 50, !window, {{9, 50}, {1, 16}, {17, 17}, {0, 0}, {2, 33}, {3, 15}});
    const PlainTile plain{8, 8};
    EXPECT_EQ(compare(one, run_tiles(place, one, attention_plain(options, plain), plain.queries),
                      kPlainBound),
              "")
        << "plain, blocks of " << block;
  }
  if (slow_compiler()) return;
  for (const uint32_t block : {2u, 32u, 128u})
    for (const bool window : {false, true})
      for (const bool q8 : {false, true}) {
        SCOPED_TRACE(
            fmt::format("blocks of {}{}{}", block, window ? ", window" : "", q8 ? ", q8_0" : ""));
        const AttentionOptions options =
            with(options_of(64, 3, q8 ? ElementType(BlockType::q8_0) : DType::f16), block, window);
        for (const uint32_t queries : {1u, 2u}) {
          const AttentionCase one =
              make(options, 2, 290, q8,
                   {{queries, 290}, {1, 128}, {1, 129}, {0, 0}, {queries, 65}, {1, 1}});
          DecodeTile tile = decode_tile(options, queries);
          tile.lanes = 64;
          EXPECT_EQ(decode_error(place, one, tile, 3, kPlainBound), "") << queries << " queries";
          tile = fragment_decode_tile(options, queries);
          tile.lanes = 64;
          tile.stages = q8 ? 1 : 3;
          if (!suits_fragments() || fragment_shared_bytes(options, tile) > shared_bytes()) continue;
          EXPECT_EQ(decode_error(place, one, tile, 2, kFragmentBound), "")
              << queries << " queries by fragments";
        }
        const PromptTile prompt{1, 1, 16, 2, true};
        const AttentionCase many =
            make(options, 1, 150, true, {{40, 150}, {1, 1}, {16, 16}, {0, 0}, {33, 129}});
        EXPECT_EQ(compare(many, run_tiles(place, many, attention_prompt(options, prompt), 16),
                          kFragmentBound),
                  "")
            << "prompt";
      }
}

// More tiles than a subgroup has lanes: the blocks of the tiles are looked up in several turns.
TEST_P(Attention, LooksUpTheBlocksOfManyTiles) {
  if (slow_compiler()) GTEST_SKIP() << "slow compiler: one decode test is enough";
  const Place& place = GetParam();
  for (const bool window : {false, true}) {
    AttentionOptions options = options_of(32, 2, DType::f16);
    options.block = 4;
    options.window = window;
    const AttentionCase one = make(options, 1, 140, false, {{1, 140}, {1, 64}, {1, 65}, {1, 33}});
    DecodeTile tile = decode_tile(options, 1);
    tile.lanes = tile.key_lanes = 32;
    tile.unroll = 1;
    for (const uint32_t splits : {1u, 2u}) {
      tile.direct = splits == 1;
      EXPECT_EQ(decode_error(place, one, tile, splits, kPlainBound), "") << splits << " splits";
    }
    options.block = 32;
    tile = fragment_decode_tile(options, 1);
    tile.lanes = 32;
    tile.direct = true;
    if (!suits_fragments() || fragment_shared_bytes(options, tile) > shared_bytes()) continue;
    const AttentionCase deep = make(options, 1, 1100, false, {{1, 1100}, {1, 512}, {1, 544}});
    EXPECT_EQ(decode_error(place, deep, tile, 1, kFragmentBound), "") << "by fragments";
  }
}

std::vector<Place> places() {
  std::vector<Place> all = {Place{}};
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) all.push_back({driver});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Places, Attention, ::testing::ValuesIn(places()), [](const auto& test) {
  std::string name = test.param.name();
  std::ranges::replace(name, ':', '_');
  return name;
});

}  // namespace
}  // namespace prism
