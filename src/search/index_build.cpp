// Makes the structures of a method for the segments of an index.
#include <algorithm>

#include <fmt/format.h>

#include "prism/device.h"
#include "prism/error.h"
#include "search/index_state.h"
#include "search/methods/graph_searcher.h"
#include "search/methods/ivf_searcher.h"

namespace prism::search {

namespace {

// Fewer rows are scanned as fast as a method finds them.
constexpr uint64_t kLeastRows = 1000;
// Rows of a commit that get structures of their own. A scan of fewer takes below a millisecond.
constexpr uint64_t kLeastCommitted = 20000;

void check(const BuildOptions& options) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, "build: " + what);
  };
  if (options.links < 4 || options.links > 128 || options.links % 2 != 0)
    fail(fmt::format("{} links; there must be an even number from 4 to 128", options.links));
  if (options.effort < 8 || options.effort > 4096)
    fail(fmt::format("an effort of {}; it must be 8 to 4,096", options.effort));
}

}  // namespace

const char* method_name(Method method) {
  return method == Method::graph ? "graph" : method == Method::ivf ? "ivf" : "exact";
}

std::optional<Method> parse_method(std::string_view name) {
  for (const Method method : {Method::exact, Method::ivf, Method::graph})
    if (name == method_name(method)) return method;
  return std::nullopt;
}

Segment with_method(Segment segment, const IndexOptions& options, const BuildOptions& how) {
  segment.set_searcher(nullptr);
  if (how.method == Method::exact || segment.rows() < kLeastRows) return segment;
  if (how.method == Method::ivf) {
    const Lists lists =
        make_lists(Device::named(how.device), options.metric, options.width, segment.rows(),
                   how.lists, [&](uint64_t row) { return segment.vector(row); });
    segment = segment.reordered(lists.rows);
    segment.set_searcher(IvfSearcher::build(lists, options.metric, segment.wanted(),
                                            [&](uint64_t row) { return segment.vector(row); }));
  } else {
    const GraphSettings settings{static_cast<uint32_t>(how.links), how.effort};
    segment.set_searcher(GraphSearcher::build(settings, options.metric, segment.wanted(),
                                              [&](uint64_t row) { return segment.vector(row); }));
  }
  return segment;
}

Segment Index::State::joined() const {
  std::vector<Segment::Source> rows;
  for (const Segment& segment : segments)
    for (const uint32_t row : segment.added_order())
      if (segment.is_alive(row)) rows.push_back({&segment, row});
  return Segment::gathered(options, rows);
}

Method Index::State::method() const {
  const Segment* const largest = largest_with_method();
  return largest ? largest->searcher()->method() : Method::exact;
}

const Segment* Index::State::largest_with_method() const {
  const Segment* largest = nullptr;
  for (const Segment& segment : segments)
    if (segment.searcher() && (!largest || segment.rows() > largest->rows())) largest = &segment;
  return largest;
}

void Index::State::build_committed() {
  BuildOptions how = built;
  how.method = method();
  if (how.method == Method::exact) return;
  for (size_t s = placed; s < segments.size(); ++s) {
    if (segments[s].rows() < kLeastCommitted || segments[s].searcher()) continue;
    segments[s] = with_method(std::move(segments[s]), options, how);
    ids.reset();  // rows may be in another order
  }
}

void Index::build(const BuildOptions& how) {
  check(how);
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  state_->built = how;
  state_->replace_all(with_method(state_->joined(), state_->options, how));
}

}  // namespace prism::search
