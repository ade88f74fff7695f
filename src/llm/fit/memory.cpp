// Computes the memory of weights, KV caches and activations.
#include "prism/llm/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "llm/architectures/architecture.h"
#include "llm/gguf/gguf_types.h"
#include "llm/gguf/layer_names.h"
#include "llm/model/kv_cache.h"
#include "ops/products/matmul_sides.h"
#include "prism/error.h"
#include "prism/llm/fit.h"
#include "prism/ops/attention.h"
#include "runtime/native_product.h"

namespace prism::llm {

namespace {

// The sizes of a file and of a request are anything: arithmetic that exceeds 64 bits throws.
class Size {
 public:
  Size(int64_t value) : value_(value) {}
  friend Size operator+(Size a, Size b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a.value_, b.value_, &sum) ? too_large() : Size(sum);
  }
  friend Size operator*(Size a, Size b) {
    int64_t product = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &product) ? too_large() : Size(product);
  }
  auto operator<=>(const Size&) const = default;
  uint64_t bytes() const { return static_cast<uint64_t>(value_); }

 private:
  [[noreturn]] static Size too_large() {
    throw Error(ErrorCode::kInvalidArgument,
                "memory: the model would need more bytes than 64 bits count; check its metadata, "
                "the context and the batch");
  }
  int64_t value_;
};

// Floats that are live at once for a batch: the residual stream and its norm; then either queries,
// keys, values and rotated queries, or `sides` feed-forward buffers (gate, up and, if a matmul
// cannot write it directly, their product); and the logits of the last row.
Size activation_elements(Size rows, Size hidden, Size queries, Size attention, Size feed_forward,
                         Size sides, Size vocabulary) {
  const Size beside = std::max(attention + queries, sides * feed_forward);
  return rows * (2 * hidden + beside) + vocabulary;
}

// The bytes of the keys or values of a layer.
uint64_t cache_bytes(int64_t positions, int64_t kv_heads, int64_t length, ElementType type,
                     const Device& device) {
  constexpr int64_t kMost = int64_t{1} << 42;  // the sum over any number of layers fits 64 bits
  const Shape shape({positions, kv_heads, length});
  if (shape.elements() > kMost)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("memory: the KV cache of a layer would be {}, more than 2^42 elements; "
                            "use a smaller context",
                            shape.text()));
  return storage_bytes(shape, type, device);
}

// What the caches hold for a position, and what each layer remembers of a text: as the architecture
// says, or, if Prism does not know it, keys and values of every head.
struct CachedLayer {
  CachedPosition position;
  uint64_t state_bytes = 0;
  int64_t biases = 0;  // of a query for each key
  // Where keys are compressed, those of positions are kept for a window alone.
  int64_t compression = 0, window = 0;
  CachedPosition compressed = {};
};
std::vector<CachedLayer> cached_by_layer(const GgufFile& file, const ModelSizes& sizes) {
  std::vector<CachedLayer> result;
  for (const int64_t heads : sizes.kv_heads)
    result.push_back({{heads, sizes.key_length, sizes.value_length, 0}, 0, 0, 0, 0, {}});
  if (!is_known_architecture(sizes.architecture)) return result;
  try {
    Config config = read_config(file);
    make_architecture(sizes.architecture)->configure(file, config);
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] = {};
      if (i >= config.each_layer.size()) continue;
      const auto layer = static_cast<int64_t>(i);
      const LayerConfig& of = config.each_layer[i];
      result[i] = {config.cached(layer),
                   state_bytes(of),
                   config.bias_buckets > 0 ? of.heads : 0,
                   of.compression,
                   std::max(config.window, config.least_kept),
                   config.compressed(layer)};
    }
  } catch (const Error&) {
    // Loading the model reports what is wrong with the file.
  }
  return result;
}

bool is_product_type(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

// Vendor matmuls need extra memory: weights unpacked for one matmul at a time (also on devices
// without matrix instructions), and results that need a separate epilogue.
struct VendorProducts {
  bool any = false;
  uint64_t unpacked_bytes = 0;
};
VendorProducts vendor_products(const GgufFile& file, const Device& device, int64_t rows) {
  VendorProducts found;
  if (device.info().is_cpu) return found;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::optional<ElementType> type = loaded_type(tensor);
    if (layer_of_tensor(tensor.name) < 0 || tensor.shape.rank() != 2 || !type ||
        !(type->is_block() || is_product_type(type->plain())))
      continue;
    const uint64_t unpacked =
        type->is_block() ? 2 * static_cast<uint64_t>(tensor.shape.elements()) : 0;
    if (found.any && unpacked <= found.unpacked_bytes) continue;
    NativeProduct product;
    product.m = static_cast<uint32_t>(rows);
    product.n = static_cast<uint32_t>(tensor.shape[0]);
    product.k = static_cast<uint32_t>(tensor.shape[1]);
    product.transpose_b = true;
    product.a_type = product.b_type = type->is_block() ? DType::f16 : type->plain();
    product.c_type = DType::f32;
    if (device.supports(product))
      found = {true, std::max(found.unpacked_bytes, unpacked)};
    else if (*type != ElementType(DType::f32))
      found.unpacked_bytes =
          std::max(found.unpacked_bytes,
                   unpacked_weight_bytes(device.info(), rows, tensor.shape.elements()));
  }
  return found;
}

// Checks a count that sizes are computed from.
int64_t positive(const GgufFile& file, const std::string& key, int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (value < 1 || value > kMost)
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("{}: metadata {} is {}; it must be from 1 to 2^31", file.path(), key, value));
  return value;
}

bool is_expert(std::string_view name) { return name.find("_exps.") != std::string_view::npos; }

uint64_t stored_bytes(const GgufTensor& tensor, const Device& device) {
  const std::optional<ElementType> type = loaded_type(tensor);
  return type ? storage_bytes(tensor.shape, *type, device) : tensor.bytes;
}

}  // namespace

InferenceMemory estimate_inference_memory(int64_t hidden, int64_t intermediate, int64_t layers,
                                          int64_t vocab, int64_t heads, int64_t kv_heads,
                                          int64_t sequence, int64_t bytes) {
  if (std::min({hidden, intermediate, layers, vocab, heads, kv_heads, sequence, bytes}) < 1)
    throw Error(ErrorCode::kInvalidArgument,
                "estimate_inference_memory: every size must be 1 or more");
  if (hidden % heads != 0 || heads % kv_heads != 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("estimate_inference_memory: {} heads must divide hidden {}, and {} KV "
                            "heads must divide the heads",
                            heads, hidden, kv_heads));
  const Size width = hidden, kv_width = hidden / heads * kv_heads, each = bytes;
  const Size attention = 2 * width * width + 2 * width * kv_width;
  const Size layer = attention + 3 * width * intermediate + 2 * width;
  const Size model = (layers * layer + 2 * width * vocab + width) * each;
  const Size cache = 2 * kv_width * layers * sequence * each;
  const Size activation = activation_elements(std::min(sequence, kPromptBatch), width, width,
                                              width + 2 * kv_width, intermediate, 2, vocab) *
                          each;
  InferenceMemory memory;
  memory.model_bytes = model.bytes();
  memory.kv_cache_bytes = cache.bytes();
  memory.activation_bytes = activation.bytes();
  memory.total_bytes = (model + cache + activation).bytes();
  return memory;
}

ModelSizes model_sizes(const GgufFile& file) {
  ModelSizes sizes;
  if (!file.has("general.architecture")) check_architecture(file);
  sizes.architecture = file.string("general.architecture");
  sizes.name = file.string_or("general.name", "");
  const auto key = [&](const char* name) { return sizes.architecture + "." + name; };
  const auto needed = [&](const char* name) {
    return positive(file, key(name), file.integer(key(name)));
  };
  const auto optional = [&](const char* name, int64_t otherwise) {
    return file.has(key(name)) ? positive(file, key(name), file.integer(key(name))) : otherwise;
  };
  // Files of other kinds have other keys.
  if (!file.has(key("block_count"))) check_architecture(file);
  sizes.decoder_layers = decoder_layers(file);
  const int64_t loops = layer_loops(file);
  sizes.layers = needed("block_count") * loops + sizes.decoder_layers;
  if (sizes.layers > 65536)
    throw Error(ErrorCode::kCorruptFile, fmt::format("{}: metadata {} is {}", file.path(),
                                                     key("block_count"), sizes.layers));
  sizes.hidden = needed("embedding_length");
  const std::string heads_key = key("attention.head_count");
  const auto per_layer = [&](const std::string& name, int64_t otherwise) {
    std::vector<int64_t> values(static_cast<size_t>(sizes.layers), otherwise);
    const GgufValue* const value = file.find(name);
    if (!value) return values;
    if (!value->is_array()) {
      std::fill(values.begin(), values.end(), file.integer(name));
    } else {
      const std::vector<int64_t> given = file.integers(name);
      const size_t blocks = values.size() / static_cast<size_t>(loops);
      if (given.size() < blocks)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("{}: metadata {} has {} values for {} layers", file.path(), name,
                                given.size(), blocks));
      for (size_t i = 0; i < values.size(); ++i) values[i] = given[i % blocks];
    }
    for (const int64_t one : values)
      if (one < 0 || one > 1 << 20)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("{}: metadata {} has a value of {}", file.path(), name, one));
    return values;
  };
  const std::vector<int64_t> heads = per_layer(heads_key, 1);
  sizes.heads = std::max<int64_t>(1, *std::max_element(heads.begin(), heads.end()));
  const std::vector<int64_t> wide = per_layer(key("feed_forward_length"), 4 * sizes.hidden);
  sizes.feed_forward = *std::max_element(wide.begin(), wide.end());
  sizes.kv_heads = per_layer(key("attention.head_count_kv"), sizes.heads);
  sizes.key_length = optional("attention.key_length", sizes.hidden / sizes.heads);
  sizes.value_length = optional("attention.value_length", sizes.key_length);
  sizes.context = optional("context_length", 2048);
  sizes.experts = file.integer_or(key("expert_count"), 0);
  sizes.experts_used = file.integer_or(key("expert_used_count"), 0);
  constexpr int64_t kMostExperts = 1 << 20;
  if (sizes.experts < 0 || sizes.experts > kMostExperts)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: metadata {} is {}; it must be from 0 to {}", file.path(),
                            key("expert_count"), sizes.experts, kMostExperts));
  if (sizes.experts > 0) {
    sizes.experts_used = std::clamp<int64_t>(sizes.experts_used, 1, sizes.experts);
    sizes.feed_forward =
        optional("expert_feed_forward_length", sizes.feed_forward) * sizes.experts_used;
  }
  const GgufValue* const tokens = file.find("tokenizer.ggml.tokens");
  sizes.vocabulary = tokens ? static_cast<int64_t>(tokens->count()) : optional("vocab_size", 0);
  for (const GgufTensor& tensor : file.tensors())
    sizes.parameters += static_cast<uint64_t>(tensor.shape.elements());
  return sizes;
}

uint64_t MemoryNeed::weight_bytes() const {
  uint64_t bytes = embedding_bytes + (is_output_tied ? 0 : output_bytes);
  for (const LayerMemory& layer : layers) bytes += layer.weight_bytes + layer.expert_bytes;
  return bytes;
}

uint64_t MemoryNeed::kv_bytes() const {
  uint64_t bytes = 0;
  for (const LayerMemory& layer : layers) bytes += layer.kv_bytes;
  return bytes;
}

uint64_t MemoryNeed::state_bytes() const {
  uint64_t bytes = 0;
  for (const LayerMemory& layer : layers) bytes += layer.state_bytes;
  return bytes * state_memory(1);
}

uint64_t MemoryNeed::total_bytes() const {
  return weight_bytes() + kv_bytes() + state_bytes() + activation_bytes;
}

uint64_t DeviceShare::bytes() const {
  return weight_bytes + kv_bytes + state_bytes * state_memory(1) + work_bytes;
}

MemoryNeed memory_need(const GgufFile& file, const ModelSizes& sizes, ElementType kv_type,
                       int64_t context, const Device& device, int64_t batch_rows) {
  const bool is_known = kv_type == DType::f32 || kv_type == DType::f16 || kv_type == DType::bf16 ||
                        kv_type == BlockType::q8_0;
  if (!is_known)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("KV cache type {} is not supported; use f16, f32, bf16 or q8_0",
                            kv_type.name()));
  const int64_t block = kv_type.block_elements();
  const std::vector<CachedLayer> cached = cached_by_layer(file, sizes);
  for (const CachedLayer& layer : cached)
    if (const CachedPosition& each = layer.position;
        each.keys % block != 0 || each.values % block != 0)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("KV cache type {}: heads of {} elements are not a multiple of {}; use f16",
                      kv_type.name(), each.keys, block));
  constexpr int64_t kMostContext = int64_t{1} << 31;  // positions are 32-bit numbers
  if (context < 1 || context > kMostContext || batch_rows < 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("memory: a context of {} tokens and batches of {}; the context must be "
                            "from 1 to {}, a batch 1 or more",
                            context, batch_rows, kMostContext));
  MemoryNeed memory;
  memory.layers.resize(static_cast<size_t>(sizes.layers));
  const std::string embedding = embedding_name(file);
  for (const GgufTensor& tensor : file.tensors()) {
    const uint64_t bytes = stored_bytes(tensor, device);
    const int64_t layer = layer_of_tensor(tensor.name, sizes.layers - sizes.decoder_layers);
    if (layer >= 0 && layer < sizes.layers) {
      LayerMemory& of = memory.layers[static_cast<size_t>(layer)];
      (is_expert(tensor.name) ? of.expert_bytes : of.weight_bytes) += bytes;
    } else if (tensor.name.starts_with("output") && tensor.name != embedding) {
      memory.output_bytes += bytes;
    } else {
      memory.embedding_bytes += bytes;
    }
  }
  // A layer that runs again may be on another device, which then needs its weights too.
  const auto blocks = memory.layers.size() / static_cast<size_t>(layer_loops(file));
  for (size_t i = blocks; i < memory.layers.size(); ++i)
    memory.layers[i] = memory.layers[i % blocks];
  if (const GgufTensor* const table = file.find_tensor(embedding);
      table && (embedding == "output.weight" || !file.find_tensor("output.weight"))) {
    memory.is_output_tied = true;
    memory.embedding_bytes += memory.output_bytes;  // a tied output has only the norm, counted here
    memory.output_bytes += stored_bytes(*table, device);
  }
  int64_t widest = 0, longest = 0, collected = 0;
  for (size_t i = 0; i < memory.layers.size(); ++i) {
    const CachedPosition& each = cached[i].position;
    const int64_t positions = cached_positions(context), compression = cached[i].compression;
    const auto held_bytes = [&](int64_t count, const CachedPosition& held) {
      return cache_bytes(count, held.heads, held.keys, kv_type, device) +
             cache_bytes(count, held.heads, held.values, kv_type, device) +
             cache_bytes(count, 1, held.indexer, indexer_type(kv_type), device);
    };
    const int64_t kept =
        compression > 0 ? windowed_positions(context, cached[i].window, batch_rows) : positions;
    const int64_t keys = compression > 0 ? positions / compression + 1 : 0;
    memory.layers[i].kv_bytes = held_bytes(kept, each) + held_bytes(keys, cached[i].compressed);
    memory.layers[i].state_bytes = cached[i].state_bytes;
    longest = std::max(longest, each.keys);
    // Biases are there with the places that they were read from. Each query has a score and a mask
    // for each compressed key, and the keys are copied behind those of the window.
    widest = std::max(widest, sizes.heads * longest + each.elements() +
                                  2 * cached[i].biases * positions + 2 * keys);
    collected = std::max(collected, 2 * keys * each.keys);
  }
  const int64_t rows = std::min(context, batch_rows);
  const VendorProducts vendor = vendor_products(file, device, rows);
  const auto work = [&](int64_t of_rows) {
    const Size elements =
        activation_elements(of_rows, sizes.hidden, sizes.heads * longest, widest,
                            sizes.feed_forward, vendor.any ? 3 : 2, sizes.vocabulary);
    return (4 * (elements + collected) + static_cast<int64_t>(vendor.unpacked_bytes)).bytes();
  };
  memory.activation_bytes = work(rows);
  // Small batches (decode, or the end of a prompt) also hold partial attention results.
  const int64_t few = std::min(rows, kMostSplitQueries);
  for (const CachedLayer& layer : cached)
    if (const CachedPosition& each = layer.position; each.heads > 0)
      memory.activation_bytes =
          std::max(memory.activation_bytes,
                   work(few) + cached_attention_work_bytes(device.info(), sizes.heads, each.heads,
                                                           each.keys, kv_type, few));
  return memory;
}

}  // namespace prism::llm
