// Endpoints of the server itself, by the names of llama.cpp's server.
#include <algorithm>

#include "base/utf8.h"
#include "prism/device.h"
#include "runtime/driver.h"
#include "server/api/api.h"
#include "server/api/chat_request.h"
#include "server/api/generation_settings.h"
#include "server/api/request_fields.h"
#include "server/version.h"

namespace prism::server {
namespace {

// A value of "a=1&b=2", decoded; empty if absent.
std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    std::string value;
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=') &&
        decode_path(pair.substr(name.size() + 1), value))
      return value;
  }
  return {};
}

// A part of a character is an array of its bytes.
Json piece_json(const std::string& piece) {
  if (utf8_valid_end(piece, 0) == piece.size()) return piece;
  Json bytes = Json::array();
  for (const char each : piece) bytes.push_back(static_cast<unsigned char>(each));
  return bytes;
}

Json placement_json(const EngineModel::Facts& facts) {
  Json list = Json::array();
  for (const EngineModel::Share& each : facts.placement)
    list.push_back({{"id", each.device},
                    {"name", each.device_name},
                    {"layers", each.layers},
                    {"weight_bytes", each.weight_bytes},
                    {"cache_bytes", each.cache_bytes},
                    {"work_bytes", each.work_bytes}});
  return list;
}

}  // namespace

void native_search(const ApiCall& call) {
  if (!call.context.search_files)
    throw ApiError(404, "this server searches no files; start it with prism serve --search FOLDER");
  send_json(call.response, call.context.search_files(call.body));
}

void native_health(const ApiCall& call) {
  if (!call.context.is_loading) return send_json(call.response, {{"status", "ok"}});
  Json error = {{"code", 503}, {"message", "Loading model"}, {"type", "unavailable_error"}};
  Json json = Json::object();
  json["error"] = std::move(error);
  send_json(call.response, json, 503);  // as llama.cpp's server has it
}

void native_tokenize(const ApiCall& call) {
  const JsonView& body = call.body;
  const auto model = call.context.models.find(body["model"].string_or(""));
  const std::vector<int32_t> tokens = model->tokenizer().encode(
      body["content"].string_or(""), {.add_special = body["add_special"].boolean_or(false),
                                      .parse_special = body["parse_special"].boolean_or(true)});
  Json list = Json::array();
  const bool with_pieces = body["with_pieces"].boolean_or(false);
  for (const int32_t token : tokens) {
    if (!with_pieces) {
      list.push_back(token);
      continue;
    }
    list.push_back({{"id", token}, {"piece", piece_json(model->tokenizer().piece(token, true))}});
  }
  Json json = Json::object();
  json["tokens"] = std::move(list);
  send_json(call.response, json);
}

void native_detokenize(const ApiCall& call) {
  const JsonView& body = call.body;
  const auto model = call.context.models.find(body["model"].string_or(""));
  std::vector<int32_t> tokens;
  for (const JsonView& each : body["tokens"].items())
    tokens.push_back(
        static_cast<int32_t>(each.integer(0, static_cast<int64_t>(model->tokenizer().size()) - 1)));
  send_json(call.response, {{"content", model->tokenizer().decode(tokens, true)}});
}

void native_apply_template(const ApiCall& call) {
  const JsonView& body = call.body;
  const auto model = call.context.models.find(body["model"].string_or(""));
  ChatRequest chat;
  chat.messages = read_messages(body["messages"], *model);
  chat.tools = read_tools(body["tools"]);
  chat.add_generation_prompt = body["add_generation_prompt"].boolean_or(true);
  read_template_variables(body["chat_template_kwargs"], body["reasoning_effort"], chat);
  send_json(call.response, {{"prompt", chat_text(chat, *model)}});
}

void native_props(const ApiCall& call) {
  const auto model = call.context.models.find(query_value(call.request.query, "model"));
  const EngineState state = call.context.engine.state();
  const auto loaded = std::ranges::find(state.models, model->name(), &EngineState::Loaded::model);
  Json json = {{"model_alias", model->name()},
               {"model_path", model->path()},
               {"total_slots", state.parallel},
               {"chat_template", model->chat_template()}};
  const llm::Tokenizer& tokenizer = model->tokenizer();
  const auto text_of = [&](int32_t id) { return id < 0 ? "" : std::string(tokenizer.text(id)); };
  json["bos_token"] = text_of(tokenizer.bos());
  json["eos_token"] = text_of(tokenizer.eos());
  Json settings = Json::object();
  const llm::GenerationOptions usual = default_options(*model);
  settings["params"] = generation_settings(usual, tokenizer);
  // A seed that every request draws anew is -1, as in requests.
  if (usual.sampler.seed != default_options(*model).sampler.seed) settings["params"]["seed"] = -1;
  if (loaded != state.models.end()) settings["n_ctx"] = loaded->facts.context;
  json["default_generation_settings"] = std::move(settings);
  json["modalities"] = {{"vision", false}, {"audio", false}};
  json["is_sleeping"] = loaded == state.models.end();  // the next request loads the model
  if (loaded != state.models.end()) {
    const EngineModel::Facts& facts = loaded->facts;
    json["device"] = {{"id", facts.device}, {"name", facts.device_name}, {"why", facts.why}};
    json["layers"] = facts.layers;
    json["placement"] = placement_json(facts);
    json["memory_bytes"] = facts.memory_bytes;
    json["load_seconds"] = facts.load_seconds;
  }
  json["build_info"] = "prism " + version();
  send_json(call.response, json);
}

void native_slots(const ApiCall& call) {
  const EngineState state = call.context.engine.state();
  Json slots = Json::array();
  const auto add = [&](const EngineState::Text& text) {
    Json next = Json::array();
    const int64_t left = text.max_tokens < 0 ? -1 : text.max_tokens - text.generated_tokens;
    next.push_back({{"n_decoded", text.generated_tokens}, {"n_remain", left}});
    Json slot = {{"id", slots.items().size()},
                 {"id_task", text.id == 0 ? Json(-1) : Json(text.id)},
                 {"model", text.model},
                 {"n_ctx", text.context},
                 {"is_processing", text.id != 0},
                 {"n_prompt_tokens", text.prompt_tokens},
                 {"n_decoded", text.generated_tokens},
                 {"n_predict", text.max_tokens}};
    slot["next_token"] = std::move(next);
    slots.push_back(std::move(slot));
  };
  for (const EngineState::Text& each : state.texts) {
    if (slots.items().size() == static_cast<size_t>(state.parallel)) break;
    add(each);
  }
  EngineState::Text idle;
  if (!state.models.empty()) idle.context = state.models.front().facts.context;
  while (slots.items().size() < static_cast<size_t>(state.parallel)) add(idle);
  send_json(call.response, slots);
}

void native_devices(const ApiCall& call) {
  Json list = Json::array();
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) {
      const DeviceInfo info = driver->info();
      list.push_back({{"id", info.id},
                      {"name", info.name},
                      {"backend", info.backend},
                      {"is_software", info.software}});
    }
  Json json = Json::object();
  json["devices"] = std::move(list);
  send_json(call.response, json);
}

}  // namespace prism::server
