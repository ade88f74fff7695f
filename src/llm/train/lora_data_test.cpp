// Tests which tokens of a file are learned, and how batches are packed.
#include "llm/train/lora_data.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "prism/llm/tokenizer.h"
#include "support/models/letters.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

constexpr const char* kTemplate =
    "{{ bos_token }}{% for m in messages %}{{ m['role'][0] }}{{ m['content'] }}{{ eos_token }}z"
    "{% endfor %}{% if add_generation_prompt %}a{% endif %}";

class LoraData : public testing::Test {
 protected:
  GgufFile model(const char* chat_template) {
    GgufWriter writer;
    writer.set("general.architecture", "llama");
    if (chat_template) writer.set("tokenizer.chat_template", chat_template);
    test::set_letters(writer);
    writer.write(folder_ / "m.gguf");
    return GgufFile::open(folder_ / "m.gguf");
  }
  std::vector<LoraSample> read(const std::string& text, int64_t context = 100,
                               const char* chat_template = kTemplate) {
    test::write_file(folder_.path() / "data", text);
    return read_lora_samples(folder_ / "data", model(chat_template), context);
  }
  // The text of a sample, with learned tokens in brackets.
  std::string shown(const LoraSample& sample) {
    const Tokenizer tokenizer = Tokenizer::from(model(kTemplate));
    std::string text;
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      const std::string piece = tokenizer.piece(sample.tokens[i], true);
      text += sample.is_learned[i] ? "[" + piece + "]" : piece;
    }
    return text;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(LoraData, OnlyAnswersAreLearned) {
  const std::vector<LoraSample> samples = read(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", "
      "\"content\": \"yo\"}, {\"role\": \"user\", \"content\": \"b\"}, {\"role\": \"assistant\", "
      "\"content\": \"c\"}]}\n\n{\"question\": \"q\", \"answer\": \"r\"}\n{\"text\": \"d\"}");
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(shown(samples[0]), "<s> uhi</s> za[y][o][</s>] zub</s> za[c][</s>] z");
  EXPECT_EQ(shown(samples[1]), "<s> uq</s> za[r][</s>] z");
  EXPECT_EQ(shown(samples[2]), "[<s>][ ][d][</s>]");
}

TEST_F(LoraData, ArraysOfObjectsAreRead) {
  const std::vector<LoraSample> samples =
      read("\n[ {\"question\": \"q\", \"answer\": \"r\"},\n {\"text\": \"d\"}]\n");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(shown(samples[0]), "<s> uq</s> za[r][</s>] z");
  EXPECT_EQ(shown(samples[1]), "[<s>][ ][d][</s>]");
  for (const char* wrong : {"[{\"text\": \"d\"}", "[{\"text\": 5}]", "[{\"a\": \"b\"}]"})
    EXPECT_THROW(read(wrong), Error) << wrong;
  EXPECT_EQ(read("[scene one] hello", 100).size(), 1u);  // plain text
}

TEST_F(LoraData, WithoutATemplate) {
  const std::vector<LoraSample> samples =
      read("{\"prompt\": \"a\", \"completion\": \"b\"}", 100, nullptr);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_TRUE(shown(samples[0]).ends_with("[b][</s>]")) << shown(samples[0]);
  EXPECT_EQ(shown(samples[0]).find("[a]"), std::string::npos);
}

TEST_F(LoraData, PlainTextAndCuts) {
  const std::vector<LoraSample> samples = read("abcdefgh", 4);
  ASSERT_EQ(samples.size(), 3u);  // <s>, a space and the letters; a sample begins at each fourth
  EXPECT_EQ(samples[0].tokens.size(), 5u);
  EXPECT_EQ(samples[2].tokens.size(), 2u);
  EXPECT_EQ(samples[0].tokens.back(), samples[1].tokens.front());
  const std::vector<LoraSample> cut = read(
      "{\"prompt\": \"abc\", \"completion\": \"defgh\"}\n"
      "{\"prompt\": \"abcdefghijklmnop\", \"completion\": \"q\"}",
      10);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(shown(cut[0]), "<s> uabc</s> za[d]");
}

TEST_F(LoraData, BatchesArePadded) {
  const auto source =
      lora_source({{{1, 2, 3}, {false, true, true}}, {{4, 5, 6, 7}, {true, false, false, true}}});
  const std::vector<int64_t> samples = {0, 1};
  const std::vector<Tensor> batch = source->batch(samples);
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[0].shape(), (Shape{2, 32}));
  const std::vector<int32_t> tokens = batch[0].to_vector<int32_t>(),
                             rows = batch[1].to_vector<int32_t>(),
                             targets = batch[2].to_vector<int32_t>();
  EXPECT_EQ((std::vector<int32_t>{tokens[0], tokens[1], tokens[2], tokens[32], tokens[34]}),
            (std::vector<int32_t>{1, 2, 0, 4, 6}));
  EXPECT_EQ(std::vector<int32_t>(rows.begin(), rows.begin() + 4),
            (std::vector<int32_t>{0, 1, 34, 0}));
  EXPECT_EQ(std::vector<int32_t>(targets.begin(), targets.begin() + 4),
            (std::vector<int32_t>{2, 3, 7, kIgnoredToken}));
}

TEST_F(LoraData, SplitsKeepEverySample) {
  std::vector<LoraSample> samples;
  for (int32_t i = 0; i < 20; ++i) samples.push_back({{i, i}, {true, true}});
  const LoraSplit split = split_samples(samples, 0.1, 3);
  EXPECT_EQ(split.training.size(), 18u);
  EXPECT_EQ(split.validation.size(), 2u);
  std::vector<bool> seen(20);
  for (const auto* part : {&split.training, &split.validation})
    for (const LoraSample& each : *part) seen[static_cast<size_t>(each.tokens[0])] = true;
  EXPECT_EQ(std::ranges::count(seen, true), 20);
  EXPECT_EQ(split_samples(samples, 0, 3).validation.size(), 0u);
  EXPECT_THROW(split_samples({samples[0]}, 0.1, 3), Error);
}

}  // namespace
}  // namespace prism::llm
