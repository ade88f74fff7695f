// Tests that prompts kept on disk give the same texts in a later run, on every device.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "llm/generate/prompt_cache.h"
#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "prism/warning.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/models/tiny_models.h"

namespace prism::llm {
namespace {

namespace fs = std::filesystem;
using test::greedy;

class PromptCacheDevice : public testing::Test {
 protected:
  PromptCacheDevice()
      : before_(
            set_warning_handler([this](const std::string& text) { warnings_.push_back(text); })) {
    for (int i = 0; prompt_.size() < 300; ++i) prompt_.push_back(i * i % 31 + i % 7 + 3);
  }
  ~PromptCacheDevice() override { set_warning_handler(before_); }

  LanguageModel load(const std::string& path, const Device& device, ElementType type,
                     bool with_cache, int64_t slots = 1) const {
    LoadOptions options;
    options.slots = slots;
    options.batch_rows = 64;
    if (with_cache) options.prompt_cache = folder_ / "cache";
    return LanguageModel::load(path, place_on(GgufFile::open(path), device, 640, type), options);
  }
  static Generation generate(LanguageModel& model, std::span<const int32_t> prompt) {
    GenerationOptions options = greedy(20);
    options.ignore_end = true;
    return model.generate(prompt, options);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& each : fs::directory_iterator(folder_ / "cache")) all.push_back(each.path());
    return all;
  }
  // A run that keeps its prompt, and one that finds it.
  void check_restart(const std::string& path, const Device& device, ElementType type,
                     int64_t restored) {
    SCOPED_TRACE(device.id() + " " + type.name() + " " + path);
    const auto without = [&] {
      LanguageModel model = load(path, device, type, false);
      return generate(model, prompt_);
    }();
    {
      LanguageModel model = load(path, device, type, true);
      const Generation first = generate(model, prompt_);
      EXPECT_EQ(first.tokens, without.tokens);
      EXPECT_EQ(first.statistics.restored_tokens, 0);
    }
    LanguageModel model = load(path, device, type, true);
    const Generation again = generate(model, prompt_);
    EXPECT_EQ(again.tokens, without.tokens);
    EXPECT_EQ(again.statistics.restored_tokens, restored);
    EXPECT_EQ(again.statistics.reused_tokens, restored);
    // Now it is in memory.
    EXPECT_EQ(generate(model, prompt_).statistics.restored_tokens, 0);
  }

  test::TemporaryFolder folder_;
  std::vector<int32_t> prompt_;
  std::vector<std::string> warnings_;
  WarningHandler before_;
};

TEST_F(PromptCacheDevice, PromptsSurviveARestart) {
  const auto tiny = test::tiny_model("llama");
  const std::string path = tiny->open().path();
  for (const Device& device : test::every_device()) {
    std::vector<ElementType> types = {DType::f32};
    if (device.info().is_cpu) types = {DType::f32, DType::f16, BlockType::q8_0};
    for (const ElementType type : types) {
      fs::remove_all(folder_ / "cache");
      check_restart(path, device, type, 256);
    }
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(PromptCacheDevice, WindowedLayersAreRestored) {
  for (const char* name : {"gemma2", "gemma3", "gpt-oss"}) {
    fs::remove_all(folder_ / "cache");
    const auto tiny = test::tiny_model(name);
    check_restart(tiny->open().path(), Device::cpu(), DType::f32, 256);
  }
}

TEST_F(PromptCacheDevice, OtherDevicesReadTheSameFiles) {
  const auto tiny = test::tiny_model("llama");
  const std::string path = tiny->open().path();
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q8_0)}) {
    LanguageModel writer = load(path, Device::cpu(), type, true);
    generate(writer, prompt_);
  }
  const size_t count = files().size();
  for (const Device& device : test::every_device())
    for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q8_0)}) {
      LanguageModel reader = load(path, device, type, true),
                    other = load(path, device, type, false);
      const Generation text = generate(reader, prompt_);
      EXPECT_EQ(text.statistics.restored_tokens, 256) << device.id() << " " << type.name();
      EXPECT_EQ(text.tokens[0], generate(other, prompt_).tokens[0]) << device.id();
    }
  EXPECT_EQ(files().size(), count);
}

TEST_F(PromptCacheDevice, SharedPrefixesAreKeptOnce) {
  const auto tiny = test::tiny_model("llama");
  const std::string path = tiny->open().path();
  std::vector<int32_t> other = prompt_;
  other[200] = 2;  // in the second block
  {
    LanguageModel model = load(path, Device::cpu(), DType::f32, true, 2);
    generate(model, prompt_);
    generate(model, other);
  }
  EXPECT_EQ(files().size(), 2u + 1u);  // two blocks each, of which they share the first
  LanguageModel model = load(path, Device::cpu(), DType::f32, true);
  LanguageModel plain = load(path, Device::cpu(), DType::f32, false);
  EXPECT_EQ(generate(model, other).tokens, generate(plain, other).tokens);
  const Generation text = generate(model, prompt_);
  EXPECT_EQ(text.tokens, generate(plain, prompt_).tokens);
  EXPECT_EQ(text.statistics.reused_tokens, 256);
  EXPECT_EQ(text.statistics.restored_tokens, 128);  // the rest is in memory
}

TEST_F(PromptCacheDevice, DamagedAndForeignFilesAreNotUsed) {
  const auto tiny = test::tiny_model("llama"), changed = test::tiny_model("llama", 2);
  const std::string path = tiny->open().path();
  const auto expected = [&] {
    LanguageModel model = load(path, Device::cpu(), DType::f32, true);
    return generate(model, prompt_).tokens;
  }();
  // Another model of the same kind and another cache type have files of their own.
  for (const auto& [file, type] : {std::pair(changed->open().path(), ElementType(DType::f32)),
                                   std::pair(path, ElementType(DType::f16))}) {
    LanguageModel model = load(file, Device::cpu(), type, true);
    EXPECT_EQ(generate(model, prompt_).statistics.restored_tokens, 0);
  }
  EXPECT_EQ(warnings_.size(), 1u);  // about the cache type
  for (const fs::path& each : files()) {
    std::fstream file(each, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(each) / 2));
    file.put('x').put('y').put('z');
  }
  LanguageModel model = load(path, Device::cpu(), DType::f32, true);
  const Generation text = generate(model, prompt_);
  EXPECT_EQ(text.tokens, expected);
  EXPECT_EQ(text.statistics.restored_tokens, 0);
}

TEST_F(PromptCacheDevice, IsReadWhileOtherTextsRun) {
  const auto tiny = test::tiny_model("llama");
  const std::string path = tiny->open().path();
  std::vector<int32_t> expected;
  {
    LanguageModel model = load(path, Device::cpu(), DType::f32, true);
    expected = generate(model, prompt_).tokens;
  }
  LanguageModel model = load(path, Device::cpu(), DType::f32, true, 2);
  GenerationOptions options = greedy(20);
  options.ignore_end = true;
  const std::vector<int32_t> other(200, 4);
  const int64_t first = model.add(other, options);
  for (int i = 0; i < 8; ++i) model.step();
  const int64_t second = model.add(prompt_, options);
  while (model.step()) {
  }
  EXPECT_EQ(model.take(first).tokens.size(), 20u);
  const Generation text = model.take(second);
  EXPECT_EQ(text.tokens, expected);
  EXPECT_EQ(text.statistics.restored_tokens, 256);
}

TEST_F(PromptCacheDevice, LongPrefixesAreReadInParts) {
  const auto tiny = test::tiny_model("gemma2");  // with a windowed group
  const GgufFile file = tiny->open();
  {
    LanguageModel writer = load(file.path(), Device::cpu(), DType::f32, true);
    generate(writer, prompt_);
  }
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 640, DType::f32)});
  KvCache& cache = model.cache();
  ASSERT_EQ(cache.groups(), 2u);
  PromptCache prompts(folder_ / "cache", uint64_t{1} << 30, file, model);
  PrefixTree tree(cache.block(),
                  {{&cache.blocks(0), cache.window(0)}, {&cache.blocks(1), cache.window(1)}});
  const int64_t free = cache.blocks(0).free() + cache.blocks(1).free();
  for (const int64_t known : {0, 128}) {
    const PrefixTree::Match before = tree.find(prompt_);
    EXPECT_EQ(before.length, known);
    cache.adopt(0, before.tables, before.state, before.length);
    const PromptCache::Restored read = prompts.restore(prompt_, known, tree, cache, 1);
    EXPECT_EQ(read.tokens, 128);
    EXPECT_EQ(read.is_cut, known < 128);
  }
  EXPECT_EQ(tree.find(prompt_).length, 256);
  EXPECT_EQ(prompts.restore(prompt_, 256, tree, cache, 1).tokens, 0);
  cache.truncate(0, 0);
  tree.clear();
  EXPECT_EQ(cache.blocks(0).free() + cache.blocks(1).free(), free);
}

}  // namespace
}  // namespace prism::llm
