// /rerank: how relevant documents are to a query, in the formats of Jina and Cohere and of Hugging
// Face's text-embeddings-inference.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "server/api/model_answer.h"

namespace prism::server {
namespace {

constexpr size_t kMaxDocuments = 2048;

struct RerankRequest {
  std::string query;
  std::vector<std::string> documents;
  size_t count = 0;     // how many are returned
  bool is_tei = false;  // a list of index and score
  bool with_text = false;
};

RerankRequest read_request(const JsonView& body) {
  RerankRequest request;
  request.query = body["query"].string();
  request.is_tei = !body["documents"] && body["texts"];
  const JsonView list = request.is_tei ? body["texts"] : body["documents"];
  if (!list.is_array()) list.fail("must be an array of texts");
  for (const JsonView& each : list.items())  // Jina's and Cohere's may be objects
    request.documents.push_back(each.is_object() ? each["text"].string() : each.string());
  if (request.documents.empty()) list.fail("is empty; it must have at least one text");
  if (request.documents.size() > kMaxDocuments)
    list.fail(
        fmt::format("has {} texts; at most {} are read", request.documents.size(), kMaxDocuments));
  const auto all = static_cast<int64_t>(request.documents.size());
  request.count = static_cast<size_t>(std::min(all, body["top_n"].integer_or(all, 1)));
  request.with_text = body[request.is_tei ? "return_text" : "return_documents"].boolean_or(false);
  return request;
}

Json reply(const RerankRequest& request, const llm::Ranking& ranking, const std::string& model) {
  std::vector<size_t> order(request.documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return ranking.scores[i]; });
  order.resize(request.count);
  Json results = Json::array();
  for (const size_t i : order) {
    Json each = {{"index", i}, {request.is_tei ? "score" : "relevance_score", ranking.scores[i]}};
    const std::string& text = request.documents[i];
    if (request.with_text && request.is_tei) each["text"] = text;
    if (request.with_text && !request.is_tei) each["document"] = Json{{"text", text}};
    results.push_back(std::move(each));
  }
  if (request.is_tei) return results;
  return {{"object", "list"},
          {"model", model},
          {"usage", {{"prompt_tokens", ranking.tokens}, {"total_tokens", ranking.tokens}}},
          {"results", std::move(results)}};
}

// What a model refuses is the query: documents are cut.
llm::Ranking ranked(EngineModel& model, const std::string& query,
                    std::span<const std::string> documents) {
  try {
    return model.rerank(query, documents);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw ApiError(400, fmt::format("query cannot be used: {}", error.what()), "query");
  }
}

}  // namespace

void native_rerank(const ApiCall& call) {
  RerankRequest request = read_request(call.body);
  const auto model = call.context.models.reranker(call.body["model"].string_or(""));
  answer_with(
      call, model,
      [&engine = call.context.engine, request = std::move(request), name = model->name(),
       all = llm::Ranking()](EngineModel& on) mutable -> std::optional<HttpReply> {
        const auto left = std::span(request.documents).subspan(all.scores.size());
        const llm::Ranking some = ranked(on, request.query, left);
        all.scores.insert(all.scores.end(), some.scores.begin(), some.scores.end());
        all.tokens += some.tokens;
        engine.count_step(some.tokens);
        if (some.scores.size() < left.size()) return std::nullopt;
        return json_reply(reply(request, all, name));
      },
      openai_error);
}

}  // namespace prism::server
