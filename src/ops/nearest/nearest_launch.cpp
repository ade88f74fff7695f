// The launches of nearest_rows on devices with kernels.
#include <algorithm>

#include <fmt/format.h>

#include "ops/nearest/nearest_kernels.h"
#include "prism/error.h"

namespace prism::ops {

namespace {

// Enough groups to fill the largest cards (132 multiprocessors with eight groups each); more only
// lengthens the merge.
constexpr int64_t kGroups = 1056;
constexpr int64_t kListsPerMerge = 16;

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

struct CandidateLists {
  DeviceView keys, rows;
  int64_t lists, stride;  // per query; pairs between starts of lists
};

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

CandidateLists merged(DeviceCall& call, CandidateLists from, int64_t queries, int64_t kept) {
  while (from.lists > 1) {
    const int64_t pieces = (from.lists + kListsPerMerge - 1) / kListsPerMerge;
    const CandidateLists to{call.scratch({queries, pieces, kept}, DType::i32),
                            call.scratch({queries, pieces, kept}, DType::i32), pieces, kept};
    call.launch("nearest_merge", nearest_merge_kernel,
                {static_cast<uint32_t>(pieces), static_cast<uint32_t>(queries), 1},
                {from.keys, from.rows, to.keys, to.rows},
                {word(from.lists), word(kListsPerMerge), word(from.stride), word(kept)});
    from = to;
  }
  return from;
}

}  // namespace

void NearestLaunch::emit(DeviceCall& call) const {
  const int64_t query_count = queries.layout.shape[0], rows = matrix.layout.shape[0],
                width = matrix.layout.shape[1];
  const auto bytes = static_cast<int64_t>(matrix.type.block_bytes());
  if (rows * width * bytes / 4 > int64_t{UINT32_MAX} || rows >= INT32_MAX) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("nearest_rows: a matrix {} of {} bytes; kernels address 16 GiB, so "
                            "search parts of it and merge the results",
                            matrix.layout.shape.text(), rows * width * bytes));
  }
  NearestForm form{metric,
                   matrix.type.plain(),
                   width * bytes % 16 == 0 && rows * width * bytes > 0,
                   factors.has_value(),
                   allowed.has_value(),
                   query_count == 1 ? 1u : 4u};
  // Candidates beyond k, because f32 sums in another order can swap neighbours.
  const int64_t kept = k + 16 + k / 16;
  const int64_t blocks = (query_count + form.queries - 1) / form.queries;
  const int64_t wanted_parts = std::clamp<int64_t>(kGroups / blocks, 1, rows / 2048 + 1);
  const int64_t part =
      round_up(std::max<int64_t>(1, (rows + wanted_parts - 1) / wanted_parts), kScanPiece);
  const int64_t parts = std::max<int64_t>(1, (rows + part - 1) / part),
                capacity = kept + 2 * kScanPiece;
  const int64_t units = (width * bytes + 15) / 16;
  const Shape shape = {blocks * form.queries, parts, capacity};
  const CandidateLists scanned{call.scratch(shape, DType::i32), call.scratch(shape, DType::i32),
                               parts, capacity};

  std::vector<DeviceView> buffers = {matrix, queries};
  if (factors) buffers.push_back(*factors);
  if (allowed) buffers.push_back(*allowed);
  buffers.insert(buffers.end(), {scanned.keys, scanned.rows});
  call.launch("nearest_scan " + form.key(), [&] { return nearest_scan_kernel(form); },
              {static_cast<uint32_t>(parts), static_cast<uint32_t>(blocks), 1}, buffers,
              {word(rows), word(width), word(units), word(part), word(kept), word(query_count)});
  const CandidateLists list = merged(call, scanned, query_count, kept);

  const DeviceView exact = call.scratch({query_count, kept}, DType::i32);
  buffers = {matrix, queries};
  if (factors) buffers.push_back(*factors);
  buffers.insert(buffers.end(), {list.keys, list.rows, exact});
  form.has_allowed = false;
  form.queries = 1;
  call.launch("nearest_rescore " + form.key(), [&] { return nearest_rescore_kernel(form); },
              {groups_for(kept, kNearestGroup / kTeam), static_cast<uint32_t>(query_count), 1},
              buffers, {word(width), word(units), word(list.stride), word(kept)});
  call.launch(fmt::format("nearest_rank {}", is_distance(metric)),
              [&] { return nearest_rank_kernel(metric); },
              {static_cast<uint32_t>(query_count), 1, 1}, {exact, list.rows, scores, indices},
              {word(list.stride), word(kept), word(k)});
}

}  // namespace prism::ops
