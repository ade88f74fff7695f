// Conversion of the folders of tests.
#include "support/models/converted.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "llm/convert/convert_folder.h"
#include "llm/model/model.h"

namespace prism::test {

llm::GgufFile convert(const HfTestFolder& folder, const std::string& type, const std::string& to) {
  llm::convert_folder(folder.path(), folder.path(to), {.type = type, .name = "tiny"});
  return llm::GgufFile::open(folder.path(to));
}

std::string failure_of(const HfTestFolder& folder, ErrorCode code) {
  try {
    convert(folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_FALSE(std::filesystem::exists(folder.path("out.gguf")));
    return error.what();
  }
  ADD_FAILURE() << "the folder was converted";
  return "";
}

std::vector<float> result_of(const llm::GgufFile& file, const std::vector<int32_t>& tokens) {
  llm::Model model =
      llm::Model::load(file, {.placement = llm::place_on(file, Device::cpu(), 32, DType::f32)});
  if (model.classifies()) return model.classify(std::span(&tokens, 1))[0];
  // Models that fill text in see all of it, too, and have logits.
  const bool has_logits = model.config().pooling == llm::Pooling::none &&
                          (model.config().causal || file.find_tensor("output.weight"));
  if (!has_logits) return model.embed(std::span(&tokens, 1))[0];
  return model.prefill(0, 0, tokens).to_vector<float>();
}

}  // namespace prism::test
