// Reads the fields that several APIs have in common.
#include "server/api/request_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "llm/generate/known_models.h"

namespace prism::server {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Stands for a share of 0, which leaves one token.
constexpr float kLeastShare = std::numeric_limits<float>::min();
constexpr size_t kMaxPrompts = 1024;
// The engine compares every token of all clients with the texts of one.
constexpr size_t kMaxTexts = 256;

void read(const JsonView& field, float& value, double least = -1e30, double most = 1e30) {
  value = static_cast<float>(field.number_or(value, least, most));
}

void read(const JsonView& field, int32_t& value, int64_t least = INT32_MIN,
          int64_t most = INT32_MAX) {
  value = static_cast<int32_t>(field.integer_or(value, least, most));
}

int32_t read_token(const JsonView& field, const ServedModel& model) {
  return static_cast<int32_t>(field.integer(0, static_cast<int64_t>(model.tokenizer().size()) - 1));
}

// A number, or false for a token that must never come.
float read_bias(const JsonView& field) {
  if (field.json().kind() == Json::Kind::boolean && !field.boolean()) return kNever;
  return static_cast<float>(field.number(-1e30, 1e30));
}

std::vector<std::string> read_texts(const JsonView& field) {
  std::vector<std::string> texts;
  for (const JsonView& each : field.items()) texts.push_back(each.string());
  if (texts.size() > kMaxTexts)
    field.fail(fmt::format("has {} texts; at most {} are read", texts.size(), kMaxTexts));
  return texts;
}

// {"15043": -2.5} or [[15043, -2.5], ["text", false]].
void read_logit_bias(const JsonView& biases, const ServedModel& model,
                     llm::SamplerOptions& sampler) {
  if (!biases) return;
  if (!biases.is_object() && !biases.is_array())
    biases.fail("must be an object of tokens and numbers, or an array of such pairs");
  const auto add_text = [&](const std::string& text, float bias) {
    for (const int32_t token : model.tokenizer().encode(text, {.add_special = false}))
      sampler.logit_bias.emplace_back(token, bias);
  };
  const size_t count = biases.is_object() ? biases.members().size() : biases.items().size();
  if (count > model.tokenizer().size())
    biases.fail(
        fmt::format("has {} biases; the model has {} tokens", count, model.tokenizer().size()));
  if (biases.is_object()) {
    for (const auto& [key, value] : biases.members()) {
      int32_t token = 0;
      const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), token);
      if (failed != std::errc() || end != key.data() + key.size()) {
        add_text(key, read_bias(value));
      } else {
        if (token < 0 || static_cast<size_t>(token) >= model.tokenizer().size())
          value.fail(fmt::format("is for token {}; the model has {} tokens", token,
                                 model.tokenizer().size()));
        sampler.logit_bias.emplace_back(token, read_bias(value));
      }
    }
    return;
  }
  for (const JsonView& each : biases.items()) {
    const std::vector<JsonView> pair = each.items();
    if (pair.size() != 2) each.fail("must be a token and a number");
    if (pair[0].is_string())
      add_text(pair[0].string(), read_bias(pair[1]));
    else
      sampler.logit_bias.emplace_back(read_token(pair[0], model), read_bias(pair[1]));
  }
}

// A list of names. A text, llama.cpp's form with one letter for each sampler, is passed over.
void read_samplers(const JsonView& names, llm::SamplerOptions& sampler) {
  if (names.is_string()) return;
  std::string joined;
  for (const JsonView& each : names.items()) {
    if (each.string() == "penalties" || each.string() == "dry") continue;  // always first
    joined += (joined.empty() ? "" : ",") + (each.string() == "typ_p" ? "typical" : each.string());
  }
  if (joined.empty()) return;
  try {
    sampler.stages = llm::parse_sampler_stages(joined);
  } catch (const Error& error) {
    names.fail(fmt::format("cannot be used: {}", error.what()));
  }
}

void read_penalties(const JsonView& body, llm::SamplerOptions& s) {
  read(body["repeat_penalty"], s.penalties.repeat, 0.01, 100);
  read(body["presence_penalty"], s.penalties.presence, -100, 100);
  read(body["frequency_penalty"], s.penalties.frequency, -100, 100);
  read(body["repeat_last_n"], s.penalties.window, -1);
  read(body["dry_multiplier"], s.dry.multiplier, 0, 100);
  read(body["dry_base"], s.dry.base, 1, 100);
  read(body["dry_allowed_length"], s.dry.allowed_length, 0);
  read(body["dry_penalty_last_n"], s.dry.window, -1);
  if (const JsonView breakers = body["dry_sequence_breakers"])
    s.dry_breakers = read_texts(breakers);
}

std::string schema_text(const JsonView& schema) {
  if (!schema.is_object() && schema.json().kind() != Json::Kind::boolean)
    schema.fail("is not a JSON schema; it must be an object");
  return schema.json().dump();
}

// Names the field in the errors of grammars and schemas.
template <typename Make>
llm::Grammar grammar_of(const JsonView& field, Make&& make) {
  try {
    return make();
  } catch (const JsonError&) {
    throw;
  } catch (const Error& error) {
    field.fail(fmt::format("cannot be used: {}", error.what()));
  }
}

// schema: where the one of json_schema is.
void read_format(const JsonView& format, const JsonView& schema, llm::GenerationOptions& options) {
  static const Json kAnyObject = {{"type", "object"}};
  const std::string& type = format["type"].string();
  if (type == "text") return;
  if (type != "json_object" && type != "json_schema")
    format["type"].fail(
        fmt::format("is \"{}\"; it must be text, json_object or json_schema", type));
  if (type == "json_schema" && !schema) schema.fail("is missing; it must be a JSON schema");
  read_schema(schema ? schema : JsonView(kAnyObject, format.path()), options);
}

// Whether the template compares roles with this name: a tag has it as a text behind the word role.
bool names_role(std::string_view text, const std::string& name) {
  if (name.empty()) return false;
  for (const char quote : {'"', '\''}) {
    const std::string quoted = quote + name + quote;
    for (size_t at = text.find(quoted); at != text.npos; at = text.find(quoted, at + 1)) {
      const size_t begin = text.rfind("{%", at), role = text.rfind("role", at);
      if (begin == text.npos || role == text.npos || role < begin) continue;
      if (text.substr(role, at - role).find("%}") == text.npos) return true;
    }
  }
  return false;
}

}  // namespace

llm::GenerationOptions default_options(const ServedModel& model) {
  if (model.defaults()) return model.defaults()(model.file());
  llm::GenerationOptions options;
  static thread_local std::mt19937 random(std::random_device{}());
  options.sampler.seed = random();  // 32 bits, so that clients can send it again
  if (const llm::RecommendedSampling* recommended = llm::recommended_sampling(model.file())) {
    options.sampler.temperature = recommended->temperature;
    options.sampler.top_p = recommended->top_p;
    options.sampler.dry.multiplier = recommended->dry_multiplier;
  }
  return options;
}

void read_sampling(const JsonView& body, const ServedModel& model,
                   llm::GenerationOptions& options) {
  llm::SamplerOptions& s = options.sampler;
  read(body["temperature"], s.temperature, 0, 100);
  read(body["dynatemp_range"], s.dynamic_range, 0, 100);
  read(body["dynatemp_exponent"], s.dynamic_exponent, 0, 100);
  read(body["top_k"], s.top_k, -1);
  s.top_k = std::max(s.top_k, 0);
  read(body["top_p"], s.top_p, 0, 1);
  read(body["min_p"], s.min_p, 0, 1);
  read(body["typical_p"], s.typical_p, 0, 1);
  for (float* each : {&s.top_p, &s.typical_p}) *each = std::max(*each, kLeastShare);
  read(body["top_n_sigma"], s.top_n_sigma, -1, 100);
  s.top_n_sigma = std::max(s.top_n_sigma, 0.0f);
  read(body["xtc_probability"], s.xtc_probability, 0, 1);
  read(body["xtc_threshold"], s.xtc_threshold, 0, 1);
  read(body["mirostat"], s.mirostat, 0, 2);
  read(body["mirostat_tau"], s.mirostat_tau, 0.01, 100);
  read(body["mirostat_eta"], s.mirostat_eta, 0, 1);
  // -1 stands for a random seed, as in llama.cpp.
  if (const JsonView seed = body["seed"]; seed && seed.integer(-1) >= 0)
    s.seed = static_cast<uint64_t>(seed.integer());
  read_logit_bias(body["logit_bias"], model, s);
  read_samplers(body["samplers"], s);
  options.ignore_end = body["ignore_eos"].boolean_or(options.ignore_end);

  const JsonView grammar = body["grammar"], schema = body["json_schema"];
  if (grammar && schema) grammar.fail("and json_schema are both given; leave one of them out");
  if (grammar && !grammar.string().empty())
    options.grammar = grammar_of(grammar, [&] { return llm::Grammar::parse(grammar.string()); });
  if (schema)
    options.grammar =
        grammar_of(schema, [&] { return llm::Grammar::from_json_schema(schema_text(schema)); });

  // A penalty that the model's makers recommend would distort texts that are determined.
  if (s.temperature == 0 || options.grammar || body["repeat_penalty"] || body["presence_penalty"] ||
      body["frequency_penalty"])
    s.dry.multiplier = 0;
  read_penalties(body, s);
  llm::check_sampler_options(s);
}

void read_stop(const JsonView& stop, llm::GenerationOptions& options) {
  if (!stop) return;
  if (!stop.is_string() && !stop.is_array()) stop.fail("must be a string or an array of strings");
  const std::vector<std::string> texts =
      stop.is_string() ? std::vector<std::string>{stop.string()} : read_texts(stop);
  for (const std::string& each : texts)
    if (!each.empty()) options.stop.push_back(each);
}

void read_response_format(const JsonView& format, llm::GenerationOptions& options) {
  if (!format) return;
  // llama.cpp's form has the schema beside the type.
  const JsonView inside = format["json_schema"], beside = format["schema"];
  read_format(format, inside || !beside ? inside["schema"] : beside, options);
}

void read_text_format(const JsonView& format, llm::GenerationOptions& options) {
  if (format) read_format(format, format["schema"], options);
}

void read_schema(const JsonView& schema, llm::GenerationOptions& options) {
  if (options.grammar) schema.fail("and a grammar are both given; leave one of them out");
  options.grammar =
      grammar_of(schema, [&] { return llm::Grammar::from_json_schema(schema_text(schema)); });
  options.sampler.dry.multiplier = 0;
}

std::string read_content(const JsonView& content) {
  if (!content) return {};
  if (content.is_string()) return content.string();
  if (!content.is_array()) content.fail("must be a string or an array of parts");
  std::string text;
  bool is_first = true;
  for (const JsonView& part : content.items()) {
    const std::string& type = part["type"].string();
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal")
      part["type"].fail(fmt::format(
          "is \"{}\"; this server reads text only, so leave out images, audio and files", type));
    if (!std::exchange(is_first, false)) text += '\n';
    text += part[type == "refusal" ? "refusal" : "text"].string();
  }
  return text;
}

Json read_arguments(const JsonView& arguments) {
  if (!arguments || (arguments.is_string() && arguments.string().empty())) return Json::object();
  Json value = arguments.json();
  try {
    if (value.is_string()) value = Json::parse(arguments.string());
  } catch (const Error& error) {
    arguments.fail(fmt::format("cannot be read: {}", error.what()));
  }
  if (!value.is_object()) arguments.fail("must be an object: the arguments by their names");
  return value;
}

Json read_tool_calls(const JsonView& calls) {
  Json list = Json::array();
  for (const JsonView& call : calls.items()) {
    const JsonView function = call["function"];
    list.push_back({{"type", "function"},
                    {"id", call["id"].string_or("")},
                    {"function", Json{{"name", function["name"].string()},
                                      {"arguments", read_arguments(function["arguments"])}}}});
  }
  return list;
}

std::string read_role(const JsonView& role, const ServedModel& model, Roles roles) {
  const std::string& name = role.string();
  if (std::ranges::find(roles, name) == roles.end() && !names_role(model.chat_template(), name))
    role.fail(fmt::format("is \"{}\"; it must be one of {}", name, fmt::join(roles, ", ")));
  return name == "developer" ? "system" : name == "function" ? "tool" : name;
}

std::vector<llm::ChatMessage> read_messages(const JsonView& messages, const ServedModel& model,
                                            Roles roles) {
  std::vector<llm::ChatMessage> result;
  if (!messages.is_array()) messages.fail("must be an array of messages");
  for (const JsonView& each : messages.items()) {
    llm::ChatMessage message;
    message.role = read_role(each["role"], model, roles);
    if (!each["content"] && !(message.role == "assistant"))
      each["content"].fail("is missing; it must be a string or an array of parts");
    message.content = read_content(each["content"]);
    message.reasoning_content =
        each[each["thinking"] ? "thinking" : "reasoning_content"].string_or("");  // also Ollama's
    if (const Json list = read_tool_calls(each["tool_calls"]); !list.items().empty())
      message.tool_calls = list.dump();
    message.tool_call_id = each["tool_call_id"].string_or("");
    message.name = each[each["tool_name"] ? "tool_name" : "name"].string_or("");  // also Ollama's
    result.push_back(std::move(message));
  }
  if (result.empty()) messages.fail("is empty; it must have at least one message");
  return result;
}

std::vector<int32_t> read_prompt(const JsonView& prompt, const ServedModel& model) {
  if (prompt.is_object()) {  // llama.cpp's form, which may also hold images
    if (prompt["multimodal_data"]) prompt["multimodal_data"].fail("cannot be read: text only");
    return read_prompt(prompt["prompt_string"], model);
  }
  if (prompt.is_string()) return model.tokenizer().encode(prompt.string());
  if (!prompt.is_array()) prompt.fail("must be a string or an array of token ids");
  // Texts and ids may be mixed, as in llama.cpp.
  std::vector<int32_t> tokens;
  bool is_first = true;
  for (const JsonView& each : prompt.items()) {
    if (each.is_string()) {
      const auto more = model.tokenizer().encode(each.string(), {.add_special = is_first});
      tokens.insert(tokens.end(), more.begin(), more.end());
    } else {
      tokens.push_back(read_token(each, model));
    }
    is_first = false;
  }
  return tokens;
}

std::vector<std::vector<int32_t>> read_prompts(const JsonView& prompts, const ServedModel& model) {
  if (!prompts) prompts.fail("is missing; it must be a string or an array");
  const auto is_id = [](const JsonView& each) { return each.is_number(); };
  std::vector<JsonView> items = {prompts};
  if (prompts.is_array() && std::ranges::none_of(prompts.items(), is_id)) items = prompts.items();
  if (items.empty()) prompts.fail("is empty; it must have at least one prompt");
  if (items.size() > kMaxPrompts)
    prompts.fail(fmt::format("has {} prompts; at most {} are read", items.size(), kMaxPrompts));
  std::vector<std::vector<int32_t>> result;
  for (const JsonView& each : items) {
    result.push_back(read_prompt(each, model));
    if (result.back().empty()) each.fail("has no tokens; it must have a text to continue");
  }
  return result;
}

}  // namespace prism::server
