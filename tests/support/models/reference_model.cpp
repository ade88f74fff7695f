// The reference transformer.
#include "support/models/reference_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace prism::test {

namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double gelu_exact(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double clamped_gate(double gate, double up) {
  gate = std::min(gate, 7.0);
  up = std::clamp(up, -7.0, 7.0);
  return gate / (1 + std::exp(-1.702 * gate)) * (up + 1);
}

}  // namespace

const ReferenceModel::Row* ReferenceModel::find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

// name.weight (its matrix number `matrix`) times x, plus name.bias. The number of rows follows from
// the number of elements.
ReferenceModel::Row ReferenceModel::product(const std::string& name, const Row& x,
                                            size_t matrix) const {
  const Row& weight = get(name + ".weight");
  const bool stacked = name.ends_with("_exps");
  const size_t matrices = stacked ? static_cast<size_t>(experts) : 1;
  const size_t rows = weight.size() / x.size() / matrices;
  Row y(rows);
  const Row* bias = find(name + ".bias");
  for (size_t r = 0; r < rows; ++r) {
    const double* w = weight.data() + (matrix * rows + r) * x.size();
    for (size_t c = 0; c < x.size(); ++c) y[r] += w[c] * x[c];
    if (bias) y[r] += (*bias)[matrix * rows + r];
  }
  return y;
}

ReferenceModel::Row ReferenceModel::rms(const Row& x, const Row& weight) const {
  double square = 0;
  for (const double each : x) square += each * each;
  const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + epsilon);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

ReferenceModel::Row ReferenceModel::layer_norm(const Row& x, const std::string& name,
                                               size_t first) const {
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  double square = 0;
  for (const double each : x) square += (each - mean) * (each - mean);
  const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + epsilon);
  Row y(x.size());
  const Row &weight = get(name + ".weight"), &bias = get(name + ".bias");
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t at = first + i;
    y[i] = (x[i] - mean) * scale * weight[at] + bias[at];
  }
  return y;
}

void ReferenceModel::head_norm(Row& head, const std::string& name, size_t index) const {
  const Row* const weight = find(name + ".weight");
  if (weight)
    head = layer_head_norms ? layer_norm(head, name, index * head.size()) : rms(head, *weight);
}

bool ReferenceModel::windowed(int layer) const {
  return window > 0 && (window_step == 0 || layer % window_step != window_step - 1);
}

void ReferenceModel::rotate(Row& head, int position, int layer) const {
  if (rope_dims == 0) return;
  if (unrotated_step > 0 && layer % unrotated_step == unrotated_step - 1) return;
  const bool local = windowed(layer) && !local_frequencies.empty();
  const std::vector<double>& by = local ? local_frequencies : frequencies;
  const double size = local ? 1 : magnitude;
  const size_t pairs = static_cast<size_t>(rope_dims) / 2;
  for (size_t i = 0; i < pairs; ++i) {
    double& a = head[adjacent ? 2 * i : i];
    double& b = head[adjacent ? 2 * i + 1 : i + pairs];
    const double angle = position * by[i], c = std::cos(angle) * size, s = std::sin(angle) * size;
    const double before = a;
    a = before * c - b * s;
    b = before * s + b * c;
  }
}

std::vector<ReferenceModel::Row> ReferenceModel::attention(const std::string& prefix,
                                                           const std::vector<Row>& x,
                                                           int layer) const {
  const size_t length = x.size(), d = static_cast<size_t>(dim);
  const auto q_heads = static_cast<size_t>(heads), k_heads = static_cast<size_t>(kv_heads);
  // [token][head]
  std::vector<std::vector<Row>> q(length), k(length), v(length);
  const auto cut = [&](const Row& all, size_t first, size_t count) {
    std::vector<Row> list;
    for (size_t h = 0; h < count; ++h) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>((first + h) * d);
      list.emplace_back(begin, begin + static_cast<ptrdiff_t>(d));
    }
    return list;
  };
  for (size_t t = 0; t < length; ++t) {
    if (find(prefix + "attn_qkv.weight")) {
      const Row all = product(prefix + "attn_qkv", x[t]);
      q[t] = cut(all, 0, q_heads);
      k[t] = cut(all, q_heads, k_heads);
      v[t] = cut(all, q_heads + k_heads, k_heads);
    } else {
      q[t] = cut(product(prefix + "attn_q", x[t]), 0, q_heads);
      k[t] = cut(product(prefix + "attn_k", x[t]), 0, k_heads);
      v[t] = cut(product(prefix + "attn_v", x[t]), 0, k_heads);
    }
    for (size_t h = 0; h < q_heads; ++h) {
      head_norm(q[t][h], prefix + "attn_q_norm", h);
      rotate(q[t][h], static_cast<int>(t), layer);
    }
    for (size_t h = 0; h < k_heads; ++h) {
      head_norm(k[t][h], prefix + "attn_k_norm", h);
      rotate(k[t][h], static_cast<int>(t), layer);
    }
  }
  const Row* sinks = find(prefix + "attn_sinks.weight");
  std::vector<Row> result;
  for (size_t t = 0; t < length; ++t) {
    Row joined;
    for (size_t h = 0; h < q_heads; ++h) {
      const size_t shared = h / (q_heads / k_heads);
      Row sum(d);
      double denominator = sinks ? std::exp((*sinks)[h]) : 0;
      for (size_t j = 0; j < length; ++j) {
        if (causal && j > t) continue;
        if (windowed(layer) && j + static_cast<size_t>(window) <= t) continue;
        double score = 0;
        for (size_t c = 0; c < d; ++c) score += q[t][h][c] * k[j][shared][c];
        score *= score_scale;
        if (score_cap > 0) score = score_cap * std::tanh(score / score_cap);
        const double weight = std::exp(score);  // scores of tiny models are small
        denominator += weight;
        for (size_t c = 0; c < d; ++c) sum[c] += weight * v[j][shared][c];
      }
      for (const double each : sum) joined.push_back(each / denominator);
    }
    result.push_back(product(prefix + "attn_output", joined));
  }
  return result;
}

ReferenceModel::Row ReferenceModel::feed_forward(const std::string& prefix, const Row& x) const {
  Row up = product(prefix + "ffn_up", x), gate;
  if (find(prefix + "ffn_gate.weight")) {
    gate = product(prefix + "ffn_gate", x);
  } else if (style != Style::bert) {
    const auto half = static_cast<ptrdiff_t>(up.size() / 2);
    gate.assign(up.begin(), up.begin() + half);
    up.erase(up.begin(), up.begin() + half);
  }
  for (size_t i = 0; i < up.size(); ++i) {
    if (style == Style::bert)
      up[i] = gelu_exact(up[i]);
    else
      up[i] *= style == Style::gemma ? gelu_tanh(gate[i]) : silu(gate[i]);
  }
  return product(prefix + "ffn_down", up);
}

ReferenceModel::Row ReferenceModel::mixture(const std::string& prefix, const Row& x) const {
  const Row liking = product(prefix + "ffn_gate_inp", x);
  std::vector<size_t> order(liking.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t e) { return liking[e]; });
  order.resize(static_cast<size_t>(used));
  double all = 0;
  for (const size_t e : order) all += std::exp(liking[e]);
  Row y(x.size());
  for (const size_t e : order) {
    const Row gate = product(prefix + "ffn_gate_exps", x, e);
    Row up = product(prefix + "ffn_up_exps", x, e);
    for (size_t i = 0; i < up.size(); ++i)
      up[i] = style == Style::gpt_oss ? clamped_gate(gate[i], up[i]) : silu(gate[i]) * up[i];
    const Row out = product(prefix + "ffn_down_exps", up, e);
    for (size_t i = 0; i < y.size(); ++i) y[i] += out[i] * std::exp(liking[e]) / all;
  }
  return y;
}

std::vector<double> ReferenceModel::hidden(std::span<const int32_t> tokens) const {
  std::vector<Row> x;
  const auto n = static_cast<size_t>(width);
  const auto add = [](Row& to, const Row& from, double factor) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i] * factor;
  };
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto row = [&](const std::string& table, size_t index) {
      const Row& all = get(table);
      return Row(all.begin() + static_cast<ptrdiff_t>(index * n),
                 all.begin() + static_cast<ptrdiff_t>((index + 1) * n));
    };
    x.push_back(row("token_embd.weight", static_cast<size_t>(tokens[t])));
    for (double& each : x[t]) each *= embedding_factor;
    if (style == Style::bert) {
      add(x[t], row("position_embd.weight", t), 1);
      add(x[t], row("token_types.weight", 0), 1);
      x[t] = layer_norm(x[t], "token_embd_norm");
    }
  }
  for (int i = 0; i < layers * loops; ++i) {
    const int layer = i % layers;
    if (i > 0 && layer == 0 && norm_between_loops)
      for (Row& each : x) each = rms(each, get("output_norm.weight"));
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto normed = [&](const char* name) {
      std::vector<Row> list;
      for (const Row& each : x) list.push_back(rms(each, get(prefix + name + ".weight")));
      return list;
    };
    std::vector<Row> seen =
        attention(prefix, style == Style::bert ? x : normed("attn_norm"), layer);
    for (size_t t = 0; t < x.size(); ++t) {
      if (style == Style::gemma) seen[t] = rms(seen[t], get(prefix + "post_attention_norm.weight"));
      add(x[t], seen[t], residual_factor);
      if (style == Style::bert) x[t] = layer_norm(x[t], prefix + "attn_output_norm");
    }
    for (Row& each : x) {
      if (style == Style::bert) {
        add(each, feed_forward(prefix, each), 1);
        each = layer_norm(each, prefix + "layer_output_norm");
        continue;
      }
      const char* norm = style == Style::gpt_oss ? "post_attention_norm.weight" : "ffn_norm.weight";
      const Row in = rms(each, get(prefix + norm));
      Row out = experts > 0 ? mixture(prefix, in) : feed_forward(prefix, in);
      if (style == Style::gemma) out = rms(out, get(prefix + "post_ffw_norm.weight"));
      add(each, out, residual_factor);
    }
  }
  std::vector<double> result;
  for (const Row& each : x) {
    const Row last = style == Style::bert ? each : rms(each, get("output_norm.weight"));
    result.insert(result.end(), last.begin(), last.end());
  }
  return result;
}

std::vector<double> ReferenceModel::logits(std::span<const int32_t> tokens) const {
  const std::vector<double> rows = hidden(tokens);
  const std::string table = find("output.weight") ? "output" : "token_embd";
  std::vector<double> result;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto begin = rows.begin() + static_cast<ptrdiff_t>(t) * width;
    for (double each : product(table, Row(begin, begin + width))) {
      each *= logit_factor;
      result.push_back(logit_cap > 0 ? logit_cap * std::tanh(each / logit_cap) : each);
    }
  }
  return result;
}

}  // namespace prism::test
