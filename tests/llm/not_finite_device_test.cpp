// Tests on every device that results which are not finite are errors that name the layer.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "llm/model/decode.h"
#include "llm/model/finite.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "prism/llm/scoring.h"
#include "support/devices/devices.h"
#include "support/models/greedy.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The logits that the choice of a token may meet, and whether a token can be chosen from them.
struct Row {
  std::vector<float> logits;
  bool is_valid;
};
std::vector<Row> rows_of(size_t vocabulary) {
  std::vector<float> plain(vocabulary);
  for (size_t i = 0; i < vocabulary; ++i)
    plain[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  const auto with = [&](size_t place, float value) {
    std::vector<float> logits = plain;
    logits[place] = value;
    return logits;
  };
  const std::vector<float> none(vocabulary, -kInfinity);
  std::vector<float> one = none;
  one[vocabulary / 3] = -3;
  return {{plain, true},
          {with(0, kNan), false},
          {with(vocabulary - 1, kNan), false},
          {with(vocabulary / 2, kInfinity), false},
          {with(7, -kInfinity), true},
          {none, false},
          {one, true},
          {std::vector<float>(vocabulary, kNan), false}};
}

TEST(NotFinite, RowsAreJudgedOnTheHost) {
  for (const size_t vocabulary : {50, 1000})
    for (const Row& row : rows_of(vocabulary)) EXPECT_EQ(can_choose(row.logits), row.is_valid);
  EXPECT_TRUE(all_finite({}));
  EXPECT_FALSE(can_choose({}));
  EXPECT_TRUE(all_finite(std::vector<float>{1, -3e38f, 0}));
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity})
    EXPECT_FALSE(all_finite(std::vector<float>{1, bad, 0}));
}

TEST(NotFinite, DevicesChooseNoToken) {
  const std::vector<Sampling> settings = {{},
                                          {.temperature = 1, .top_k = 20},
                                          {.temperature = 0.5f, .top_k = 100, .top_p = 0.9f},
                                          {.temperature = 2, .seed = 3}};
  for (const Device& device : test::every_device()) {
    for (const int64_t vocabulary : {60, 5000}) {
      const std::vector<Row> rows = rows_of(static_cast<size_t>(vocabulary));
      std::vector<float> logits;
      for (const Row& row : rows) logits.insert(logits.end(), row.logits.begin(), row.logits.end());
      const Tensor all =
          from_vector(logits, {static_cast<int64_t>(rows.size()), vocabulary}, device);
      const std::vector<int32_t> positions(rows.size(), 5);
      for (const Sampling& each : settings) {
        const std::vector<int32_t> tokens =
            sample(all, std::vector<Sampling>(rows.size(), each), positions);
        for (size_t i = 0; i < rows.size(); ++i) {
          SCOPED_TRACE(device.id() + " row " + std::to_string(i));
          if (rows[i].is_valid) {
            ASSERT_GE(tokens[i], 0);
            ASSERT_LT(tokens[i], vocabulary);
            EXPECT_TRUE(std::isfinite(rows[i].logits[static_cast<size_t>(tokens[i])]));
          } else {
            EXPECT_EQ(tokens[i], kNoToken);
          }
        }
      }
    }
  }
}

// Runs work and returns the message of its error; empty if there is none.
template <class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
    return error.what();
  }
  return "";
}

struct Damage {
  const char* tensor;
  size_t element;
  float value;
  const char* layer;  // words of the error
};
constexpr Damage kDamages[] = {
    {"token_embd.weight", 64 * 5 + 3, kNan, "the token embedding"},  // token 5: 'b'
    {"blk.0.attn_v.weight", 9, kNan, "layer 0 (blk.0) of 2"},
    {"blk.1.attn_norm.weight", 63, kInfinity, "layer 1 (blk.1) of 2"},
    {"blk.1.ffn_down.weight", 0, kNan, "layer 1 (blk.1) of 2"},
    {"output_norm.weight", 3, kNan, "the final norm"},
    {"output.weight", 64 * 20, kNan, "the output matrix"},  // one logit
};

TEST(NotFinite, EveryResultIsAnErrorThatNamesTheLayer) {
  constexpr const char* kText = "ab ba abba";
  for (const Damage& damage : kDamages) {
    test::TinyModel tiny("llama");
    tiny.use_letters();
    tiny.finish({});
    tiny.values(damage.tensor)[damage.element] = damage.value;
    const GgufFile file = tiny.open();
    for (const Device& device : test::every_device()) {
      SCOPED_TRACE(device.id() + " " + damage.tensor);
      LoadOptions options;
      options.batch_rows = 4;  // the prompt takes several batches
      LanguageModel model =
          LanguageModel::load(file.path(), place_on(file, device, 60, DType::f32), options);
      const auto expect_error = [&](const char* what, const auto& work) {
        const std::string message = message_of(work);
        EXPECT_NE(message.find(damage.layer), std::string::npos) << what << ": " << message;
      };
      GenerationOptions drawn = test::greedy(8), on_host = drawn;
      drawn.sampler.temperature = 1;
      drawn.sampler.top_k = 10;
      on_host.sampler.penalties.presence = 0.5f;
      expect_error("greedy", [&] { model.generate(kText, test::greedy(8)); });
      expect_error("drawn", [&] { model.generate(kText, drawn); });
      expect_error("on the host", [&] { model.generate(kText, on_host); });
      expect_error("score", [&] { model.score(kText, 3); });
      expect_error("perplexity",
                   [&] { perplexity(model.model(), model.tokenizer().encode(kText), 6, -1, {}); });
      if (std::string(damage.tensor) != "output.weight")
        expect_error("embed", [&] { model.embed(std::vector<std::string>{"b"}); });
    }
  }
}

// The first token that is not finite comes in the middle of a decode loop, which has queued the
// next step already.
TEST(NotFinite, ADecodeLoopGoesOnWithoutTheToken) {
  test::TinyModel tiny("llama");
  tiny.finish({});
  tiny.values("output_norm.weight")[0] = kNan;
  const GgufFile file = tiny.open();
  for (const Device& device : test::every_device()) {
    Model model = Model::load(file, {.placement = place_on(file, device, 20, DType::f32)});
    for (const float temperature : {0.f, 1.f}) {
      DecodeLoop loop(model);
      loop.start(
          {{.slot = 0, .position = 0, .token = 3, .sampling = {.temperature = temperature}}});
      for (int step = 0; step < 5; ++step) loop.queue_step();
      for (int64_t step = 0; step < 5; ++step)
        EXPECT_EQ(loop.read(step), std::vector<int32_t>{kNoToken}) << device.id();
    }
  }
}

}  // namespace
}  // namespace prism::llm
