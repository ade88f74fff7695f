// IvfSearcher: searches the lists of a segment whose centers are nearest to the query.
//
// The rows of a segment are in the order of their lists, so that a list is a range of rows and the
// scans are those of an exact search (IVF: inverted file, Sivic and Zisserman, 2003).
#pragma once

#include "search/methods/lists.h"
#include "search/methods/searcher.h"

namespace prism::search {

// Makes a vector comparable with centers: a direction for cosine, bits as numbers for hamming.
void prepare_for_lists(Metric metric, std::span<float> vector);

class IvfSearcher : public Searcher {
 public:
  // For a segment whose rows were put into the order of the lists. Measures it.
  static std::unique_ptr<Searcher> build(const Lists& lists, Metric metric, const Wanted& all,
                                         const CodeSpace::RowReader& row);
  // Null if there are no sections of lists. Throws kCorruptFile if they do not fit together.
  static std::unique_ptr<Searcher> open(Metric metric, uint64_t width, uint64_t rows,
                                        const std::vector<NamedSection>& sections);

  Method method() const override { return Method::ivf; }
  const char* effort_name() const override { return "lists"; }
  uint64_t largest_effort() const override { return lists(); }
  bool prefers_scan(const Wanted& wanted) const override;
  Found search(const Wanted& wanted) const override;
  std::optional<std::vector<cpu::RowRange>> scanned(const Wanted& wanted,
                                                    const RowScan& scan) const override;
  std::vector<NamedSection> sections() const override;

 private:
  IvfSearcher(Metric metric, uint64_t width) : metric_(metric), width_(width) {}
  uint64_t lists() const { return begin_.count<uint32_t>() - 1; }

  Metric metric_;
  uint64_t width_;
  Section centers_, begin_;
};

}  // namespace prism::search
