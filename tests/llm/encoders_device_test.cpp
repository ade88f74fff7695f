// Compares encoders, embedders and classification heads with their published definitions in
// float64, with tiny random models on every device.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/error.h"
#include "support/devices/devices.h"
#include "support/models/tiny_encoder.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::expect_close;
using test::some_tokens;
using test::TinyEncoder;
using Row = TinyEncoder::Row;
using Rows = TinyEncoder::Rows;
using Gate = TinyEncoder::Gate;

// One of a token, one shorter than the windows and one longer.
std::vector<std::vector<int32_t>> some_texts(const TinyEncoder& tiny) {
  return {some_tokens(9, tiny.vocabulary), some_tokens(1, tiny.vocabulary),
          some_tokens(23, tiny.vocabulary)};
}

using Wish = std::function<Row(const Rows& hidden)>;

// Software devices take long to compile kernels: they get the models that no others are like.
void check(TinyEncoder& tiny, const Wish& embedding, const Wish& labels = {},
           bool everywhere = false) {
  const GgufFile file = tiny.open();
  const std::vector<std::vector<int32_t>> texts = some_texts(tiny);
  for (const Device& device : test::every_device()) {
    if (device.info().software && !device.info().is_cpu && !everywhere) continue;
    Model model =
        Model::load(file, {.placement = place_on(file, device, 40, DType::f32), .slots = 2});
    const auto vectors = model.embed(texts);
    ASSERT_EQ(vectors.size(), texts.size());
    EXPECT_EQ(model.classifies(), static_cast<bool>(labels));
    if (!labels) {
      EXPECT_THROW(model.classify(texts), Error);
    }
    const auto classes = labels ? model.classify(texts) : vectors;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string what = device.id() + " text " + std::to_string(i);
      const Rows hidden = tiny.hidden(texts[i]);
      expect_close(vectors[i], embedding(hidden), 2e-4, what);
      if (labels) expect_close(classes[i], labels(hidden), 2e-4, what + " labels");
    }
  }
}

Row first(const Rows& rows) { return rows.front(); }
Row last(const Rows& rows) { return rows.back(); }

void layers_of(TinyEncoder& tiny, bool joined, bool bias, Gate gate) {
  for (int i = 0; i < tiny.layers; ++i) tiny.blocks(i, joined, bias, gate);
}

TEST(Encoders, BertWithAHead) {
  test::TinyReranker tiny;
  check(tiny, TinyEncoder::mean, [&](const Rows& rows) {
    Row inner = tiny.times("cls", first(rows));
    for (double& each : inner) each = std::tanh(each);
    return tiny.times("cls.output", inner);
  });
}

TEST(Encoders, NomicBert) {
  TinyEncoder tiny("nomic-bert");
  tiny.rotated = true, tiny.base = 1000;
  tiny.function = TinyEncoder::Function::silu;
  tiny.bert_ends();
  layers_of(tiny, true, false, Gate::apart);
  tiny.set("pooling_type", 2);
  check(tiny, first);
}

TEST(Encoders, NomicBertWithExperts) {
  TinyEncoder tiny("nomic-bert-moe");
  tiny.rotated = true;
  tiny.experts = 5, tiny.used = 2, tiny.expert_period = 2, tiny.layers = 4;
  tiny.bert_ends();
  layers_of(tiny, true, true, Gate::none);
  tiny.set("pooling_type", 1);
  check(tiny, TinyEncoder::mean);
}

// Six heads: the slopes of the last two are between those of the first four.
TEST(Encoders, JinaBertV2) {
  for (const bool for_code : {false, true}) {
    TinyEncoder tiny("jina-bert-v2");
    tiny.max_bias = 8;
    tiny.bert_ends();
    layers_of(tiny, false, true, for_code ? Gate::joined : Gate::apart);
    for (int i = 0; i < tiny.layers && for_code; ++i)
      for (const char* name : {"attn_q_norm", "attn_k_norm", "attn_norm_2"})
        tiny.norm(TinyEncoder::in_layer(i, name));
    tiny.set("pooling_type", 1);
    if (!for_code) tiny.linear("cls", 1, tiny.width, true);
    const auto score = [&](const Rows& rows) {
      return Row{std::tanh(tiny.times("cls", first(rows))[0])};
    };
    check(tiny, TinyEncoder::mean, for_code ? Wish() : Wish(score));
  }
}

TEST(Encoders, JinaBertV3) {
  TinyEncoder tiny("jina-bert-v3");
  tiny.rotated = true, tiny.base = 20000;
  tiny.bert_ends();
  layers_of(tiny, true, true, Gate::none);
  check(tiny, TinyEncoder::mean);
}

TEST(Encoders, ModernBert) {
  TinyEncoder tiny("modern-bert");
  tiny.layers = 5;
  tiny.norm_bias = false;
  tiny.rotated = true, tiny.base = 160000, tiny.local_base = 5000;
  tiny.reach = 3, tiny.full_period = 3;
  tiny.set_metadata();
  tiny.set("attention.sliding_window", 6);
  tiny.set("attention.sliding_window_pattern", 3);
  tiny.set("rope.freq_base_swa", 5000.f);
  tiny.set("pooling_type", 4);
  tiny.norm("token_embd_norm");
  for (int i = 0; i < tiny.layers; ++i) {
    if (i > 0) tiny.norm(TinyEncoder::in_layer(i, "attn_norm"));
    tiny.norm(TinyEncoder::in_layer(i, "ffn_norm"));
    tiny.blocks(i, true, false, Gate::joined);
  }
  tiny.norm("output_norm");
  tiny.linear("cls", tiny.width, tiny.width, false);
  tiny.norm("cls.norm");
  tiny.linear("cls.output", 3, tiny.width, true);
  tiny.set("classifier.output_labels", std::vector<std::string>{"a", "b", "c"});
  const auto labels = [&](const Rows& rows) {
    Row inner = tiny.times("cls", TinyEncoder::mean(rows));
    for (double& each : inner) each = TinyEncoder::gelu(each);
    return tiny.times("cls.output", tiny.normed("cls.norm", inner));
  };
  check(tiny, TinyEncoder::mean, labels, true);
}

TEST(Encoders, LikeLlama) {
  for (const std::string name : {"eurobert", "neo-bert", "llama-embed"}) {
    const bool neo = name == "neo-bert";
    TinyEncoder tiny(name);
    tiny.rms = tiny.rotated = true;
    tiny.adjacent = name != "eurobert";
    tiny.kv_heads = neo ? tiny.heads : 2;
    tiny.function = TinyEncoder::Function::silu;
    tiny.set_metadata();
    for (int i = 0; i < tiny.layers; ++i) {
      tiny.norm(TinyEncoder::in_layer(i, "attn_norm"));
      tiny.norm(TinyEncoder::in_layer(i, "ffn_norm"));
      tiny.blocks(i, neo, false, neo ? Gate::joined : Gate::apart);
    }
    tiny.norm(neo ? "enc.output_norm" : "output_norm");
    tiny.set("pooling_type", neo ? 2 : 1);
    check(tiny, neo ? first : TinyEncoder::mean);
  }
}

// What gemma-embedding and qwen3 have in common.
void head_norms(TinyEncoder& tiny, bool post_norms) {
  tiny.set_metadata();
  for (int i = 0; i < tiny.layers; ++i) {
    tiny.norm(TinyEncoder::in_layer(i, "attn_norm"));
    tiny.norm(TinyEncoder::in_layer(i, "ffn_norm"));
    if (post_norms)
      for (const char* name : {"post_attention_norm", "post_ffw_norm"})
        tiny.norm(TinyEncoder::in_layer(i, name));
    tiny.norm(TinyEncoder::in_layer(i, "attn_q_norm"), tiny.dim);
    tiny.norm(TinyEncoder::in_layer(i, "attn_k_norm"), tiny.dim);
    tiny.blocks(i, false, false, Gate::apart);
  }
  tiny.norm("output_norm");
}

TEST(Encoders, GemmaEmbedding) {
  TinyEncoder tiny("gemma-embedding");
  tiny.layers = 7, tiny.kv_heads = 2;
  tiny.rms = tiny.rotated = true;
  tiny.base = 1e6;
  tiny.reach = 2, tiny.full_period = 6, tiny.full_first = 5;
  tiny.embedding_scale = std::sqrt(48.0);
  tiny.function = TinyEncoder::Function::gelu_tanh;
  head_norms(tiny, true);
  tiny.set("attention.sliding_window", 5);  // an odd one is rounded down
  tiny.set("pooling_type", 1);
  tiny.set("dense_2_feat_out", 96);
  tiny.set("dense_3_feat_in", 96);
  tiny.linear("dense_2", 96, tiny.width, false);
  tiny.linear("dense_3", tiny.width, 96, false);
  const auto dense = [&](const Rows& rows) {
    return tiny.times("dense_3", tiny.times("dense_2", TinyEncoder::mean(rows)));
  };
  check(tiny, dense, {}, true);
}

TEST(Encoders, Qwen3AsEmbedderAndReranker) {
  TinyEncoder tiny("qwen3");
  tiny.kv_heads = 3;
  tiny.rms = tiny.rotated = tiny.causal = true;
  tiny.base = 1e6;
  tiny.function = TinyEncoder::Function::silu;
  head_norms(tiny, false);
  tiny.set("pooling_type", 3);
  tiny.linear("cls.output", 2, tiny.width, false);
  tiny.set("classifier.output_labels", std::vector<std::string>{"yes", "no"});
  check(tiny, last, [&](const Rows& rows) {
    const Row both = tiny.times("cls.output", last(rows));
    const double yes = 1 / (1 + std::exp(both[1] - both[0]));
    return Row{yes, 1 - yes};
  });
}

}  // namespace
}  // namespace prism::llm
