// Results and facts of a search over files as JSON, for the command, the server and agents.
#pragma once

#include "base/json.h"
#include "prism/file_search.h"

namespace prism::search {

const char* ranking_name(Ranking ranking);
const char* kind_name(ContentKind kind);
// Throw kInvalidArgument naming the option and its values.
Ranking ranking_named(const std::string& name);
std::optional<ContentKind> kind_named(const std::string& name);  // none for an empty name

// {"ranking", "results": [{"path", "line", "first_line", "last_line", "kind", "score", "context",
// "text", "marks", "word_rank", "vector_rank", "freshness"}]}
Json result_json(const FileSearchResult& result);
Json info_json(const FileIndexInfo& info);

}  // namespace prism::search
