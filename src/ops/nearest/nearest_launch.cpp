// The launches of nearest_rows on devices with kernels.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/nearest/nearest_kernels.h"
#include "prism/error.h"
#include "prism/ops/nearest.h"

namespace prism::ops {

namespace {

// Enough groups to fill the largest cards (132 multiprocessors with eight groups each); more only
// lengthens the merge.
constexpr int64_t kGroups = 1056;
constexpr int64_t kListsPerMerge = 32;
// The filter pays from this many rows on. It has room for four times the candidates that the limits
// of a sample let through when rows are in no order.
constexpr int64_t kFilterRows = 16384;
constexpr int64_t kFilterKept = 256;
constexpr int64_t kFilterPairs = int64_t{1} << 27;  // room for all queries: 1 GiB

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

int64_t sample_rows(int64_t rows, int64_t queries) {
  return std::min(rows / 8, queries <= 8 || rows > 4'000'000 ? int64_t{16384} : int64_t{8192});
}

int64_t room_for(int64_t rows, int64_t queries, int64_t kept) {
  return std::min(rows, round_up(4 * kept * rows / sample_rows(rows, queries) + 1024, 256));
}

// Tiles of rows that a group of the filter multiplies one after the other: the more, the fewer
// starts; but the last groups should end together.
int64_t tiles_in_turn(const DeviceInfo& device, const FragmentProduct& p, int64_t rows,
                      int64_t query_tiles) {
  constexpr int64_t kMost = 8;
  const int64_t bytes = int64_t{p.stages} * (p.tile_m + p.tile_n) * (p.tile_k + 8) * 2;
  const int64_t at_once = std::max<int64_t>(
      1, device.compute_units * std::max<int64_t>(1, device.capabilities.shared_bytes / bytes));
  const int64_t tiles = (rows + p.tile_m - 1) / p.tile_m;
  const auto time =
      [&](int64_t turns) {  // of all waves; a start takes as long as a fifth of a tile
        const int64_t groups = (tiles + turns - 1) / turns * query_tiles;
        return (groups + at_once - 1) / at_once * (5 * turns + 1);
      };
  int64_t best = 1;
  for (int64_t turns = 2; turns <= kMost; ++turns)
    if (time(turns) < time(best)) best = turns;
  return best;
}

// Lanes of a group that selects by itself.
uint32_t select_lanes(const ir::Capabilities& device) {
  return device.max_group_size >= 1024 ? 1024 : kNearestGroup;
}

// A group that selects among the pairs of one query.
struct OneSelection {
  // Keys of a lane in registers. Twice as many do not fit beside 1,024 lanes.
  static constexpr uint32_t kHeld = 16;
  uint32_t lanes, held;  // held: 0 if there are too many keys

  OneSelection(const ir::Capabilities& device, int64_t count) {
    // Fewer lanes wait less for each other.
    lanes = count <= int64_t{kHeld} * kNearestGroup ? kNearestGroup : select_lanes(device);
    const uint64_t each = std::bit_ceil((static_cast<uint64_t>(count) + lanes - 1) / lanes);
    held = each <= kHeld ? static_cast<uint32_t>(each) : 0;
  }
};

}  // namespace

// Of every query: `count` lists of pairs, each `stride` pairs after the one before.
struct NearestLaunch::Lists {
  DeviceView keys, rows;
  int64_t count, stride;
};

struct NearestLaunch::Filter {
  DeviceView found;
  int64_t room;
};

int64_t NearestLaunch::kept() const {
  return k + 16 + k / 16;  // f32 sums in another order can swap neighbours
}

NearestForm NearestLaunch::form() const {
  const int64_t bytes = width() * static_cast<int64_t>(matrix.type.block_bytes());
  return {.metric = metric,
          .type = matrix.type.plain(),
          .aligned = bytes % 16 == 0 && rows() * bytes > 0,
          .has_factors = factors.has_value(),
          .has_allowed = allowed.has_value(),
          .queries = query_count() == 1 && !spans ? 1u : static_cast<uint32_t>(kSpanQueries),
          .has_spans = spans.has_value()};
}

NearestLaunch::Lists NearestLaunch::scan(DeviceCall& call, const NearestForm& form, int64_t count,
                                         int64_t part, const Filter* filter) const {
  const int64_t blocks = (query_count() + form.queries - 1) / form.queries;
  const int64_t parts = std::max<int64_t>(1, (scanned_rows() + part - 1) / part);
  const int64_t capacity = kept() + 2 * kScanPiece;
  const Shape shape = {blocks * form.queries, parts, capacity};
  const Lists lists{call.scratch(shape, DType::i32), call.scratch(shape, DType::i32), parts,
                    capacity};
  std::vector<DeviceView> buffers = {matrix, queries};
  if (factors) buffers.push_back(*factors);
  if (allowed) buffers.push_back(*allowed);
  if (spans) buffers.push_back(*spans);
  if (filter) buffers.push_back(filter->found);
  buffers.insert(buffers.end(), {lists.keys, lists.rows});
  std::vector<ParamValue> params = {word(count), word(width()), word(units()),
                                    word(part),  word(kept()),  word(query_count())};
  if (filter) params.push_back(word(filter->room));
  call.launch(
      "nearest_scan " + form.key(), [&] { return nearest_scan_kernel(form); },
      {static_cast<uint32_t>(parts), static_cast<uint32_t>(blocks), 1}, buffers, std::move(params));
  return lists;
}

NearestLaunch::Lists NearestLaunch::merge(DeviceCall& call, Lists from,
                                          const Filter* filter) const {
  while (from.count > 1) {
    const int64_t pieces = (from.count + kListsPerMerge - 1) / kListsPerMerge;
    const Shape shape = {query_count(), pieces, kept()};
    const Lists to{call.scratch(shape, DType::i32), call.scratch(shape, DType::i32), pieces,
                   kept()};
    std::vector<DeviceView> buffers = {from.keys, from.rows};
    if (filter) buffers.push_back(filter->found);
    buffers.insert(buffers.end(), {to.keys, to.rows});
    std::vector<ParamValue> params = {word(from.count), word(kListsPerMerge), word(from.stride),
                                      word(kept())};
    if (filter) params.push_back(word(filter->room));
    call.launch(
        fmt::format("nearest_merge {}", filter != nullptr),
        [&] { return nearest_merge_kernel(filter != nullptr); },
        {static_cast<uint32_t>(pieces), static_cast<uint32_t>(query_count()), 1}, buffers,
        std::move(params));
    from = to;
  }
  return from;
}

// nullopt: scan. L2 distances by products would cancel digits.
std::optional<FragmentProduct> NearestLaunch::tiling(const DeviceInfo& device) const {
  const ir::Capabilities& can = device.capabilities;
  const DType type = matrix.type.plain();
  if (spans || !has_fragments(can, type) || (metric != Metric::dot && metric != Metric::cosine) ||
      (metric == Metric::dot && factors) || (type != DType::f16 && type != DType::bf16) ||
      !form().aligned || rows() < kFilterRows || kept() > kFilterKept ||
      query_count() * room_for(rows(), query_count(), kept()) > kFilterPairs)
    return std::nullopt;
  FragmentProduct p{.a = type, .b = type, .operand = type};
  p.subgroup = fragment_subgroup(can);
  p.repeat_a = nearest_query_parts(query_type, type);
  const bool is_large = can.shared_bytes >= (160u << 10) && can.max_group_size >= 256;
  // By what was fastest on an H200.
  if (query_count() <= 16)
    is_large ? p.cut(256, 16, 64, 8, 1, 3, true) : p.cut(64, 16, 32, 4, 1, 2, false);
  else if (!is_large)
    p.cut(64, 64, 32, 2, 2, 2, false);
  else if (query_count() <= 64)
    p.cut(128, 64, 64, 4, 2, 3, true);
  else
    p.cut(256, 128, 64, 4, 2, 3, true);
  return p;
}

NearestLaunch::Lists NearestLaunch::filter(DeviceCall& call, const FragmentProduct& p) const {
  const int64_t sample = sample_rows(rows(), query_count());
  const int64_t tiles = (query_count() + p.tile_n - 1) / p.tile_n, all = tiles * p.tile_n;
  const int64_t padded = round_up(width(), p.tile_k);
  const DeviceView parts = call.scratch({all, padded * p.repeat_a}, p.operand);
  call.launch(fmt::format("nearest_prepare {} {} {}", dtype_name(p.operand), p.repeat_a, p.tile_k),
              [&] { return nearest_prepare_kernel(p); }, {static_cast<uint32_t>(all), 1, 1},
              {queries, parts}, {word(query_count()), word(width()), word(padded)});

  std::optional<DeviceView> inverses;
  if (factors) {
    const int64_t padded_rows = round_up(rows(), p.tile_m);
    inverses = call.scratch({padded_rows}, DType::f32);
    call.launch("nearest_inverse", nearest_inverse_kernel,
                {groups_for(padded_rows, kNearestGroup), 1, 1}, {*factors, *inverses},
                {word(rows()), word(padded_rows)});
  }
  const auto multiply = [&](bool is_sample, int64_t count, int64_t room,
                            std::initializer_list<DeviceView> results) {
    NearestForm how = form();
    how.sampled = is_sample;
    how.one_by_one = p.run_ahead && call.info().capabilities.fragment_layout;
    // Smaller tiles leave room for two groups at once, which hide each other's starts.
    how.in_turn = how.one_by_one && !is_sample && p.tile_m * p.tile_n >= 256 * 128;
    const int64_t turns = how.in_turn ? tiles_in_turn(call.info(), p, count, tiles) : 1;
    std::vector<DeviceView> buffers = {matrix, parts};
    if (inverses) buffers.push_back(*inverses);
    if (allowed) buffers.push_back(*allowed);
    buffers.insert(buffers.end(), results);
    call.launch(
        fmt::format("nearest_filter {} {} {}x{}x{}", how.key(), p.repeat_a, p.tile_m, p.tile_n,
                    p.tile_k),
        [&] { return nearest_filter_kernel(how, p); },
        {groups_for(count, static_cast<uint32_t>(turns) * p.tile_m) * static_cast<uint32_t>(tiles),
         1, 1},
        buffers,
        {word(count), word(width()), word(padded), word(tiles), word(room), word(rows() / count),
         word(turns * p.tile_m)});
  };
  const DeviceView sums = call.scratch({all, sample}, DType::i32);
  multiply(true, sample, 0, {sums});
  const Filter room{call.scratch({all}, DType::i32), room_for(rows(), query_count(), kept())};
  const DeviceView limits = call.scratch({all}, DType::f32);
  const uint32_t lanes = select_lanes(call.info().capabilities);
  call.launch(fmt::format("nearest_limit {} {}", is_distance(metric), lanes),
              [&] { return nearest_limit_kernel(metric, lanes); },
              {static_cast<uint32_t>(all), 1, 1}, {sums, limits, room.found},
              {word(query_count()), word(sample), word(kept())});

  const Shape shape = {all, room.room};
  const DeviceView keys = call.scratch(shape, DType::i32), found = call.scratch(shape, DType::i32);
  multiply(false, rows(), room.room, {limits, room.found, found, keys});

  NearestForm again = form();
  again.overflow = true;
  // Groups of queries with room end at once; few of them, because even that takes time.
  const int64_t blocks = (query_count() + again.queries - 1) / again.queries;
  const int64_t pieces = std::clamp<int64_t>(kGroups / blocks, 4, 8 * kListsPerMerge);
  const Lists scanned = merge(
      call, scan(call, again, rows(), round_up(rows() / pieces + 1, kScanPiece), &room), &room);
  const Lists best{call.scratch({query_count(), kept()}, DType::i32),
                   call.scratch({query_count(), kept()}, DType::i32), 1, kept()};
  call.launch(fmt::format("nearest_choose {}", lanes), [&] { return nearest_choose_kernel(lanes); },
              {static_cast<uint32_t>(query_count()), 1, 1},
              {keys, found, room.found, scanned.keys, scanned.rows, best.keys, best.rows},
              {word(room.room), word(kept())});
  return best;
}

std::optional<int64_t> NearestLaunch::block_rows() const {
  if (query_count() != 1) return std::nullopt;
  const std::optional<BlockCut> cut = block_cut(form(), static_cast<uint32_t>(units()));
  if (!cut) return std::nullopt;
  constexpr int64_t kTurns = 8;  // a subgroup that starts waits for its first rows
  int64_t block = kTurns * cut->rows_at_once();
  // Half as many rows of the picked blocks, which take longer, as there are blocks; and groups that
  // follow the first ones, because all end at once otherwise.
  const auto is_good = [&](int64_t longer) {
    return 2 * kept() * longer * longer <= rows() &&
           2 * rows() / (longer * kBlocksOfGroup) >= 3 * kGroups;
  };
  while (is_good(2 * block)) block *= 2;
  const bool is_worth_it = rows() / block >= 2 * kept();
  return is_worth_it ? std::optional(block) : std::nullopt;
}

void NearestLaunch::search_blocks(DeviceCall& call, int64_t block) const {
  NearestForm how = form();
  const BlockCut cut = *block_cut(how, static_cast<uint32_t>(units()));
  const int64_t blocks = (rows() + block - 1) / block, candidates = kept() * block;
  const DeviceView best_keys = call.scratch({blocks}, DType::i32),
                   best_rows = call.scratch({blocks}, DType::i32),
                   picked = call.scratch({kept()}, DType::i32),
                   keys = call.scratch({candidates}, DType::i32),
                   numbers = call.scratch({candidates}, DType::i32);
  std::vector<DeviceView> given = {matrix, queries};
  if (factors) given.push_back(*factors);
  if (allowed) given.push_back(*allowed);
  std::vector<DeviceView> buffers = given;
  buffers.insert(buffers.end(), {best_keys, best_rows});
  call.launch(fmt::format("nearest_blocks {} {} {} {} {}", how.key(), cut.lanes, cut.units,
                          cut.rows, cut.is_whole),
              [&] { return nearest_blocks_kernel(how, cut); },
              {groups_for(blocks, kBlocksOfGroup), 1, 1}, buffers,
              {word(rows()), word(width()), word(units()), word(block)});
  const OneSelection pick(call.info().capabilities, blocks),
      best(call.info().capabilities, candidates);
  call.launch(fmt::format("nearest_pick {} {}", pick.lanes, pick.held),
              [&] { return nearest_pick_kernel(pick.lanes, pick.held); }, {1, 1, 1},
              {best_keys, best_rows, picked}, {word(blocks), word(kept())});
  how.in_blocks = true;
  buffers = given;
  buffers.insert(buffers.end(), {picked, keys, numbers});
  const uint32_t team = rescore_team(units());
  call.launch(fmt::format("nearest_rescore {} {}", how.key(), team),
              [&] { return nearest_rescore_kernel(how, team); },
              {groups_for(candidates, kNearestGroup / team), 1, 1}, buffers,
              {word(width()), word(units()), word(block), word(candidates), word(rows())});
  const auto room = static_cast<uint32_t>(std::max<int64_t>(64, round_up(k, 256)));
  call.launch(
      fmt::format("nearest_best {} {} {} {}", is_distance(metric), best.lanes, best.held, room),
      [&] { return nearest_best_kernel(metric, best.lanes, best.held, room); }, {1, 1, 1},
      {keys, numbers, scores, indices}, {word(candidates), word(k)});
}

void NearestLaunch::emit(DeviceCall& call) const {
  const auto bytes = static_cast<int64_t>(matrix.type.block_bytes());
  if (rows() * width() * bytes / 4 > int64_t{UINT32_MAX} || rows() >= INT32_MAX) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("nearest_rows: a matrix {} of {} bytes; kernels address 16 GiB, so "
                            "search parts of it and merge the results",
                            matrix.layout.shape.text(), rows() * width() * bytes));
  }
  if (const std::optional<int64_t> block = block_rows()) return search_blocks(call, *block);
  const auto scan_all = [&] {
    const NearestForm all = form();
    const int64_t blocks = (query_count() + all.queries - 1) / all.queries;
    const int64_t parts = std::clamp<int64_t>(kGroups / blocks, 1, scanned_rows() / 2048 + 1);
    const int64_t part =
        round_up(std::max<int64_t>(1, (scanned_rows() + parts - 1) / parts), kScanPiece);
    return merge(call, scan(call, all, rows(), part, nullptr), nullptr);
  };
  const std::optional<FragmentProduct> products = tiling(call.info());
  const Lists list = products ? filter(call, *products) : scan_all();

  NearestForm one = form();
  one.has_allowed = one.has_spans = false;
  one.queries = 1;
  const DeviceView exact = call.scratch({query_count(), kept()}, DType::i32);
  std::vector<DeviceView> buffers = {matrix, queries};
  if (factors) buffers.push_back(*factors);
  buffers.insert(buffers.end(), {list.keys, list.rows, exact});
  const uint32_t team = rescore_team(units());
  call.launch(fmt::format("nearest_rescore {} {}", one.key(), team),
              [&] { return nearest_rescore_kernel(one, team); },
              {groups_for(kept(), kNearestGroup / team), static_cast<uint32_t>(query_count()), 1},
              buffers, {word(width()), word(units()), word(list.stride), word(kept())});
  call.launch(fmt::format("nearest_rank {}", is_distance(metric)),
              [&] { return nearest_rank_kernel(metric); },
              {static_cast<uint32_t>(query_count()), 1, 1}, {exact, list.rows, scores, indices},
              {word(list.stride), word(kept()), word(k)});
}

}  // namespace prism::ops
