// Uploads rows and searches them with the fused op.
#include "search/methods/device_rows.h"

#include <algorithm>
#include <future>

#include <fmt/format.h>

#include "cpu/nearest/nearest.h"
#include "prism/error.h"
#include "prism/ops/nearest.h"
#include "search/methods/device_values.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

// Parts end at multiples of this, so that words of bitmaps are not shared between them.
constexpr uint64_t kPartRows = 65536;
// Each part is a search of its own, so that they are large where buffers of any size are bound.
uint64_t part_bytes(const Device& device) {
  const uint64_t bound = device.info().capabilities.max_binding_bytes;
  return uint64_t{bound >= uint64_t{1} << 40 ? 8u : 1u} << 30;
}
// Memory that stays free for plans and for other work.
constexpr uint64_t kReserveBytes = 64 << 20;

uint64_t row_bytes(const cpu::NearestRows& rows) {
  return rows.width * dtype_bytes(rows.type) + (rows.norms || rows.scales ? sizeof(float) : 0);
}

// The rows [first, first + count) as rows of their own; first is a multiple of 32.
cpu::NearestRows part_of(cpu::NearestRows rows, uint64_t first, uint64_t count) {
  rows.data = rows.row(first);
  rows.count = count;
  if (rows.norms) rows.norms += first;
  if (rows.scales) rows.scales += first;
  if (rows.allowed) rows.allowed += first / 32;
  return rows;
}

// Rows after the last whole part that are uploaded once they have stopped growing.
constexpr uint64_t kRestRows = 8192;
// A scan of fewer rows by the CPU takes less time than the start of a thread.
constexpr uint64_t kRowsAtOnce = 256;

// The last row of a bitmap's word at or before this one.
uint64_t word_start(uint64_t row) { return row / 32 * 32; }

// Joins results [queries][count] of parts, which may have rows in common.
Found merged(Metric metric, uint64_t queries, uint64_t count, const std::vector<Found>& parts) {
  Found all(queries * count);
  for (uint64_t q = 0; q < queries; ++q) {
    Found rows;
    for (const Found& part : parts) {
      const uint64_t each = part.size() / queries;
      for (uint64_t i = q * each; i < (q + 1) * each; ++i)
        if (part[i].is_row()) rows.push_back(part[i]);
    }
    std::ranges::sort(rows, {}, &cpu::NearRow::row);
    const auto is_same = [](const cpu::NearRow& a, const cpu::NearRow& b) {
      return a.row == b.row;
    };
    rows.erase(std::unique(rows.begin(), rows.end(), is_same), rows.end());
    std::ranges::sort(rows, [&](const cpu::NearRow& a, const cpu::NearRow& b) {
      return cpu::comes_before(metric, a, b);
    });
    std::copy_n(rows.begin(), std::min<uint64_t>(count, rows.size()),
                all.begin() + static_cast<ptrdiff_t>(q * count));
  }
  return all;
}

}  // namespace

void DeviceRows::keep_only(const std::set<uint64_t>& present) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(residents_, [&](const auto& each) { return !present.contains(each.first); });
  std::erase_if(centers_, [&](const auto& each) { return !present.contains(each.first); });
}

std::optional<DeviceRows::Part> DeviceRows::upload_part(const cpu::NearestRows& rows) {
  Part part;
  part.rows = rows.count;
  const uint64_t bytes = rows.count * row_bytes(rows);
  // A plan of the search needs little beside the rows; a tenth covers it.
  if (device_.free_bytes() < bytes + bytes / 10 + kReserveBytes) return std::nullopt;
  const auto count = static_cast<int64_t>(rows.count), width = static_cast<int64_t>(rows.width);
  try {
    part.matrix = from_bytes({rows.data, rows.count * rows.width * dtype_bytes(rows.type)},
                             {count, width}, rows.type, device_)
                      .eval();
    if (const float* const factors = rows.norms ? rows.norms : rows.scales)
      part.factors = upload_values(std::span(factors, rows.count), {count}, device_).eval();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    return std::nullopt;
  }
  uploaded_bytes_ += bytes;
  return part;
}

DeviceRows::Resident& DeviceRows::upload(uint64_t identity, bool is_growing, const Wanted& wanted) {
  Resident& resident = residents_[identity];
  const cpu::NearestRows& rows = wanted.rows;
  const uint64_t rest = rows.count - std::min(rows.count, resident.rows);
  const bool is_small = rest < (resident.searched == rows.count ? kRestRows : kPartRows);
  const uint64_t whole = is_growing && resident.rows > 0 && is_small ? resident.rows : rows.count;
  resident.searched = rows.count;
  const uint64_t most =
      std::max<uint64_t>(1, part_bytes(device_) / (kPartRows * row_bytes(rows))) * kPartRows;
  // Halves of what does not fit are tried, down to the smallest part.
  for (uint64_t tried = most; resident.rows < whole && !resident.is_full;) {
    const uint64_t first = word_start(resident.rows), count = std::min(tried, whole - first);
    std::optional<Part> part = upload_part(part_of(rows, first, count));
    resident.is_full = !part && count <= kPartRows;
    if (resident.is_full) break;
    if (!part) {
      tried = (count + 1) / 2 / kPartRows * kPartRows;
      tried = std::max(tried, kPartRows);
      continue;
    }
    part->first = first;
    resident.rows = first + count;
    resident.parts.push_back(std::move(*part));
  }
  return resident;
}

Tensor DeviceRows::allowed_rows(const Part& part, const Wanted& wanted) const {
  const uint64_t words = (part.rows + 31) / 32;
  const auto* const from = reinterpret_cast<const int32_t*>(wanted.rows.allowed) + part.first / 32;
  return upload_values(std::span(from, words), {static_cast<int64_t>(words)}, device_);
}

Found DeviceRows::scan_part(Part& part, const Wanted& wanted, const Tensor& queries,
                            bool has_scores) {
  const Metric metric = wanted.rows.metric;
  const auto k = static_cast<int64_t>(
      std::min<uint64_t>(wanted.candidates(), static_cast<uint64_t>(kMaximumNearest)));
  const bool filtered = wanted.rows.allowed != nullptr;
  const std::string key = fmt::format("{} {}", k, filtered);
  auto found = part.searches.find(key);
  if (found == part.searches.end()) {
    const Tensor matrix = part.matrix, factors = part.factors;
    found = part.searches
                .emplace(key, compile([=](std::span<const Tensor> in) {
                           const Nearest best = nearest_rows(
                               metric, in[0], matrix, k,
                               inputs_of(metric, factors, filtered ? in[1] : Tensor()));
                           return std::vector<Tensor>{best.scores, best.indices};
                         }))
                .first;
  }
  std::vector<Tensor> inputs = {queries};
  if (filtered) inputs.push_back(allowed_rows(part, wanted));
  return read_results(found->second(inputs), part.first, has_scores);
}

Found DeviceRows::scan(uint64_t identity, bool is_growing, const Wanted& wanted) {
  const std::scoped_lock lock(mutex_);
  if (wanted.candidates() > static_cast<uint64_t>(kMaximumNearest)) {
    used_cpu_ = true;
    return exact_search(wanted);
  }
  Resident& resident = upload(identity, is_growing, wanted);
  while (true) {
    try {
      return scan_resident(resident, wanted);
    } catch (const Error& error) {
      // The search itself had no memory: the CPU takes the last part over.
      if (error.code() != ErrorCode::kOutOfMemory || resident.parts.empty()) throw;
      resident.rows = resident.parts.back().first;
      resident.parts.pop_back();
      resident.is_full = true;
    }
  }
}

Found DeviceRows::scan_resident(Resident& resident, const Wanted& wanted) {
  used_cpu_ = resident.rows < wanted.rows.count;
  const auto scan_rest = [&] {
    const uint64_t first = word_start(resident.rows);
    const cpu::NearestRows rows = part_of(wanted.rows, first, wanted.rows.count - first);
    Found found = cpu::nearest(cpu_pool(), rows, scan_queries(wanted).data(), wanted.query_count(),
                               wanted.candidates());
    for (cpu::NearRow& each : found)
      if (each.is_row()) each.row += first;
    return found;
  };
  // The rest is scanned by the CPU meanwhile.
  const bool is_short = wanted.rows.count - resident.rows < kRowsAtOnce;
  std::future<Found> rest;
  if (used_cpu_)
    // Where no thread can be started, it is scanned afterwards.
    rest = std::async(is_short ? std::launch::deferred : std::launch::async | std::launch::deferred,
                      scan_rest);
  const bool is_all = !used_cpu_ && resident.parts.size() == 1;
  std::vector<Found> parts;
  if (!resident.parts.empty()) {
    const Tensor queries = query_tensor(wanted, device_);
    // Results that are scored again need their rows alone.
    for (Part& part : resident.parts)
      parts.push_back(scan_part(part, wanted, queries, !is_all || !wanted.exact));
  }
  if (rest.valid()) parts.push_back(rest.get());
  return rescored(
      wanted, is_all && parts[0].size() == wanted.query_count() * wanted.candidates()
                  ? std::move(parts[0])
                  : merged(wanted.rows.metric, wanted.query_count(), wanted.candidates(), parts));
}

std::string DeviceRows::shown() const { return device_.id() + (used_cpu_ ? " and cpu" : ""); }

}  // namespace prism::search
