// The endpoints of Ollama's API that describe models, and how long they stay loaded.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "llm/chat_format/chat_format.h"
#include "llm/tokenizer/fill_in_middle.h"
#include "server/api/ollama.h"
#include "server/version.h"

namespace prism::server {
namespace {

constexpr std::time_t kForEver = std::time_t{100} * 365 * 86400;  // as clients see it

// "135M": the weights of the model.
std::string parameter_size(const llm::GgufFile& file) {
  double count = 0;
  for (const llm::GgufTensor& each : file.tensors())
    count += static_cast<double>(each.shape.elements());
  if (count >= 1e9) return fmt::format("{:.1f}B", count / 1e9);
  return count >= 1e6 ? fmt::format("{:.0f}M", count / 1e6) : fmt::format("{:.0f}K", count / 1e3);
}

// "Q4_K": the type of most of the bytes.
std::string main_type(const llm::GgufFile& file) {
  std::map<std::string, uint64_t> bytes;
  for (const llm::GgufTensor& each : file.tensors()) bytes[each.type_name()] += each.bytes;
  std::string name;
  uint64_t most = 0;
  for (const auto& [type, sum] : bytes)
    if (sum > most) {
      most = sum;
      name = type;
    }
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string modified(const ServedModel& model) {
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(model.path(), failed);
  if (failed) return time_text(0);
  return time_text(std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(time)));
}

Json details_json(const llm::GgufFile& file) {
  const std::string family(file.string_or("general.architecture", ""));
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", family},
          {"families", std::vector<std::string>{family}},
          {"parameter_size", parameter_size(file)},
          {"quantization_level", main_type(file)}};
}

Json model_json(const ServedModel& model) {
  return {{"name", model.name()},           {"model", model.name()},
          {"modified_at", modified(model)}, {"size", model.file().file_bytes()},
          {"digest", model.digest()},       {"details", details_json(model.file())}};
}

// Numbers and texts of the file's metadata; arrays are null, as in Ollama's short form.
Json metadata_json(const llm::GgufFile& file) {
  Json json = Json::object();
  for (const auto& [key, value] : file.metadata()) {
    Json& to = json[std::string(key)];
    if (const auto text = value.string())
      to = std::string(*text);
    else if (const auto flag = value.boolean())
      to = *flag;
    else if (const auto integer = value.integer())
      to = *integer;
    else if (const auto number = value.number())
      to = *number;
  }
  return json;
}

Json capabilities(const ServedModel& model) {
  Json list = Json::array();
  if (model.makes_embeddings()) {
    list.push_back("embedding");
    return list;
  }
  list.push_back("completion");
  const std::string& text = model.chat_template();
  if (text.find("tools") != text.npos) list.push_back("tools");
  if (llm::ChatFormat::of(text).thinks) list.push_back("thinking");
  if (llm::FillInMiddle::of(model.file(), model.tokenizer())) list.push_back("insert");
  return list;
}

// "5m", "1h30m", "-1", "300ms".
double read_duration(const JsonView& field) {
  std::string_view text = field.string();
  const auto fail = [&] {
    field.fail(fmt::format("is \"{}\"; it must be a time such as 300, \"5m\" or \"1h30m\"",
                           field.string()));
  };
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  double seconds = 0;
  if (text.empty()) fail();
  while (!text.empty()) {
    double number = 0;
    if (!std::isdigit(static_cast<unsigned char>(text.front())) && text.front() != '.') fail();
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc()) fail();
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    size_t letters = 0;
    while (letters < text.size() && std::isalpha(static_cast<unsigned char>(text[letters])))
      ++letters;
    const std::string_view unit = text.substr(0, letters);
    text.remove_prefix(letters);
    const double scale = unit == "h"                   ? 3600
                         : unit == "m"                 ? 60
                         : unit == "s" || unit.empty() ? 1
                         : unit == "ms"                ? 1e-3
                                                       : -1;
    if (scale < 0) fail();
    seconds += number * scale;
  }
  return is_negative ? -seconds : seconds;
}

}  // namespace

std::shared_ptr<ServedModel> ollama_model(const ApiCall& call, bool for_embeddings) {
  std::string name = call.body[call.body["model"] ? "model" : "name"].string_or("");
  if (name.ends_with(":latest")) name.resize(name.size() - 7);
  const ModelList& models = call.context.models;
  return for_embeddings ? models.find_or_embedder(name) : models.find(name);
}

KeepAlive::KeepAlive(const ApiCall& call) {
  if (const JsonView field = call.body["keep_alive"])
    seconds_ = std::min(field.is_string() ? read_duration(field) : field.number(),
                        static_cast<double>(kForEver));
}

void KeepAlive::apply(Engine& engine, const ServedModel& model) const {
  if (seconds_) engine.keep(model.name(), *seconds_);
}

void ollama_tags(const ApiCall& call) {
  Json list = Json::array();
  for (const auto& each : call.context.models.all())
    if (each->is_readable()) list.push_back(model_json(*each));
  Json json = Json::object();
  json["models"] = std::move(list);
  send_json(call.response, json);
}

void ollama_ps(const ApiCall& call) {
  const EngineState state = call.context.engine.state();
  Json list = Json::array();
  for (const EngineState::Loaded& each : state.models) {
    Json json = model_json(*call.context.models.find_or_embedder(each.model));
    json["size"] = each.facts.memory_bytes;
    json["size_vram"] = each.facts.device.starts_with("cpu") ? 0 : each.facts.memory_bytes;
    json["context_length"] = each.facts.context;
    const std::time_t left =
        each.expires_seconds < 0 ? kForEver : static_cast<std::time_t>(each.expires_seconds);
    json["expires_at"] = time_text(std::time(nullptr) + left);
    list.push_back(std::move(json));
  }
  Json json = Json::object();
  json["models"] = std::move(list);
  send_json(call.response, json);
}

void ollama_show(const ApiCall& call) {
  const auto model = ollama_model(call);
  Json json = {{"modelfile", fmt::format("FROM {}\n", model->path())},
               {"parameters", ""},
               {"template", model->chat_template()}};
  json["details"] = details_json(model->file());
  json["model_info"] = metadata_json(model->file());
  json["capabilities"] = capabilities(*model);
  json["modified_at"] = modified(*model);
  send_json(call.response, json);
}

void ollama_version(const ApiCall& call) { send_json(call.response, {{"version", version()}}); }

}  // namespace prism::server
