// ReferenceModel: a transformer in plain float64 loops, the reference for models of every
// architecture. Shares no code with the ops.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace prism::test {

struct ReferenceModel {
  enum class Style { pre_norm, gemma, gpt_oss, bert };
  Style style = Style::pre_norm;
  int layers = 0, width = 0, heads = 0, kv_heads = 0, dim = 0, wide = 0, vocabulary = 0;
  double epsilon = 1e-5;
  bool causal = true;
  int loops = 1;  // how often the layers run, one time after the other
  bool norm_between_loops = true;
  bool layer_head_norms = false;  // each head of q and k has a layer norm with its own weights

  // --- rotary embedding: pairs (2i, 2i + 1), or (i, i + rope_dims / 2)
  bool adjacent = false;
  int rope_dims = 0;
  int unrotated_step = 0;
  std::vector<double> frequencies, local_frequencies;  // local: of windowed layers, if not empty
  double magnitude = 1;

  double score_scale = 1, score_cap = 0, logit_cap = 0;
  int window = 0, window_step = 0;  // every window_step-th layer has no window; 0: none
  double embedding_factor = 1, residual_factor = 1, logit_factor = 1;
  int experts = 0, used = 0;

  std::map<std::string, std::vector<double>> tensors;  // by their names in files

  // Rows of `vocabulary`, or of `width`, one per token.
  std::vector<double> logits(std::span<const int32_t> tokens) const;
  std::vector<double> hidden(std::span<const int32_t> tokens) const;

 private:
  using Row = std::vector<double>;
  const Row* find(const std::string& name) const;
  const Row& get(const std::string& name) const { return tensors.at(name); }
  Row product(const std::string& name, const Row& x, size_t matrix = 0) const;
  Row rms(const Row& x, const Row& weight) const;
  Row layer_norm(const Row& x, const std::string& name, size_t first = 0) const;
  // The norm of a head of q or k, if the model has such norms.
  void head_norm(Row& head, const std::string& name, size_t index) const;
  void rotate(Row& head, int position, int layer) const;
  bool windowed(int layer) const;
  std::vector<Row> attention(const std::string& prefix, const std::vector<Row>& x, int layer) const;
  Row feed_forward(const std::string& prefix, const Row& x) const;
  Row mixture(const std::string& prefix, const Row& x) const;
};

}  // namespace prism::test
