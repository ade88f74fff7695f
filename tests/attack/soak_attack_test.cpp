// Many short generations in one process: memory, file handles and threads do not grow.
//
// 200 generations by default; PRISM_ATTACK=100 makes it 20,000.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "support/attack_rounds.h"
#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/run_program.h"

namespace {

std::atomic<int64_t> live_objects = 0, live_bytes = 0;

void* counted(void* memory) {
  if (!memory) return nullptr;
  ++live_objects;
  live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void uncount(void* memory) {
  if (!memory) return;
  --live_objects;
  live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

// What the C++ code holds, exactly. The heap of the C library alone would not do: what threads have
// freed and keep for themselves counts there as used, and grows slowly for hundreds of models.
void* operator new(size_t bytes) {
  if (void* const memory = counted(std::malloc(bytes > 0 ? bytes : 1))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto each = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(each, (bytes + each - 1) / each * each));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  if (void* const memory = operator new(bytes, alignment, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { uncount(memory); }
void operator delete(void* memory, size_t) noexcept { uncount(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { uncount(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { uncount(memory); }

namespace prism::llm {
namespace {

namespace fs = std::filesystem;

struct Use {
  int64_t objects = 0, object_bytes = 0;
  int64_t heap_bytes = 0, resident_bytes = 0, handles = 0, threads = 0;
};

int64_t count_entries(const char* folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

Use current_use() {
  Use use;
  use.objects = live_objects;
  use.object_bytes = live_bytes;
  const struct mallinfo2 heap = mallinfo2();
  use.heap_bytes = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  use.resident_bytes = pages * 4096;
  use.handles = count_entries("/proc/self/fd");
  use.threads = count_entries("/proc/self/task");
  return use;
}

class Soak : public testing::Test {
 protected:
  void SetUp() override {
    if (source_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  LanguageModel load() {
    LoadOptions options;
    options.slots = 3;
    options.batch_rows = 16;
    options.fit.device = "cpu";
    options.fit.context = 64;
    return LanguageModel::load(test::with_template(source_, folder_.path()), options);
  }

  test::TemporaryFolder folder_;
  const std::string source_ = test::shared_model("stories260K");
};

// Every tenth generation is of the same kind, with one of seven prompts.
class Works {
 public:
  explicit Works(LanguageModel& model) : model_(model) {}

  void run(int64_t round) {
    const std::string prompt = kPrompts[round % 7];
    GenerationOptions options = test::greedy(4);
    options.sampler.seed = static_cast<uint64_t>(round);
    switch (round % 10) {
      case 0:
        model_.generate(prompt, options);
        break;
      case 1:
        options.sampler.temperature = 0.8f;
        options.stop = {"girl", " the"};
        model_.generate(prompt, options);
        break;
      case 2:
        model_.generate_all({{prompt, options},
                             {kPrompts[0], options},
                             {kPrompts[1], options},
                             {kPrompts[2], options}});
        break;
      case 3: {
        const std::vector<ChatMessage> messages = {{.role = "user", .content = prompt}};
        model_.chat(messages, options);
        break;
      }
      case 4:
        options.grammar = Grammar::parse("root ::= \" cat\" | \" dog\" [a-z]*");
        model_.generate(prompt, options);
        break;
      case 5: {
        const std::vector<std::string> texts = {prompt, kPrompts[3]};
        model_.embed(texts);
        break;
      }
      case 6:
        model_.score(prompt, 3);
        break;
      case 7:
        options.max_tokens = 20;
        model_.generate(prompt, options, [&](std::string_view) {
          model_.cancel();
          return true;
        });
        break;
      case 8:
        options.max_tokens = 20;
        model_.generate(prompt, options, [](std::string_view) { return false; });
        break;
      default:
        EXPECT_THROW(model_.generate(std::string(2000, 'a'), options), Error);
    }
  }

 private:
  static constexpr const char* kPrompts[] = {
      "Once upon a time", "Lily",           "The dog saw a cat and", "One day, Tom went to the",
      "A big red ball",   "It was raining", "She said: \"I like"};
  LanguageModel& model_;
};

TEST_F(Soak, NothingGrows) {
  LanguageModel model = load();
  Works works(model);
  const int64_t rounds = test::attack_rounds(300), warm = std::max<int64_t>(rounds / 10, 200);
  for (int64_t round = 0; round < warm; ++round) works.run(round);  // fills caches of plans
  const Use before = current_use();
  for (int64_t round = warm; round < rounds; ++round) works.run(round);
  const Use after = current_use();
  std::cout << rounds << " generations: heap " << before.heap_bytes << " to " << after.heap_bytes
            << " bytes, resident " << before.resident_bytes << " to " << after.resident_bytes
            << " bytes, handles " << before.handles << " to " << after.handles << ", threads "
            << before.threads << " to " << after.threads << std::endl;
  // Prompts that the KV cache still holds and the plans of batches differ from round to round.
  EXPECT_LE(after.heap_bytes - before.heap_bytes, 128 << 10);
  EXPECT_LE(after.resident_bytes - before.resident_bytes, 4 << 20);
  EXPECT_EQ(after.handles, before.handles);
  EXPECT_EQ(after.threads, before.threads);
}

// Loading and freeing models: of no load an object stays.
TEST_F(Soak, LoadedModelsAreFreed) {
  const auto load_and_use = [&] {
    LanguageModel model = load();
    model.generate("Once", test::greedy(2));
  };
  const int64_t rounds = test::attack_rounds(20);
  for (int i = 0; i < 3; ++i) load_and_use();
  const Use before = current_use();
  for (int64_t i = 0; i < rounds; ++i) load_and_use();
  const Use after = current_use();
  std::cout << rounds << " models: " << before.objects << " to " << after.objects << " objects of "
            << before.object_bytes << " to " << after.object_bytes << " bytes, heap "
            << before.heap_bytes << " to " << after.heap_bytes << " bytes, handles "
            << before.handles << " to " << after.handles << ", threads " << before.threads << " to "
            << after.threads << std::endl;
  // A thread that gets its first work late makes its scratch memory then.
  EXPECT_LT(after.objects - before.objects, rounds / 2);
  EXPECT_LE(after.object_bytes - before.object_bytes, 128 << 10);
  EXPECT_LE(after.heap_bytes - before.heap_bytes, 1 << 20);  // free memory of threads counts too
  EXPECT_EQ(after.handles, before.handles);
  EXPECT_EQ(after.threads, before.threads);
}

}  // namespace
}  // namespace prism::llm
