// Answers /search from an index of files.
#include "server/searched_files.h"

#include "search/files/search_json.h"

namespace prism::server {

SearchedFiles::SearchedFiles(const std::string& index, LoadEmbedder load_embedder)
    : index_(search::FileIndex::open(index)), load_embedder_(std::move(load_embedder)) {}

Json SearchedFiles::answer(const JsonView& request) {
  search::FileSearchOptions options;
  const std::string query = request["query"].string();
  options.count = static_cast<uint64_t>(request["n"].integer_or(10, 1, 1000));
  options.ranking = search::ranking_named(request["rank"].string_or("hybrid"));
  options.only = search::kind_named(request["only"].string_or(""));
  options.under = request["path"].string_or("");
  const std::lock_guard lock(mutex_);
  index_.refresh();
  if (options.ranking != search::Ranking::words && !has_loaded_ && index_.info().vectors > 0) {
    embedder_ = load_embedder_();
    has_loaded_ = true;
  }
  options.embedder = embedder_.get();
  return search::result_json(index_.search(query, options));
}

}  // namespace prism::server
