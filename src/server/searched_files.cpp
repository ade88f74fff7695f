// Answers /search from an index of files.
#include "server/searched_files.h"

#include <mutex>

#include "prism/file_search.h"
#include "search/files/search_json.h"

namespace prism::server {

struct SearchedFiles::State {
  std::mutex mutex;
  search::FileIndex index;
  LoadEmbedder load_embedder;
  std::shared_ptr<const search::PassageEmbedder> embedder = nullptr;
  bool has_loaded = false;
};

SearchedFiles::SearchedFiles(const std::string& index, LoadEmbedder load_embedder)
    : state_(new State{{}, search::FileIndex::open(index), std::move(load_embedder)}) {}

SearchedFiles::~SearchedFiles() = default;

Json SearchedFiles::answer(const JsonView& request) {
  search::FileSearchOptions options;
  const std::string query = request["query"].string();
  options.count = static_cast<uint64_t>(request["n"].integer_or(10, 1, 1000));
  options.ranking = search::ranking_named(request["rank"].string_or("hybrid"));
  options.only = search::kind_named(request["only"].string_or(""));
  options.under = request["path"].string_or("");
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.index.refresh();
  if (options.ranking != search::Ranking::words && !s.has_loaded && s.index.info().vectors > 0) {
    s.embedder = s.load_embedder();
    s.has_loaded = true;
  }
  options.embedder = s.embedder.get();
  return search::result_json(s.index.search(query, options));
}

}  // namespace prism::server
