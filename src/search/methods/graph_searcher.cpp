// Builds and opens graphs of segments, and searches them.
#include "search/methods/graph_searcher.h"

#include <algorithm>

#include "prism/error.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

// Rows that are kept out of the graph while it is measured: their mean recall is known to 0.5%.
constexpr uint64_t kHeldBack = 500;
// Rows that a walk compares for each that it keeps, measured on GloVe and SIFT vectors.
constexpr uint64_t kComparedPerKept = 20;

[[noreturn]] void corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, "the graph has " + what);
}

}  // namespace

std::unique_ptr<Searcher> GraphSearcher::build(const GraphSettings& settings, Metric metric,
                                               const Wanted& all, const CodeSpace::RowReader& row) {
  const uint64_t rows = all.rows.count;
  GraphBuilder builder(cpu_pool(), settings, CodeSpace::fit(metric, all.width, rows, row), rows,
                       std::min(kHeldBack, rows / 20), row);
  std::unique_ptr<GraphSearcher> made(new GraphSearcher(builder.data()));
  measure(*made, all, builder.held_back(), row);
  builder.finish();
  made->codes_ = std::move(builder.codes);
  made->links_ = std::move(builder.links);
  made->upper_rows_ = std::move(builder.upper_rows);
  made->upper_links_ = std::move(builder.upper_links);
  return made;
}

std::vector<NamedSection> GraphSearcher::sections() const {
  return {{"graph space", Section::of(data_.space.text())},
          {"graph codes", codes_},
          {"graph links", links_},
          {"graph upper rows", upper_rows_},
          {"graph upper links", upper_links_},
          {"graph curve", Section::of(curve.text())}};
}

std::unique_ptr<Searcher> GraphSearcher::open(Metric metric, uint64_t width, uint64_t rows,
                                              const std::vector<NamedSection>& sections) {
  const auto find = [&](const char* name) {
    const auto found = std::ranges::find(sections, name, &NamedSection::name);
    return found == sections.end() ? Section() : found->section;
  };
  const Section space = find("graph space");
  if (space.bytes() == 0) return nullptr;
  std::unique_ptr<GraphSearcher> made(
      new GraphSearcher(GraphData(CodeSpace::parse(metric, width, space.span()))));
  made->codes_ = find("graph codes");
  made->links_ = find("graph links");
  made->upper_rows_ = find("graph upper rows");
  made->upper_links_ = find("graph upper links");
  GraphData& data = made->data_;
  const std::vector<uint32_t> sizes = layer_sizes(rows);
  const uint64_t upper = sizes.size() > 1 ? sizes[1] : 0;
  if (made->codes_.bytes() != rows * data.space.bytes()) corrupt("codes of a wrong size");
  if (made->upper_rows_.bytes() != upper * sizeof(uint32_t)) corrupt("too few or many upper rows");
  for (uint64_t i = 0; i < upper; ++i)
    if (made->upper_rows_.as<uint32_t>()[i] >= rows) corrupt("an upper row that does not exist");
  const uint64_t row_bytes = rows == 0 ? 0 : made->links_.bytes() / rows;
  if (row_bytes == 0 || row_bytes > 4096 || row_bytes % 8 != 0 ||
      made->links_.bytes() != rows * row_bytes)
    corrupt("links of a wrong size");
  const auto slots = static_cast<uint32_t>(row_bytes / sizeof(uint32_t));
  data.codes = made->codes_.as<int8_t>();
  data.upper_rows = made->upper_rows_.as<uint32_t>();
  data.layers.push_back({sizes[0], slots, made->links_.as<uint32_t>()});
  const uint32_t* at = made->upper_links_.as<uint32_t>();
  uint64_t needed = 0;
  for (size_t l = 1; l < sizes.size(); ++l) {
    data.layers.push_back({sizes[l], slots / 2, at + needed});
    needed += uint64_t{sizes[l]} * (slots / 2);
  }
  if (made->upper_links_.bytes() != needed * sizeof(uint32_t))
    corrupt("upper links of a wrong size");
  if (const Section measured = find("graph curve"); measured.bytes() > 0)
    made->curve = Curve::parse(measured.text());
  return made;
}

bool GraphSearcher::prefers_scan(const Wanted& wanted) const {
  const uint64_t kept = std::max(wanted.effort, wanted.count) * wanted.rows.count /
                        std::max<uint64_t>(1, wanted.allowed);
  return kept * kComparedPerKept >= wanted.allowed;
}

void GraphSearcher::search_one(const Wanted& wanted, uint64_t query, WalkRoom& room,
                               cpu::NearRow* out) const {
  const std::span<const float> vector = wanted.query(query);
  std::vector<int8_t> code(data_.space.bytes());
  if (!data_.space.encode_query({vector.begin(), vector.end()}, code.data())) return;
  walk(data_, {code.data(), false}, 0, std::max(wanted.effort_for_allowed(), wanted.count), room);
  // Codes are rounded, so that some more than wanted are ranked.
  const uint64_t most = wanted.count + wanted.count / 2 + 8;
  const cpu::NearestRows& rows = wanted.exact ? *wanted.exact : wanted.rows;
  std::vector<uint64_t> candidates;
  for (size_t i = 0; i < room.pool.size() && candidates.size() < most; ++i) {
    const uint32_t row = room.pool.node(i);
    if (!wanted.rows.allows(row)) continue;
    __builtin_prefetch(rows.row(row));
    candidates.push_back(row);
  }
  const std::vector<std::byte> converted =
      query_for(wanted.exact ? DType::f32 : wanted.type, vector);
  const Found best = cpu::rank_rows(rows, converted.data(), candidates);
  std::copy_n(best.begin(), std::min<uint64_t>(wanted.count, best.size()), out);
}

Found GraphSearcher::search(const Wanted& wanted) const {
  Found found(wanted.query_count() * wanted.count);
  cpu_pool().parallel_for(wanted.query_count(), 1, [&](uint64_t first, uint64_t last) {
    thread_local WalkRoom room;
    for (uint64_t q = first; q < last; ++q)
      search_one(wanted, q, room, found.data() + q * wanted.count);
  });
  return found;
}

}  // namespace prism::search
