// Reads hyperparameters from GGUF metadata and checks each against plausible limits.
#include "llm/model/config.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kCorruptFile, message);
}

// Checks a count: at least 1, and small enough that products of a few fit in 64 bits.
int64_t checked(const std::string& key, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    fail(fmt::format("model: {} is {}; it must be from 1 to {}", key, value, most));
  return value;
}

// A number, or an array with one equal number per layer.
int64_t uniform_integer(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  if (!value || !value->is_array()) return file.integer(key);
  const std::vector<int64_t> values = file.integers(key);
  if (values.empty()) fail(fmt::format("model: {} is an empty list", key));
  if (!std::ranges::all_of(values, [&](int64_t each) { return each == values[0]; }))
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("model: {} differs between layers, which no supported architecture allows",
                    key));
  return values[0];
}

RopeScaling read_scaling(const GgufFile& file, const std::string& prefix, int64_t context) {
  RopeScaling scaling;
  const std::string type_key = prefix + "rope.scaling.type";
  const std::string type(file.string_or(type_key, "none"));
  // Older files have a linear factor and no type.
  const double old_factor = file.number_or(prefix + "rope.scale_linear", 0);
  scaling.factor = file.number_or(prefix + "rope.scaling.factor", old_factor);
  if (scaling.factor <= 0) scaling.factor = 1;
  scaling.original_context = static_cast<uint32_t>(
      file.integer_or(prefix + "rope.scaling.original_context_length", context));
  if (type == "linear" || (type == "none" && scaling.factor != 1 && !file.has(type_key)))
    scaling.kind = RopeScaling::Kind::linear;
  else if (type == "yarn")
    scaling.kind = RopeScaling::Kind::yarn;
  else if (type != "none" && type != "longrope" && type != "su")
    throw Error(ErrorCode::kNotSupported,
                fmt::format("model: {} is \"{}\"; supported are none, linear, yarn and longrope",
                            type_key, type));
  if (scaling.kind == RopeScaling::Kind::yarn) {
    scaling.beta_fast = file.number_or(prefix + "rope.scaling.yarn_beta_fast", 32);
    scaling.beta_slow = file.number_or(prefix + "rope.scaling.yarn_beta_slow", 1);
    scaling.attention_factor = file.number_or(prefix + "rope.scaling.attn_factor", 0);
  }
  return scaling;
}

}  // namespace

std::string config_key(const GgufFile& file, const char* name) {
  return fmt::format("{}.{}", file.string("general.architecture"), name);
}

Config read_config(const GgufFile& file) {
  Config config;
  config.architecture = std::string(file.string("general.architecture"));
  config.name = std::string(file.string_or("general.name", ""));
  const std::string prefix = config.architecture + ".";
  const auto count = [&](const char* name, int64_t most) {
    const std::string key = prefix + name;
    return checked(key, file.integer(key), most);
  };
  config.layers = count("block_count", 4096);
  config.width = count("embedding_length", 1 << 20);
  config.context = count("context_length", int64_t{1} << 30);
  config.heads = checked(prefix + "attention.head_count",
                         uniform_integer(file, prefix + "attention.head_count"), 1 << 16);
  const std::string kv_key = prefix + "attention.head_count_kv";
  config.kv_heads =
      file.has(kv_key) ? checked(kv_key, uniform_integer(file, kv_key), 1 << 16) : config.heads;
  if (config.heads % config.kv_heads != 0)
    fail(fmt::format("model: {} is {}, which does not divide {} heads", kv_key, config.kv_heads,
                     config.heads));
  const std::string dim_key = prefix + "attention.key_length";
  if (!file.has(dim_key) && config.width % config.heads != 0)
    fail(fmt::format("model: {} is {}, not a multiple of {} heads, and {} is missing",
                     prefix + "embedding_length", config.width, config.heads, dim_key));
  config.head_dim =
      checked(dim_key, file.integer_or(dim_key, config.width / config.heads), 1 << 14);
  const std::string value_key = prefix + "attention.value_length";
  if (const int64_t value_dim = file.integer_or(value_key, config.head_dim);
      value_dim != config.head_dim)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("model: {} is {} and {} is {}; keys and values must have the same length",
                    value_key, value_dim, dim_key, config.head_dim));

  for (const char* name : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"})
    if (file.has(prefix + name)) config.norm_epsilon = file.number(prefix + name);
  config.rope_dims = file.integer_or(prefix + "rope.dimension_count", config.head_dim);
  if (config.rope_dims < 0 || config.rope_dims > config.head_dim || config.rope_dims % 2 != 0)
    fail(fmt::format("model: {}rope.dimension_count is {}; it must be even and at most {}", prefix,
                     config.rope_dims, config.head_dim));
  config.rope_base = file.number_or(prefix + "rope.freq_base", 10000);
  config.rope_scaling = read_scaling(file, prefix, config.context);

  config.experts = file.integer_or(prefix + "expert_count", 0);
  if (config.experts > 0) {
    config.experts = count("expert_count", 1024);
    config.experts_used = count("expert_used_count", config.experts);
  }
  const std::string wide_key = prefix + "feed_forward_length";
  if (file.has(wide_key) || config.experts == 0)
    config.feed_forward = checked(wide_key, uniform_integer(file, wide_key), 1 << 24);
  config.expert_feed_forward =
      file.integer_or(prefix + "expert_feed_forward_length", config.feed_forward);
  if (config.experts > 0)
    checked(prefix + "expert_feed_forward_length", config.expert_feed_forward, 1 << 24);

  const GgufTensor* table = file.find_tensor("token_embd.weight");
  if (!table) throw Error(ErrorCode::kNotFound, "model: the file has no tensor token_embd.weight");
  if (table->shape.rank() != 2 || table->shape[1] != config.width)
    fail(fmt::format("model: token_embd.weight is {}; it must be [vocabulary, {}]",
                     table->shape.text(), config.width));
  config.vocabulary = checked("the first dimension of token_embd.weight", table->shape[0], 1 << 24);
  return config;
}

}  // namespace prism::llm
