// The table of known models, and the search for a file's row in it.
#include "llm/generate/known_models.h"

#include <cctype>
#include <filesystem>
#include <string_view>

namespace prism::llm {
namespace {

struct KnownModel {
  const char* name;          // in general.name or general.basename, in lower case
  const char* architecture;  // general.architecture
  const char* title;
  RecommendedSampling sampling;  // of the variant that was trained to chat
};

// SmolLM2: temperature and top-p come from its model card. Its small sizes repeat themselves
// without a penalty. DRY prevents that and does not affect the end-of-text token; a repeat penalty
// makes that token less likely, because the prompt contains it too.
constexpr KnownModel kKnownModels[] = {{"smollm2", "llama", "SmolLM2", {0.2f, 0.9f, 0.8f}}};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

const KnownModel* known_model(const GgufFile& file) {
  const std::string names = lower(file.string_or("general.name", "")) + "\n" +
                            lower(file.string_or("general.basename", ""));
  for (const KnownModel& each : kKnownModels)
    if (names.find(each.name) != names.npos &&
        file.string_or("general.architecture", "") == each.architecture)
      return &each;
  return nullptr;
}

}  // namespace

const RecommendedSampling* recommended_sampling(const GgufFile& file) {
  const KnownModel* known = known_model(file);
  return known && file.has("tokenizer.chat_template") ? &known->sampling : nullptr;
}

std::string model_title(const GgufFile& file) {
  if (const KnownModel* known = known_model(file)) {
    const std::string_view size = file.string_or("general.size_label", "");
    return std::string(known->title) + (size.empty() ? "" : " ") + std::string(size);
  }
  const std::string_view name = file.string_or("general.name", "");
  return name.empty() ? std::filesystem::path(file.path()).stem().string() : std::string(name);
}

}  // namespace prism::llm
