// Text from a language model. Usage: example_generate [MODEL [PROMPT]]
#include <prism/prism.h>

#include <iostream>

using namespace prism;

int main(int count, char** words) try {
  llm::LanguageModel model = llm::LanguageModel::load(count > 1 ? words[1] : "");
  const llm::GenerationOptions options = {.sampler = {.temperature = 0}, .max_tokens = 60};
  model.generate(count > 2 ? words[2] : "Once upon a time", options, [](std::string_view text) {
    std::cout << text << std::flush;
    return true;  // go on
  });
  std::cout << "\n";
} catch (const Error& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 2;
}
