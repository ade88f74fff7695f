// Compares the tokens of the default model on the CPU and on a double.
#include "support/doubles/double_models.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "prism/llm/model_store.h"
#include "support/models/greedy.h"
#include "tensor/storage.h"

namespace prism::test {

void expect_default_model_gives_the_cpus_tokens(DriverDouble& the_double) {
  std::string path;
  {
    // `make run` stores the model in the user's cache folder, not in the test's.
    const char* own = std::getenv("PRISM_CACHE_DIR");
    const std::string before = own ? own : "";
    unsetenv("PRISM_CACHE_DIR");
    path = llm::find_model(llm::kDefaultModel);
    if (own) setenv("PRISM_CACHE_DIR", before.c_str(), 1);
  }
  if (path.empty())
    GTEST_SKIP() << "needs the default model in the cache folder: prism model fetch smollm2";
  const llm::GgufFile file = llm::GgufFile::open(path);
  the_double.set("memory=4294967296");
  const Device device = the_double.device();
  std::vector<std::vector<int32_t>> tokens;
  for (const Device& each : {Device::cpu(), device}) {
    llm::LanguageModel model =
        llm::LanguageModel::load(path, llm::place_on(file, each, 32), {.batch_rows = 8});
    // Each next token is e^3 times as likely as any other: the CPU and the kernels round
    // activations to 8 bits at different points, which may flip closer choices.
    tokens.push_back(model.generate("1, 2, 3,", greedy(4)).tokens);
  }
  ASSERT_EQ(tokens[0].size(), 4u);
  EXPECT_EQ(tokens[1], tokens[0]);
  EXPECT_EQ(the_double.count("overruns"), 0);
  EXPECT_EQ(the_double.count("misuses"), 0);
  release_pooled_memory(device);
}

}  // namespace prism::test
