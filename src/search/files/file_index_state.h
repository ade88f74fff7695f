// The state behind search::FileIndex.
#pragma once

#include "prism/file_search.h"
#include "search/files/catalogue.h"

namespace prism::search {

// What an index says of itself: the attachment "about".
struct AboutIndex {
  std::string embedder;            // empty: words only
  std::vector<std::string> roots;  // whole paths
  int64_t updated = 0;             // seconds since 1970

  std::string text() const;  // JSON
  static AboutIndex parse(const std::string& path, const Index& index);
};

struct FileIndex::State {
  State(std::string given_path, Index given)
      : path(std::move(given_path)), index(std::move(given)) {
    read();
  }
  void read() {
    about = AboutIndex::parse(path, index);
    catalogue = Catalogue::read(index, path);
  }
  void commit() {  // with `about` as it is now
    index.attach("about", about.text());
    index.commit();
    catalogue = Catalogue::read(index, path);
  }
  // Throws kInvalidArgument if the vectors are another model's.
  void check_embedder(const PassageEmbedder& embedder) const;

  std::string path;
  Index index;
  AboutIndex about;
  Catalogue catalogue;
};

// A file against its record.
Freshness freshness_of(const FileRecord& file);

}  // namespace prism::search
