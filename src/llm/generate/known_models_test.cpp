// Tests the titles and the sampling of known and unknown models.
#include "llm/generate/known_models.h"

#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

// Writes a file with only these values.
GgufFile file_with(const test::TemporaryFolder& folder,
                   const std::vector<std::pair<std::string, std::string>>& values) {
  GgufWriter writer;
  for (const auto& [key, value] : values) writer.set(key, value);
  writer.write(folder / "plain.gguf");
  return GgufFile::open(folder / "plain.gguf");
}

TEST(KnownModels, SmolLm2HasItsMakersSampling) {
  const test::TemporaryFolder folder;
  const GgufFile file = file_with(folder, {{"general.architecture", "llama"},
                                           {"general.name", "Smollm2 135M 8k Lc100K Mix1 Ep2"},
                                           {"general.size_label", "135M"},
                                           {"tokenizer.chat_template", "{{ messages }}"}});
  EXPECT_EQ(model_title(file), "SmolLM2 135M");
  const RecommendedSampling* sampling = recommended_sampling(file);
  ASSERT_TRUE(sampling);
  EXPECT_EQ(sampling->temperature, 0.2f);
  EXPECT_EQ(sampling->top_p, 0.9f);
  EXPECT_GT(sampling->dry_multiplier, 0);
}

TEST(KnownModels, OthersKeepTheDefaults) {
  const test::TemporaryFolder folder;
  const GgufFile base =
      file_with(folder, {{"general.architecture", "llama"}, {"general.basename", "smollm2"}});
  EXPECT_FALSE(recommended_sampling(base)) << "it was not trained to chat";
  const GgufFile other = file_with(folder, {{"general.architecture", "llama"},
                                            {"general.name", "stories"},
                                            {"tokenizer.chat_template", "x"}});
  EXPECT_FALSE(recommended_sampling(other));
  EXPECT_EQ(model_title(other), "stories");
  EXPECT_EQ(model_title(file_with(folder, {{"general.architecture", "llama"}})), "plain");
}

}  // namespace
}  // namespace prism::llm
