// The index of files behind /search.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"

namespace prism::search {
struct PassageEmbedder;
}

namespace prism::server {

// Opened when first needed, and again when `prism index` has changed it. Functions may be called
// from several threads.
class SearchedFiles {
 public:
  using LoadEmbedder = std::function<std::shared_ptr<const search::PassageEmbedder>()>;
  // Throws what FileIndex::open throws. load_embedder may return null; it is called once, by the
  // first search that needs it.
  SearchedFiles(const std::string& index, LoadEmbedder load_embedder);
  ~SearchedFiles();

  // {"query", "n", "rank", "only", "path"} to what search::result_json writes.
  Json answer(const JsonView& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::server
