// Opens and searches lists.
#include "search/methods/ivf_searcher.h"

#include <algorithm>
#include <cmath>

#include "prism/error.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

constexpr uint64_t kHeldBack = 500;

[[noreturn]] void corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, "the lists have " + what);
}

}  // namespace

void prepare_for_lists(Metric metric, std::span<float> vector) {
  if (metric == Metric::hamming) {
    for (float& value : vector) value = value > 0 ? 1.0f : 0.0f;
  } else if (metric == Metric::cosine) {
    double squares = 0;
    for (const float value : vector) squares += static_cast<double>(value) * value;
    if (squares > 0)
      for (float& value : vector) value = static_cast<float>(value / std::sqrt(squares));
  }
}

std::unique_ptr<Searcher> IvfSearcher::build(const Lists& lists, Metric metric, const Wanted& all,
                                             const CodeSpace::RowReader& row) {
  std::unique_ptr<IvfSearcher> made(new IvfSearcher(metric, all.width));
  made->centers_ = Section::of(lists.centers);
  made->begin_ = Section::of(lists.begin);
  std::vector<uint32_t> held_back;
  const uint64_t count = std::min(kHeldBack, all.rows.count / 20);
  for (uint64_t i = 0; i < count; ++i)
    held_back.push_back(static_cast<uint32_t>(i * all.rows.count / count));
  measure(*made, all, held_back, row);
  return made;
}

std::unique_ptr<Searcher> IvfSearcher::open(Metric metric, uint64_t width, uint64_t rows,
                                            const std::vector<NamedSection>& sections) {
  const auto find = [&](const char* name) {
    const auto found = std::ranges::find(sections, name, &NamedSection::name);
    return found == sections.end() ? Section() : found->section;
  };
  std::unique_ptr<IvfSearcher> made(new IvfSearcher(metric, width));
  made->centers_ = find("ivf centers");
  made->begin_ = find("ivf lists");
  if (made->centers_.bytes() == 0) return nullptr;
  const uint64_t lists = made->centers_.bytes() / (width * sizeof(float));
  if (lists == 0 || made->centers_.bytes() != lists * width * sizeof(float) ||
      made->begin_.bytes() != (lists + 1) * sizeof(uint32_t))
    corrupt("a wrong size");
  const auto* const begin = made->begin_.as<uint32_t>();
  for (uint64_t l = 0; l < lists; ++l)
    if (begin[l] > begin[l + 1]) corrupt("no order");
  if (begin[0] != 0 || begin[lists] != rows) corrupt("other rows than the vectors");
  if (const Section measured = find("ivf curve"); measured.bytes() > 0)
    made->curve = Curve::parse(measured.text());
  return made;
}

std::vector<NamedSection> IvfSearcher::sections() const {
  return {
      {"ivf centers", centers_}, {"ivf lists", begin_}, {"ivf curve", Section::of(curve.text())}};
}

bool IvfSearcher::prefers_scan(const Wanted& wanted) const {
  return 2 * wanted.effort_for_allowed() >= lists();
}

std::optional<std::vector<cpu::RowRange>> IvfSearcher::scanned(const Wanted& wanted,
                                                               const RowScan& scan) const {
  const uint64_t count = wanted.query_count();
  const uint64_t probes = std::clamp<uint64_t>(wanted.effort_for_allowed(), 1, lists());
  std::vector<float> queries(wanted.queries.begin(), wanted.queries.end());
  for (uint64_t q = 0; q < count; ++q)
    prepare_for_lists(metric_, std::span(queries).subspan(q * width_, width_));
  cpu::NearestRows centers;
  centers.metric = metric_ == Metric::dot ? Metric::dot : Metric::l2;
  centers.data = centers_.data();
  centers.count = lists();
  centers.width = width_;
  const Found nearest = scan(centers, queries, probes);
  std::vector<cpu::RowRange> all(lists());
  const auto* const begin = begin_.as<uint32_t>();
  for (uint64_t i = 0; i < nearest.size(); ++i)
    if (nearest[i].is_row())
      all[nearest[i].row].queries.push_back(static_cast<uint32_t>(i / probes));
  for (uint64_t l = 0; l < lists(); ++l) {
    all[l].begin = begin[l];
    all[l].end = begin[l + 1];
  }
  std::erase_if(all, [](const cpu::RowRange& each) {
    return each.queries.empty() || each.begin == each.end;
  });
  return all;
}

Found IvfSearcher::search(const Wanted& wanted) const {
  return rescored(wanted, cpu::nearest_in(cpu_pool(), wanted.rows, scan_queries(wanted).data(),
                                          wanted.query_count(), wanted.candidates(),
                                          *scanned(wanted, scan_rows)));
}

}  // namespace prism::search
