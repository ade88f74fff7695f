// Writes results of a search over files as JSON.
#include "search/files/search_json.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::search {
namespace {

Json rank_json(const std::optional<uint64_t>& rank) { return rank ? Json(*rank) : Json(); }

const char* freshness_name(Freshness freshness) {
  switch (freshness) {
    case Freshness::fresh:
      return "fresh";
    case Freshness::changed:
      return "changed";
    case Freshness::missing:
      return "missing";
  }
  return "";
}

}  // namespace

const char* ranking_name(Ranking ranking) {
  switch (ranking) {
    case Ranking::hybrid:
      return "hybrid";
    case Ranking::vectors:
      return "vectors";
    case Ranking::words:
      return "words";
  }
  return "";
}

const char* kind_name(ContentKind kind) { return kind == ContentKind::code ? "code" : "text"; }

Ranking ranking_named(const std::string& name) {
  for (const Ranking ranking : {Ranking::hybrid, Ranking::vectors, Ranking::words})
    if (name == ranking_name(ranking)) return ranking;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("search: there is no ranking {}; hybrid, vectors or words", name));
}

std::optional<ContentKind> kind_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (const ContentKind kind : {ContentKind::code, ContentKind::text})
    if (name == kind_name(kind)) return kind;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("search: there is no kind of files {}; code or text", name));
}

Json result_json(const FileSearchResult& result) {
  Json results = Json::array();
  for (const FoundPassage& each : result.passages) {
    Json marks = Json::array();
    for (const MarkedRange& mark : each.marks) {
      Json pair = Json::array();
      pair.push_back(mark.begin);
      pair.push_back(mark.end);
      marks.push_back(std::move(pair));
    }
    results.push_back({{"path", each.path},
                       {"line", each.best_line},
                       {"first_line", each.first_line},
                       {"last_line", each.last_line},
                       {"kind", kind_name(each.kind)},
                       {"score", each.score},
                       {"context", each.context},
                       {"text", each.text},
                       {"marks", marks},
                       {"word_rank", rank_json(each.word_rank)},
                       {"vector_rank", rank_json(each.vector_rank)},
                       {"freshness", freshness_name(each.freshness)}});
  }
  return {{"ranking", ranking_name(result.ranking)}, {"results", results}};
}

Json info_json(const FileIndexInfo& info) {
  return {{"index", info.path},
          {"roots", Json(info.roots)},
          {"embedder", info.embedder},
          {"files", info.files},
          {"passages", info.passages},
          {"vectors", info.vectors},
          {"file_bytes", info.file_bytes},
          {"updated", info.updated}};
}

}  // namespace prism::search
