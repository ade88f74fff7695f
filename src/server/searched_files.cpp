// Answers /search from an index of files.
#include "server/searched_files.h"

#include <mutex>

#include <fmt/format.h>

#include "prism/error.h"
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

namespace {

// Reads a name, and names the field in the error of a wrong one.
template <class Parse>
auto named(const JsonView& field, const char* otherwise, Parse&& parse) {
  const std::string name = field.string_or(otherwise);
  try {
    return parse(name);
  } catch (const Error& error) {
    field.fail(fmt::format("is \"{}\": {}", name, error.what()));
  }
}

}  // namespace

Json SearchedFiles::answer(const JsonView& request) {
  search::FileSearchOptions options;
  const std::string query = request["query"].string();
  if (query.find_first_not_of(" \t\r\n") == query.npos)
    request["query"].fail("is empty; it must be a question or words");
  options.count = static_cast<uint64_t>(request["n"].integer_or(10, 1, 1000));
  options.ranking = named(request["rank"], "hybrid", search::ranking_named);
  options.only = named(request["only"], "", search::kind_named);
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
