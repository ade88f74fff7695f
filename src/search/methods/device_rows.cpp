// Uploads rows and searches them with the fused op.
#include "search/methods/device_rows.h"

#include <algorithm>
#include <future>

#include <fmt/format.h>

#include "cpu/nearest/nearest.h"
#include "prism/error.h"
#include "prism/ops/index.h"
#include "prism/ops/nearest.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

// Parts end at multiples of this, so that words of bitmaps are not shared between them.
constexpr uint64_t kPartRows = 65536;
constexpr uint64_t kPartBytes = uint64_t{1} << 30;
// Memory that stays free for plans and for other work.
constexpr uint64_t kReserveBytes = 64 << 20;
// Queries that share the ranges of all of them.
constexpr uint64_t kSharedQueries = 16;

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

template <class T>
Tensor upload_values(std::span<const T> values, const Shape& shape, const Device& device) {
  return from_bytes(std::as_bytes(values), shape, dtype_of<T>(), device);
}

NearestInputs inputs_of(Metric metric, const Tensor& factors, const Tensor& allowed) {
  NearestInputs more;
  if (factors) (metric == Metric::cosine ? more.norms : more.scales) = factors;
  more.allowed = allowed;
  return more;
}

Tensor query_tensor(const Wanted& wanted, const Device& device) {
  const std::vector<std::byte> bytes = scan_queries(wanted);
  const auto count = static_cast<int64_t>(wanted.query_count());
  const DType type = wanted.rows.metric == Metric::hamming ? DType::u8 : DType::f32;
  return from_bytes(bytes, {count, static_cast<int64_t>(wanted.rows.width)}, type, device);
}

// Joins results [queries][count] of parts.
Found merged(Metric metric, uint64_t queries, uint64_t count, const std::vector<Found>& parts) {
  Found all(queries * count);
  for (uint64_t q = 0; q < queries; ++q) {
    Found rows;
    for (const Found& part : parts) {
      const uint64_t each = part.size() / queries;
      for (uint64_t i = q * each; i < (q + 1) * each; ++i)
        if (part[i].is_row()) rows.push_back(part[i]);
    }
    std::ranges::sort(rows, [&](const cpu::NearRow& a, const cpu::NearRow& b) {
      return cpu::comes_before(metric, a, b);
    });
    std::copy_n(rows.begin(), std::min<uint64_t>(count, rows.size()),
                all.begin() + static_cast<ptrdiff_t>(q * count));
  }
  return all;
}

Found read_results(const std::vector<Tensor>& outputs, uint64_t first) {
  const auto scores = outputs[0].to_vector<float>();
  const auto indices = outputs[1].to_vector<int32_t>();
  Found found(scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    if (indices[i] >= 0) found[i] = {first + static_cast<uint64_t>(indices[i]), scores[i]};
  return found;
}

}  // namespace

void DeviceRows::keep_only(const std::set<uint64_t>& present) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(residents_, [&](const auto& each) { return !present.contains(each.first); });
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
  const uint64_t whole = is_growing ? rows.count / kPartRows * kPartRows : rows.count;
  const uint64_t most =
      std::max<uint64_t>(1, kPartBytes / (kPartRows * row_bytes(rows))) * kPartRows;
  // Halves of what does not fit are tried, down to the smallest part.
  for (uint64_t tried = most; resident.rows < whole && !resident.is_full;) {
    const uint64_t count = std::min(tried, whole - resident.rows);
    std::optional<Part> part = upload_part(part_of(rows, resident.rows, count));
    resident.is_full = !part && count <= kPartRows;
    if (resident.is_full) break;
    if (!part) {
      tried = (count + 1) / 2 / kPartRows * kPartRows;
      tried = std::max(tried, kPartRows);
      continue;
    }
    part->first = resident.rows;
    resident.rows += count;
    resident.parts.push_back(std::move(*part));
  }
  return resident;
}

Found DeviceRows::scan_part(Part& part, const Wanted& wanted, const Tensor& queries) {
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
  if (filtered) {
    const uint64_t words = (part.rows + 31) / 32;
    const auto* const from =
        reinterpret_cast<const int32_t*>(wanted.rows.allowed) + part.first / 32;
    inputs.push_back(upload_values(std::span(from, words), {static_cast<int64_t>(words)}, device_));
  }
  return read_results(found->second(inputs), part.first);
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
      resident.rows -= resident.parts.back().rows;
      resident.parts.pop_back();
      resident.is_full = true;
    }
  }
}

Found DeviceRows::scan_resident(Resident& resident, const Wanted& wanted) {
  // The rest is scanned by the CPU meanwhile.
  std::future<Found> rest;
  used_cpu_ = resident.rows < wanted.rows.count;
  if (used_cpu_)
    rest = std::async(std::launch::async, [&] {
      const cpu::NearestRows rows =
          part_of(wanted.rows, resident.rows, wanted.rows.count - resident.rows);
      Found found = cpu::nearest(cpu_pool(), rows, scan_queries(wanted).data(),
                                 wanted.query_count(), wanted.candidates());
      for (cpu::NearRow& each : found)
        if (each.is_row()) each.row += resident.rows;
      return found;
    });
  std::vector<Found> parts;
  if (!resident.parts.empty()) {
    const Tensor queries = query_tensor(wanted, device_);
    for (Part& part : resident.parts) parts.push_back(scan_part(part, wanted, queries));
  }
  if (rest.valid()) parts.push_back(rest.get());
  return rescored(wanted,
                  merged(wanted.rows.metric, wanted.query_count(), wanted.candidates(), parts));
}

Found DeviceRows::scan_ranges(uint64_t identity, const Wanted& wanted,
                              const std::vector<cpu::RowRange>& ranges) {
  Found all;
  Wanted some = wanted;
  for (uint64_t first = 0; first < wanted.query_count(); first += kSharedQueries) {
    const uint64_t count = std::min(kSharedQueries, wanted.query_count() - first);
    some.queries = wanted.queries.subspan(first * wanted.width, count * wanted.width);
    std::vector<uint32_t> rows;
    for (const cpu::RowRange& range : ranges)
      if (std::ranges::any_of(range.queries,
                              [&](uint32_t q) { return q >= first && q < first + count; }))
        for (uint64_t row = range.begin; row < range.end; ++row)
          rows.push_back(static_cast<uint32_t>(row));
    // A copy of more than a quarter costs as much as a scan of everything.
    const Found found = rows.size() * 4 > wanted.rows.count ? scan(identity, false, some)
                                                            : scan_some(identity, some, rows);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

Found DeviceRows::scan_some(uint64_t identity, const Wanted& wanted,
                            const std::vector<uint32_t>& rows) {
  {
    const std::scoped_lock lock(mutex_);
    Resident& resident = upload(identity, false, wanted);
    const uint64_t k = wanted.candidates();
    // All rows in one part: numbers of rows are places in its matrix.
    if (resident.parts.size() == 1 && resident.rows == wanted.rows.count && !rows.empty() &&
        k <= static_cast<uint64_t>(kMaximumNearest)) {
      used_cpu_ = false;
      const Part& part = resident.parts[0];
      // Lengths are powers of two, so that there are few plans; what is too much is not allowed.
      const uint64_t length = std::bit_ceil(std::max<uint64_t>(rows.size(), 32));
      std::vector<int32_t> indices(length, 0), allowed(length / 32, 0);
      for (size_t i = 0; i < rows.size(); ++i) {
        indices[i] = static_cast<int32_t>(rows[i]);
        if (wanted.rows.allows(rows[i])) allowed[i / 32] |= static_cast<int32_t>(1u << i % 32);
      }
      const Tensor chosen = from_vector(indices, {static_cast<int64_t>(length)}, device_);
      const Tensor factors =
          part.factors ? gather_rows(part.factors.unsqueeze(1), chosen).squeeze(1) : Tensor();
      const Nearest best = nearest_rows(
          wanted.rows.metric, query_tensor(wanted, device_), gather_rows(part.matrix, chosen),
          static_cast<int64_t>(k),
          inputs_of(wanted.rows.metric, factors,
                    from_vector(allowed, {static_cast<int64_t>(allowed.size())}, device_)));
      Found found = read_results({best.scores, best.indices}, 0);
      for (cpu::NearRow& each : found)
        if (each.is_row()) each.row = rows[each.row];
      return rescored(wanted, std::move(found));
    }
  }
  return scan(identity, false, wanted);
}

std::string DeviceRows::shown() const { return device_.id() + (used_cpu_ ? " and cpu" : ""); }

}  // namespace prism::search
