// GraphSearcher: searches a segment through a graph.
#pragma once

#include "search/methods/graph_build.h"
#include "search/methods/searcher.h"

namespace prism::search {

class GraphSearcher : public Searcher {
 public:
  // Builds a graph of the rows and measures it. `all` describes the rows, without queries.
  static std::unique_ptr<Searcher> build(const GraphSettings& settings, Metric metric,
                                         const Wanted& all, const CodeSpace::RowReader& row);
  // Null if there are no sections of a graph. Throws kCorruptFile if they do not fit together.
  static std::unique_ptr<Searcher> open(Metric metric, uint64_t width, uint64_t rows,
                                        const std::vector<NamedSection>& sections);

  Method method() const override { return Method::graph; }
  const char* effort_name() const override { return "effort"; }
  uint64_t largest_effort() const override { return 8192; }
  bool prefers_scan(const Wanted& wanted) const override;
  Found search(const Wanted& wanted) const override;
  std::vector<NamedSection> sections() const override;

 private:
  explicit GraphSearcher(GraphData data) : data_(std::move(data)) {}
  void search_one(const Wanted& wanted, uint64_t query, WalkRoom& room, cpu::NearRow* out) const;

  GraphData data_;
  Section codes_, links_, upper_rows_, upper_links_;
};

}  // namespace prism::search
