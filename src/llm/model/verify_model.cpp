// Loads the parts of a model one by one and collects their errors.
#include "llm/model/verify_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "llm/architectures/model_config.h"
#include "llm/gguf/layer_names.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/llm/memory.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

namespace {

// A file that Prism cannot use may still be a valid one.
template <class Work>
void collect(VerifyResult& result, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    (error.code() == ErrorCode::kNotSupported ? result.notes : result.problems)
        .push_back(error.what());
  }
}

void check_layers(const GgufFile& file) {
  const ModelSizes sizes = model_sizes(file);
  const int64_t encoder = sizes.layers - sizes.decoder_layers;
  for (int64_t i = 0; i < sizes.layers; ++i) {
    if (std::ranges::none_of(file.tensors(), [&](const GgufTensor& tensor) {
          return layer_of_tensor(tensor.name, encoder) == i;
        }))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("layer {} of {} has no tensors", i, sizes.layers));
  }
}

}  // namespace

void check_loads(const GgufFile& file) {
  check_architecture(file);
  const auto architecture = make_architecture(std::string(file.string("general.architecture")));
  const Config config = model_config(file, *architecture);
  const Placement placement = place_on(file, Device::cpu());
  const Weights weights = load_weights(file, config, *architecture, placement, {});
  make_rope_tables(config, weights, {Device::cpu()});
}

VerifyResult verify_model(const GgufFile& file,
                          const std::function<void(uint64_t done, uint64_t all)>& progress) {
  VerifyResult result;
  if (file.tensors().empty()) {
    result.notes.push_back("has no tensors");
  } else {
    collect(result, [&] { check_loads(file); });
    const auto sized = fmt::format("{}.block_count", file.string_or("general.architecture", ""));
    if (result.problems.empty() && file.has(sized)) collect(result, [&] { check_layers(file); });
  }
  if (file.has("tokenizer.ggml.tokens")) collect(result, [&] { Tokenizer::from(file); });
  const VerifyResult values = verify_file(file, progress);
  result.problems.insert(result.problems.end(), values.problems.begin(), values.problems.end());
  result.notes.insert(result.notes.end(), values.notes.begin(), values.notes.end());
  result.tensors = values.tensors;
  result.elements = values.elements;
  return result;
}

}  // namespace prism::llm
