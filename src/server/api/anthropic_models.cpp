// /v1/models as Anthropic's API has it, for clients that send the header anthropic-version.
#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "server/api/api.h"

namespace prism::server {
namespace {

constexpr size_t kUsualLimit = 20, kMostModels = 1000;  // of an answer

Json model_json(const ApiContext& context, const ServedModel& model) {
  return {{"type", "model"},
          {"id", model.name()},
          {"display_name", model.name()},
          {"created_at", time_text(context.started)}};
}

// The value of a parameter of the query; empty if there is none.
std::string parameter(const HttpRequest& request, std::string_view name) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    std::string value;
    if (!decode_path(pair.substr(std::min(equals + 1, pair.size())), value))
      throw ApiError(400, fmt::format("{} is not encoded as it must be", name), std::string(name));
    return value;
  }
  return {};
}

size_t read_limit(const HttpRequest& request) {
  const std::string text = parameter(request, "limit");
  if (text.empty()) return kUsualLimit;
  size_t limit = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (failed != std::errc() || end != text.data() + text.size() || limit < 1 || limit > kMostModels)
    throw ApiError(400, fmt::format("limit must be a number from 1 to {}", kMostModels), "limit");
  return limit;
}

using Models = std::span<const std::shared_ptr<ServedModel>>;

// The place of the model that a parameter names; `otherwise` if the parameter is absent.
size_t place_of(const HttpRequest& request, const char* parameter_name, Models models,
                size_t otherwise) {
  const std::string name = parameter(request, parameter_name);
  if (name.empty()) return otherwise;
  const auto found =
      std::ranges::find_if(models, [&](const auto& each) { return each->name() == name; });
  if (found == models.end())
    throw ApiError(400,
                   fmt::format("{}: the model \"{}\" is not served here", parameter_name, name),
                   parameter_name);
  return static_cast<size_t>(found - models.begin());
}

}  // namespace

void anthropic_models(const ApiCall& call) {
  const HttpRequest& request = call.request;
  const Models models = call.context.models.all();
  const size_t limit = read_limit(request), none = models.size();
  const size_t after = place_of(request, "after_id", models, none),
               before = place_of(request, "before_id", models, none);
  if (after != none && before != none)
    throw ApiError(400, "after_id and before_id exclude each other", "after_id");
  // Pages before a model end at it, all others begin after one.
  size_t first = after == none ? 0 : after + 1;
  if (before != none) first = before - std::min(before, limit);
  const size_t last = std::min(first + limit, before);
  Json data = Json::array();
  for (size_t i = first; i < last; ++i) data.push_back(model_json(call.context, *models[i]));
  Json json;
  json["data"] = std::move(data);
  json["has_more"] = before != none ? first > 0 : last < none;
  json["first_id"] = first < last ? Json(models[first]->name()) : Json();
  json["last_id"] = first < last ? Json(models[last - 1]->name()) : Json();
  send_json(call.response, json);
}

void anthropic_model(const ApiCall& call) {
  const ServedModel& model = call.context.models.of_path(call.request.path);
  send_json(call.response, model_json(call.context, model));
}

}  // namespace prism::server
