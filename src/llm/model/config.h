// The hyperparameters of a model, read from the metadata of its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"
#include "prism/ops/rope.h"
#include "prism/rope_scaling.h"

namespace prism::llm {

enum class Pooling : uint8_t { none, mean, first, last };  // how rows become one embedding
enum class NormKind : uint8_t { rms, layer };

// The function between the matrices of a feed-forward layer.
enum class Activation : uint8_t {
  silu,
  gelu,      // tanh approximation
  gelu_erf,  // exact
  relu,
  relu_squared,
  silu_clamped,  // gpt-oss: a steeper silu, both operands clamped
  xielu,         // apertus: a parabola above 0, an exponential below
  situ,          // kimi-k3: a silu that a tanh bounds, and so the other operand
};

// The xIELU of a layer: above x^2 + slope x, and below (exp(min(x, epsilon)) - 1 - x) + slope x.
struct Xielu {
  double below = 0, above = 0, slope = 0, epsilon = 0;
};

// How the scores of experts become the weights of the chosen ones.
enum class ExpertScores : uint8_t {
  softmax,            // over all experts
  sigmoid,            // of each expert by itself
  softmax_of_chosen,  // over the chosen experts
  sqrt_softplus,      // the root of a softplus of each expert by itself
};

// The sizes that can differ between layers.
struct LayerConfig {
  int64_t heads = 0, kv_heads = 0;
  int64_t head_dim = 0, value_dim = 0;  // elements of a head's query and key, and of its value
  // Latent attention: the elements that the keys and values of all heads are computed from; the
  // cache holds them and one rotated part of the keys for each position. 0: none.
  int64_t latent = 0;
  int64_t cache_of = -1;  // the layer whose keys and values this one reads; -1: its own
  int64_t indexer = 0;    // elements of an indexer's key, which the cache holds too; 0: none
  bool chosen = false;    // sees the keys that its indexer, or the last one before it, chose
  // Positions that a compressed key stands for (compressed_attention.cpp); 0: there are none. With
  // an indexer each is made from the positions before these too, and the indexer chooses them.
  int64_t compression = 0;
  int64_t beside_key = -1;  // elements that the cache holds beside a key; -1: those of the value
  int64_t feed_forward = 0;
  bool windowed = false;
  bool rotated = true;
  bool experts = false;  // in place of a feed-forward block
  // What the layer remembers of a text beside keys and values: the shapes of f32 tensors.
  std::vector<Shape> states = {};
};

// The sizes of state-space layers (Mamba and its relatives).
struct SsmConfig {
  int64_t taps = 0;    // of the convolution
  int64_t inner = 0;   // channels
  int64_t keys = 0;    // numbers of state for each channel
  int64_t rank = 0;    // Mamba: what time steps are made from; others: heads
  int64_t groups = 1;  // heads that share their keys
  bool norms = false;  // Mamba: of time steps and keys
};

// A head that classifies texts: a matrix with an activation, a norm, a matrix with a row for each
// label. Files may leave each of them out.
enum class HeadActivation : uint8_t { tanh, gelu, relu };
struct HeadConfig {
  Pooling pooling = Pooling::first;  // what it reads of a text
  HeadActivation activation = HeadActivation::tanh;
  bool softmax = false;  // over the labels
};

// What the cache of a layer holds for a position. Keys shorter than values are padded with zeros.
struct CachedPosition {
  int64_t heads = 0, keys = 0, values = 0;  // elements of a head; values 0: part of the keys
  int64_t indexer = 0;
  int64_t elements() const { return heads * (keys + values) + indexer; }
};

struct Config {
  std::string architecture;  // "llama"
  std::string name;          // display name; may be empty
  int64_t layers = 0;
  int64_t loops = 1;  // nanbeige: how often the file's layers run; `layers` counts each time
  int64_t width = 0;  // size of the hidden state
  int64_t heads = 0, kv_heads = 0;      // the most of any layer
  int64_t head_dim = 0;                 // of keys, unless a layer says otherwise
  int64_t feed_forward = 0;             // the most of any layer
  std::vector<LayerConfig> each_layer;  // [layers]
  int64_t vocabulary = 0;
  int64_t context = 0;  // context length the model was trained for

  // --- structure of a layer
  NormKind norms = NormKind::rms;
  double norm_epsilon = 1e-5;
  double post_norm_epsilon = 0;  // of the norms after a block; 0: as the others
  Activation activation = Activation::silu;
  std::vector<Xielu> xielu;                  // by layer, if that is the activation
  double situ_bound = 1, situ_up_bound = 0;  // of Activation::situ; 0: the operand has none
  // Attention and feed-forward read the same input, and both are added to it.
  bool parallel = false;
  bool norms_after = false;        // chameleon: the norms are of the results of blocks
  bool norm_between_loops = true;  // the last norm also follows each loop but the last

  // --- positions
  RopePairing pairing = RopePairing::halves;
  int64_t rope_dims = 0;  // rotated elements per head; 0: no rotation
  double rope_base = 10000;
  RopeScaling rope_scaling;
  double rope_magnitude = 0;  // 0: determined by the scaling
  bool rope_divisors = true;  // false: the model does not use those of files
  // For windowed layers; a base of 0: as the others.
  double local_rope_base = 0;
  RopeScaling local_rope_scaling;
  double local_rope_magnitude = 0;  // 0, or yarn: determined by the scaling
  int64_t local_rope_dims = 0;      // 0: as the others

  // --- attention
  bool causal = true;          // except for the encoder's layers
  double attention_scale = 0;  // 0: 1 / sqrt(head_dim)
  double attention_soft_cap = 0, logit_soft_cap = 0;
  int64_t window = 0;                // keys visible to windowed layers
  bool chunked = false;              // the windows are chunks: see AttentionSettings
  double max_bias = 0;               // of biases linear in the distance; 0: none
  int64_t q_rank = 0;                // queries of latent attention are made from this many elements
  bool q_has_gate = false;           // its matrix also makes the gates of the heads, head by head
  int64_t qkv_rows = 0;              // of the fused matrix; 0: as many as the heads need
  int64_t qkv_stride = 0;            // from q to k and from k to v in it; 0: as long as they are
  double qkv_clamp = 0;              // limits q, k and v; 0: no limit
  bool rotates_before_norm = false;  // the norms of q and k follow the rotation
  bool gate_is_softplus = false;     // that of attention; else a sigmoid
  bool plain_head_norms = false;     // rotated heads have norms without weights
  bool layer_head_norms = false;     // norms of q and k are layer norms, unlike the others
  bool value_norms = false;          // values have norms without weights
  // The output matrix of heads in groups is two: one for each group, with this many rows, and one
  // of all their results. 0: it is one.
  int64_t output_groups = 0, output_rank = 0;
  int64_t least_kept = 0;  // positions that the caches of windowed layers keep, whatever the window

  // An indexer chooses the keys that a query sees: the best keys, or blocks of indexer_block keys,
  // of which those of the query and before it, indexer_near in all, are always seen.
  int64_t indexer_heads = 0, indexer_keys = 0, indexer_block = 0, indexer_near = 0;
  bool indexer_layer_norm = true;  // else norms are RMS
  RopePairing indexer_pairing = RopePairing::halves;

  // Queries are scaled by 1 + scale * log(1 + floor((position + offset) / length)); 0: not.
  double temperature_scale = 0, temperature_length = 1, temperature_offset = 0;
  bool temperature_of_unrotated = false;  // only those of layers without rotation

  // --- scale factors
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  double attention_result_scale = 1;  // of the output of attention
  int64_t layer_input = 0;            // length of the layers' own inputs (layer_inputs.h)
  int64_t residual_block = 0;         // kimi-k3: layers between kept inputs; 0: none are kept
  int64_t streams = 1;                // residual streams, mixed before and after each block
  int64_t stream_steps = 1;           // that balance the mix (sinkhorn.h), and its epsilon
  double stream_epsilon = 0;

  // --- mixture of experts
  int64_t experts = 0, experts_used = 0, expert_feed_forward = 0;
  int64_t shared_feed_forward = 0;  // of the expert that sees every token; 0: none
  ExpertScores expert_scores = ExpertScores::softmax;
  bool expert_weights_sum_to_one = true;
  double expert_weights_scale = 1;
  int64_t expert_groups = 1, expert_groups_used = 1;  // only the best groups are chosen from
  bool weights_before_experts = false;                // they multiply the input, not the result
  int64_t expert_group_members = 1;  // experts that share a smaller one (grovemoe), and its factor
  double expert_group_scale = 1;
  bool expert_groups_see_input = false;  // the smaller ones, as the experts do
  // By layer: what multiplies the gate is at most this in experts, and in feed-forward blocks and
  // the shared expert; 0 or empty: no limit.
  std::vector<double> expert_limits, inner_limits;
  bool limits_before_activation = false;  // what is limited is its operand
  int64_t expert_width = 0;               // of their input and result; 0: width
  // Phi-3.5-MoE: an expert's weight is its share among those whose scores are at most this part of
  // the larger score below its own; 0: the weights are those of expert_scores.
  double mixer_range = 0;

  // --- adapters that a model has itself, and that tokens switch on (graniteswitch)
  int64_t own_adapters = 0, own_rank = 0;
  double switch_gain = 0;  // how much more than others the tokens count that switch
  // Of the cache's keys for the switch: enough for any attention kernel.
  static constexpr int64_t kSwitchLength = 32;

  // --- recurrent layers
  SsmConfig ssm;
  double fastest_decay = 0;   // bailingmoe3, kimi-k3: the logarithm of the fastest decay, below 0
  int64_t rescale_every = 0;  // rwkv6: layers after which x is halved; 0: none

  Pooling pooling = Pooling::none;
  HeadConfig head;

  // --- encoder and decoder
  // The first layers are an encoder: they see a whole text at once. Where others follow, these are
  // a decoder, which begins with start_token and attends to the encoder's result.
  int64_t encoder_layers = 0;
  int32_t start_token = 0;
  int64_t bias_buckets = 0;  // of the distances that have a bias for each head; 0: no such biases

  bool has_decoder() const { return encoder_layers > 0 && encoder_layers < layers; }
  int64_t blocks() const { return layers / loops; }  // layers in the file
  bool is_encoder(int64_t layer) const { return layer < encoder_layers; }
  bool is_causal(int64_t layer) const { return causal && !is_encoder(layer); }
  // The name of a layer in files: "blk.3", or "enc.blk.3" and "dec.blk.3".
  std::string layer_name(int64_t layer) const;
  const LayerConfig& at(int64_t layer) const { return each_layer[static_cast<size_t>(layer)]; }
  bool is_windowed(int64_t layer) const { return window > 0 && at(layer).windowed; }
  bool is_rotated(int64_t layer) const { return rope_dims > 0 && at(layer).rotated; }
  int64_t rotated_dims(int64_t layer) const {
    return local_rope_dims > 0 && is_windowed(layer) ? local_rope_dims : rope_dims;
  }
  CachedPosition cached(int64_t layer) const;
  // The same for a compressed key.
  CachedPosition compressed(int64_t layer) const;
  bool has_states() const;
};

// Reads the hyperparameters common to all architectures. Throws kNotFound or kCorruptFile naming
// the key if a value is missing or invalid.
Config read_config(const GgufFile& file);
// The layers of the decoder that a file has beside those of block_count; 0: none.
int64_t decoder_layers(const GgufFile& file);
// How often the layers of a file run, one time after the other.
int64_t layer_loops(const GgufFile& file);
// The tensor that holds the token embedding: codeshell files may have it only as the output matrix.
std::string embedding_name(const GgufFile& file);
// For architectures that cannot do without experts. Throws kCorruptFile naming the key.
void require_experts(const GgufFile& file, const Config& config);

// The key with the architecture's prefix: "llama.block_count" for "block_count".
std::string config_key(const GgufFile& file, const char* name);

// The limits of a number in the metadata. NaN and infinities are never within.
struct NumberRange {
  double most = 1e9;
  bool zero = false;  // whether 0 is allowed; numbers below never are
};
// Hyperparameters by their name without the prefix, or `otherwise` if the file has none. They throw
// kCorruptFile naming the key and the limits if the value is outside of them.
double config_number(const GgufFile& file, const char* name, double otherwise,
                     const NumberRange& range = {});
// A factor; files state 0 for none, which is 1.
double config_factor(const GgufFile& file, const char* name, double otherwise);
int64_t config_integer(const GgufFile& file, const char* name, int64_t otherwise, int64_t least,
                       int64_t most);
// A list with one number for each layer, or one for all of them. They throw like the above.
std::vector<int64_t> config_layers(const GgufFile& file, const char* name, int64_t layers,
                                   int64_t least, int64_t most);
std::vector<double> config_numbers(const GgufFile& file, const char* name, int64_t layers);
// For encoders: no causal mask unless the file says otherwise, and means as embeddings. Windows as
// files count them, half on each side, become those of AttentionSettings.
void set_encoder(const GgufFile& file, Config& config);
// Sets the window of windowed layers from the file, or `otherwise` (0: there are none; only then
// the file may say 0 too). Sets which layers are windowed: all but every `period`-th (1: none, 0:
// all), or as the file says in `sliding_window_pattern`: a period, a list of the layers, or with
// period 1 a number for all layers. first_is_full: the layer with full attention is the first of
// its period, not the last.
void set_windows(const GgufFile& file, Config& config, int64_t otherwise, int64_t period,
                 bool first_is_full = false);
// The rotations of windowed layers have a base of their own, if the file states one; their scaling
// is that of the others, or none.
void set_windowed_rotation(const GgufFile& file, Config& config, bool is_scaled = true);
// Every `period`-th layer is not rotated.
void leave_unrotated(Config& config, int64_t period);
// The first layers have feed-forward blocks in place of experts: leading_dense_block_count.
void set_leading_dense(const GgufFile& file, Config& config);
// The last layers of some files only propose tokens (nextn_predict_layers): they are left out.
void leave_out_proposing_layers(const GgufFile& file, Config& config);
// expert_gating_func (1: softmax, 2: sigmoid, 3: softmax of the chosen, 4: root of a softplus).
void set_expert_scores(const GgufFile& file, Config& config, ExpertScores otherwise);
// The same with expert_weights_norm and expert_weights_scale.
void set_expert_weights(const GgufFile& file, Config& config, ExpertScores otherwise);
// The width of experts, expert_feed_forward_length, in files that state it above 0; else it is that
// of feed-forward blocks, or with is_of_all the experts of a token share it.
void set_expert_width(const GgufFile& file, Config& config, bool is_of_all = false);
// The width of the shared expert, expert_shared_feed_forward_length, or `otherwise`.
void set_shared_width(const GgufFile& file, Config& config, int64_t otherwise);
// The same for files that count shared experts of the width of the others: expert_shared_count.
void set_shared_count(const GgufFile& file, Config& config);
// Latent attention: attention.q_lora_rank and kv_lora_rank; key_length_mla and value_length_mla,
// the lengths of heads in place of key_length and value_length, are to be read before.
void set_latent(const GgufFile& file, Config& config);
void set_latent_heads(const GgufFile& file, Config& config);
// The indexer: attention.indexer.head_count, key_length and top_k.
void set_indexer(const GgufFile& file, Config& config);
// The lengths of heads in windowed layers, attention.key_length_swa and value_length_swa, and how
// much of them is rotated, rope.dimension_count_swa.
void set_windowed_heads(const GgufFile& file, Config& config);
// The last layers read the caches of the last layer before them that is of their kind, windowed or
// not; own: the number of layers with caches.
void set_shared_caches(const GgufFile& file, Config& config, int64_t own);
// The epsilon of norms of the model's kind: files may state that of the other kind too.
void set_norm_epsilon(const GgufFile& file, Config& config);
// For architectures without experts whose files may count some.
void have_no_experts(Config& config);

}  // namespace prism::llm
