// Opens Hugging Face folders and checks that their tensors are inside their files.
#include "llm/convert/hf_folder.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/convert/hf_text_part.h"
#include "prism/dtype.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
// The largest tokenizer.json files have 35 MB.
constexpr uint64_t kMostTextBytes = uint64_t{128} << 20;
constexpr JsonLimits kLimits{.bytes = kMostTextBytes, .values = size_t{16} << 20, .depth = 64};

// A name from a file must not lead out of the folder.
void check_name(const std::string& folder, const std::string& file) {
  const fs::path path = file;
  const bool leaves = path.is_absolute() || path.has_root_name() ||
                      std::ranges::any_of(path, [](const fs::path& step) { return step == ".."; });
  // The operating system takes a name to end at its first zero byte.
  if (file.empty() || leaves || file.find('\0') != file.npos)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: names the file \"{}\", which is not inside the folder", folder,
                            printable(file)));
}

// The rank of "pytorch_model-00012-TP-003.safetensors"; nothing for other files.
std::optional<int64_t> rank_of(std::string_view file) {
  constexpr std::string_view kRank = "-TP-", kEnd = ".safetensors";
  const size_t at = file.rfind(kRank);
  if (at == file.npos || !file.ends_with(kEnd)) return std::nullopt;
  const std::string_view digits =
      file.substr(at + kRank.size(), file.size() - at - kRank.size() - kEnd.size());
  int64_t rank = 0;
  const auto [stop, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool is_rank = failed == std::errc() && stop == digits.data() + digits.size();
  return is_rank && rank >= 0 && rank < 1024 ? std::optional(rank) : std::nullopt;
}

// The files of a folder for tensor parallelism: those of ranks, and those that all ranks share.
std::vector<std::string> shard_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::directory_entry& each : fs::directory_iterator(folder, ignored)) {
    const std::string file = each.path().filename().string();
    if (rank_of(file) || file.ends_with("-TP-common.safetensors")) files.push_back(file);
  }
  std::ranges::sort(files);
  return files;
}

// Python writes infinite numbers as words that JSON does not have. Nothing here needs them.
std::string without_infinities(std::string text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  bool is_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && is_string)
      ++i;
    else if (text[i] == '"')
      is_string = !is_string;
    else if (!is_string && (text[i] == '-' || text[i] == 'I' || text[i] == 'N'))
      for (const std::string_view word : kWords)
        if (text.compare(i, word.size(), word) == 0) text.replace(i, word.size(), "null");
  }
  return text;
}

// Gemma 4's layers without a window have heads of another length, and their own number of keys.
void add_global_heads(Json& config) {
  const JsonView view(config);
  JsonView length = view["global_head_dim"], keys = view["num_global_key_value_heads"];
  if (view["per_layer_config"])
    for (const auto& [layer, own] : view["per_layer_config"].members()) {
      if (!length && own["head_dim"]) length = own["head_dim"];
      if (!keys && own["num_key_value_heads"]) keys = own["num_key_value_heads"];
    }
  if (!length || !view["head_dim"]) return;
  const Json full = length.json(), windowed = view["head_dim"].json(),
             full_keys = (keys ? keys : view["num_key_value_heads"]).json();
  config["windowed_head_dim"] = windowed;
  config["head_dim"] = full;
  config["num_global_key_value_heads"] = full_keys;
}

// DBRX has the settings of its attention and its experts in parts of their own.
void merge_parts(Json& config) {
  if (!config.is_object() || !config.find("ffn_config")) return;
  for (const char* part : {"attn_config", "ffn_config"}) {
    const Json* const found = config.find(part);
    if (!found || !found->is_object()) continue;
    const Json own = *found;
    for (const Json::Member& each : own.members())
      if (!each.value.is_null() && each.key != "hidden_size" && !config.find(each.key))
        config[each.key] = each.value;
  }
}

// Step 3.5 has the base of the rotation, and the part of a head that is rotated, for each layer;
// all layers of a kind have the same. transformers writes them by kind.
void split_rotations(Json& config) {
  const JsonView view(config);
  if (!view["rope_theta"].json().is_array()) return;
  const std::vector<JsonView> bases = view["rope_theta"].items(),
                              parts = view["partial_rotary_factors"].items(),
                              kinds = view["layer_types"].items();
  Json rotations = Json::object();
  const Json* const scaling = config.find("rope_scaling");
  for (size_t i = 0; i < std::min({bases.size(), parts.size(), kinds.size()}); ++i) {
    const std::string kind = kinds[i].string();
    Json own =
        kind == "full_attention" && scaling && scaling->is_object() ? *scaling : Json::object();
    own["rope_theta"] = bases[i].json();
    own["partial_rotary_factor"] = parts[i].json();
    const Json* const before = rotations.find(kind);
    if (before && before->dump() != own.dump())
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("config.json: rope_theta or partial_rotary_factors of layer {} is "
                              "not that of the other layers with {}",
                              i, printable(kind)));
    rotations[kind] = std::move(own);
  }
  config["rope_parameters"] = std::move(rotations);
}

// Some models' config.json have names of their own, which transformers maps to the usual ones.
void add_usual_names(Json& config) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"d_model", "hidden_size"},
      {"dim", "hidden_size"},
      {"n_embd", "hidden_size"},
      {"n_embed", "hidden_size"},
      {"num_layers", "num_hidden_layers"},
      {"n_layer", "num_hidden_layers"},
      {"n_layers", "num_hidden_layers"},
      {"num_heads", "num_attention_heads"},
      {"n_head", "num_attention_heads"},
      {"n_heads", "num_attention_heads"},
      {"d_ff", "intermediate_size"},
      {"n_inner", "intermediate_size"},
      {"hidden_dim", "intermediate_size"},
      {"ffn_hidden_size", "intermediate_size"},
      {"mlp_hidden_size", "intermediate_size"},
      {"attn_rotary_emb", "rotary_dim"},
      {"n_kv_heads", "num_key_value_heads"},
      {"kv_n_heads", "num_key_value_heads"},
      {"num_attention_groups", "num_key_value_heads"},
      {"weight_tying", "tie_word_embeddings"},
      {"d_kv", "head_dim"},
      {"max_trained_positions", "max_position_embeddings"},  // less than n_positions
      {"n_positions", "max_position_embeddings"},
      {"max_seq_len", "max_position_embeddings"},
      {"max_sequence_length", "max_position_embeddings"},
      {"max_context_length", "max_position_embeddings"},
      {"model_dim", "hidden_size"},
      {"num_transformer_layers", "num_hidden_layers"},
      {"kv_channels", "head_dim"},
      {"hidden_size_per_head", "head_dim"},
      {"rope_pct", "partial_rotary_factor"},
      {"tie_embeddings", "tie_word_embeddings"},
      {"weight_tying", "tie_word_embeddings"},
      {"seq_length", "max_position_embeddings"}};
  if (!config.is_object()) return;
  const auto is_there = [&](const char* name) {
    const Json* const found = config.find(name);
    return found && !found->is_null();
  };
  if (const Json* kinds = config.find("layers_block_type");
      kinds && kinds->is_array() && !is_there("num_hidden_layers"))
    config["num_hidden_layers"] = kinds->items().size();
  // The heads of Mamba 2 are not those of attention.
  if (is_there("state_size")) return;
  bool has_own = is_there("multi_query");
  for (const auto& [own, usual] : kNames) {
    has_own = has_own || is_there(own);
    if (is_there(own) && !is_there(usual)) config[usual] = Json(config[own]);
  }
  if (has_own && is_there("hidden_size") && !is_there("intermediate_size")) {
    const JsonView view(config);
    config["intermediate_size"] =
        view["hidden_size"].integer(1, 1 << 20) * view["expansion_ratio"].integer_or(4, 1, 64);
  }
  // Texts of any length work, because distances have biases; it was trained with these.
  if (is_there("d_kv") && !is_there("max_position_embeddings"))
    config["max_position_embeddings"] = 512;
}

}  // namespace

bool HfFolder::is_one(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) &&
         fs::is_regular_file(fs::path(path) / "config.json", ignored);
}

std::optional<std::string> HfFolder::text(const std::string& file) const {
  check_name(path_, file);
  if (files_) {
    const auto found = files_->find(file);
    return found == files_->end() ? std::nullopt : std::optional(found->second);
  }
  const fs::path path = fs::path(path_) / file;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return std::nullopt;
  const uint64_t bytes = fs::file_size(path, failed);
  if (failed || bytes > kMostTextBytes)
    throw Error(ErrorCode::kCorruptFile, fmt::format("{}: the file has {} bytes; at most {} can be "
                                                     "read",
                                                     path.string(), bytes, kMostTextBytes));
  std::ifstream in(path, std::ios::binary);
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<size_t>(in.gcount()));
  if (!in && !in.eof())
    throw Error(ErrorCode::kIo, fmt::format("{}: the file cannot be read", path.string()));
  return text;
}

std::optional<Json> HfFolder::json(const std::string& file) const {
  const std::optional<std::string> content = text(file);
  if (!content) return std::nullopt;
  try {
    return Json::parse(without_infinities(*content), kLimits);
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile, fmt::format("{}/{}: {}", path_, file, error.what()));
  }
}

float HfFolder::number(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end() || !is_float(found->second.type) ||
      found->second.type == DType::f64 || found->second.shape.elements() != 1)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: tensor {} must be there and one number", path_, tensor));
  const SafetensorsEntry& entry = found->second;
  uint32_t bits = 0;
  std::memcpy(&bits, entry.bytes.data(), std::min(entry.bytes.size(), sizeof bits));
  if (entry.type == DType::f32) return std::bit_cast<float>(bits);
  const auto half = static_cast<uint16_t>(bits);
  return entry.type == DType::f16 ? f32_from_f16(half) : f32_from_bf16(half);
}

void HfFolder::add_weights(const std::string& file, const std::string& module) {
  check_name(path_, file);
  const std::string path = (fs::path(path_) / file).string();
  weight_files_.push_back(path);
  maps_.push_back(map_file(path, MapAccess::read));
  const MappedFile& map = maps_.back();
  const std::string_view content(reinterpret_cast<const char*>(map.data.get()), map.bytes);
  for (auto& [name, entry] : parse_safetensors(path, content)) {
    const ElementType type = entry.type;
    const uint64_t needed = type.row_bytes(static_cast<uint64_t>(entry.shape.elements()));
    if (entry.bytes.size() != needed)
      throw Error(
          ErrorCode::kCorruptFile,
          fmt::format("{}: tensor {} of {} {} has {} bytes, {} are needed", path, printable(name),
                      type.name(), entry.shape.text(), entry.bytes.size(), needed));
    const bool is_renamed = !module.empty() && name.starts_with("linear.");
    const std::string own = is_renamed ? module + name.substr(name.find('.')) : name;
    if (const std::optional<int64_t> rank = rank_of(file);
        rank && (shards_.contains(own) || !tensors_.contains(own)) &&
        shards_[own].emplace(*rank, entry).second) {
      ranks_ = std::max(ranks_, *rank + 1);
      tensors_.insert_or_assign(own, shards_[own].begin()->second);
      continue;
    }
    if (!tensors_.emplace(own, entry).second)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: tensor {} is also in another file", path, printable(name)));
  }
}

std::vector<const SafetensorsEntry*> HfFolder::shards(const std::string& name) const {
  const auto found = shards_.find(name);
  std::vector<const SafetensorsEntry*> parts;
  if (found == shards_.end()) return parts;
  for (const auto& [rank, entry] : found->second) {
    if (rank != static_cast<int64_t>(parts.size()))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: tensor {} has no shard {} of {}; is a file missing?", path_,
                              printable(name), parts.size(), ranks_));
    parts.push_back(&entry);
  }
  if (static_cast<int64_t>(parts.size()) != ranks_)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: tensor {} has no shard {} of {}; is a file missing?", path_,
                            printable(name), parts.size(), ranks_));
  return parts;
}

void HfFolder::add_dense_modules() {
  const std::optional<Json> modules = json("modules.json");
  int number = 2;  // as GGUF counts them, behind the layers and the pooling
  for (const JsonView& module : modules ? JsonView(*modules).items() : std::vector<JsonView>()) {
    if (!module["type"].string().ends_with(".Dense")) continue;
    const std::string path = module["path"].string();
    const std::optional<Json> config = json(path + "/config.json");
    const std::string function =
        config ? JsonView(*config)["activation_function"].string_or("") : "no config.json";
    if (!function.ends_with(".Identity") || number > 3)
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("modules.json: the module {} has the activation {}; two matrices "
                              "without one can be converted",
                              printable(path), printable(function)));
    add_weights(path + "/" + kWeights, fmt::format("dense_{}", number++));
  }
}

void HfFolder::read_config() {
  std::optional<Json> config = json("config.json");
  if (!config || !config->is_object())
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: {}; a Hugging Face folder has config.json, {} and tokenizer.json", path_,
                    config ? "config.json is no JSON object" : "no config.json", kWeights));
  config_ = std::move(*config);
  has_other_parts_ = keep_text_part(config_);
  merge_parts(config_);
  add_usual_names(config_);
  split_rotations(config_);
  if (const JsonView type = JsonView(config_)["model_type"];
      type.is_string() && type.string().starts_with("gemma4"))
    add_global_heads(config_);
}

void HfFolder::keep_text_tensors() {
  std::map<std::string, SafetensorsEntry> kept;
  for (const auto& [name, entry] : tensors_)
    if (const auto own = text_tensor_name(name)) kept.emplace(*own, entry);
  tensors_ = std::move(kept);
}

HfFolder HfFolder::of(std::map<std::string, std::string> files) {
  HfFolder folder;
  folder.path_ = "memory";
  folder.files_ = std::move(files);
  folder.read_config();
  return folder;
}

HfFolder HfFolder::open(const std::string& path) {
  HfFolder folder;
  folder.path_ = path;
  folder.read_config();
  const std::optional<Json> index = folder.json(kIndex);
  std::error_code ignored;
  if (fs::is_regular_file(fs::path(path) / kWeights, ignored)) {
    folder.add_weights(kWeights);
  } else if (const std::vector<std::string> shards = shard_files(path); !shards.empty()) {
    for (const std::string& file : shards) folder.add_weights(file);
  } else if (index) {
    const Json* map = index->find("weight_map");
    std::set<std::string> files;
    for (const auto& [name, file] :
         map ? JsonView(*map, kIndex).members() : std::vector<std::pair<std::string, JsonView>>())
      files.insert(file.string());
    for (const std::string& file : files) folder.add_weights(file);
    for (const Json::Member& each : map ? map->members() : std::span<const Json::Member>())
      if (!folder.tensors_.contains(each.key))
        throw Error(ErrorCode::kCorruptFile, fmt::format("{}/{}: tensor {} is in none of the files",
                                                         path, kIndex, printable(each.key)));
  } else {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: neither {} nor {} is there; weights in other formats (.bin, .pt) "
                            "can be saved as safetensors by transformers",
                            path, kWeights, kIndex));
  }
  folder.add_dense_modules();
  if (folder.has_other_parts_) folder.keep_text_tensors();
  return folder;
}

}  // namespace prism::llm
