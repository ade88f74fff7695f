// /v1/models.
#include <algorithm>

#include <fmt/format.h>

#include "server/api/api.h"

namespace prism::server {
namespace {

Json model_json(const ApiContext& context, const ServedModel& model) {
  return {{"id", model.name()},
          {"object", "model"},
          {"created", context.started},
          {"owned_by", "prism"}};
}

}  // namespace

std::shared_ptr<ServedModel> ModelList::find(const std::string& name) const {
  for (const auto& each : models_)
    if (each->name() == name) return each;
  if (name.empty() || models_.size() == 1) return models_.front();
  std::string names;
  for (const auto& each : models_) names += (names.empty() ? "" : ", ") + each->name();
  throw ApiError(404,
                 fmt::format("the model \"{}\" is not served here; there are: {}", name, names),
                 "model", "model_not_found");
}

const ServedModel& ModelList::of_path(const std::string& path) const {
  const std::string name = path.substr(path.find("/models/") + 8);
  for (const auto& each : models_)
    if (each->name() == name) return *each;
  throw ApiError(404, fmt::format("the model \"{}\" is not served here", name), "model",
                 "model_not_found");
}

std::shared_ptr<ServedModel> ModelList::find_or_embedder(const std::string& name) const {
  return embedder_ && embedder_->name() == name ? embedder_ : find(name);
}

std::shared_ptr<ServedModel> ModelList::embedder_for(
    const std::shared_ptr<ServedModel>& model) const {
  return embedder_ && !model->makes_embeddings() ? embedder_ : model;
}

std::shared_ptr<ServedModel> ModelList::reranker(const std::string& name) const {
  std::shared_ptr<ServedModel> model = find(name);
  const auto ranks = [](const auto& each) { return each->is_readable() && each->reranks(); };
  if (name.empty())
    if (const auto found = std::ranges::find_if(models_, ranks); found != models_.end())
      model = *found;
  if (!model->reranks())
    throw ApiError(400,
                   fmt::format("the model \"{}\" has no classification head, so it cannot rank "
                               "texts; serve a reranker, such as bge-reranker-v2-m3",
                               model->name()),
                   "model", "not_supported");
  return model;
}

void openai_models(const ApiCall& call) {
  Json data = Json::array();
  for (const auto& each : call.context.models.all())
    data.push_back(model_json(call.context, *each));
  Json json = {{"object", "list"}};
  json["data"] = std::move(data);
  send_json(call.response, json);
}

void openai_model(const ApiCall& call) {
  const ServedModel& model = call.context.models.of_path(call.request.path);
  send_json(call.response, model_json(call.context, model));
}

}  // namespace prism::server
