// The catalogue of an index of files: which files and passages there are, and which of them have a
// word.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "search/files/catalogue_part.h"

namespace prism::search {

struct PassageAt {
  uint32_t part = 0, passage = 0;
  friend bool operator==(PassageAt, PassageAt) = default;
};

struct ScoredPassage {
  PassageAt at;
  double score = 0;
};

// Consists of parts. A file of a later part replaces that of an earlier one.
class Catalogue {
 public:
  using Allowed = std::function<bool(PassageAt)>;

  // The attachments of the index; throws kCorruptFile.
  static Catalogue read(const Index& index, const std::string& path);

  uint64_t files() const { return by_path_.size(); }
  uint64_t passages() const { return alive_passages_; }
  std::optional<FileRecord> find(std::string_view path) const;
  void each_file(const std::function<void(uint32_t part, const FileRecord& file)>& visit) const;
  PassageRecord passage(PassageAt at) const { return parts_[at.part].passage(at.passage); }
  FileRecord file_of(PassageAt at) const;
  bool is_alive(PassageAt at) const;
  void each_passage(const std::function<void(PassageAt, const PassageRecord&)>& visit) const;
  std::vector<PassageAt> with_vector(uint64_t vector_id) const;

  // The passages with the best BM25 scores, best first.
  std::vector<ScoredPassage> best_by_words(const std::vector<std::string>& words, size_t count,
                                           const Allowed& allowed) const;

  // Adds a part to the index; durable after its commit(). Read the catalogue again to see it.
  static void add_part(Index& index, const CataloguePartBuilder& part);
  // Replaces small parts, and those with mostly dead files, by one if there are many. Returns
  // whether it did.
  bool merge_parts(Index& index) const;

 private:
  struct FileAt {
    uint32_t part, file;
  };
  uint64_t dead_passages(size_t part) const;

  std::vector<CataloguePart> parts_;  // oldest first
  std::vector<std::string> names_;    // their attachments
  std::vector<std::vector<bool>> alive_;
  std::vector<uint64_t> alive_in_part_;  // passages
  std::unordered_map<std::string_view, FileAt> by_path_;
  uint64_t alive_passages_ = 0;
};

}  // namespace prism::search
