// Writes the GGUF file of a Hugging Face folder.
#include "llm/convert/convert_folder.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "llm/convert/hf_architectures.h"
#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_tokenizer.h"
#include "llm/convert/planned_tensors.h"
#include "llm/convert/produce_tensor.h"
#include "llm/convert/sentence_settings.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/quantise_mix.h"
#include "llm/model/verify_model.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

// The prompt of Qwen3-Reranker, with the instruction that it has by default.
constexpr std::string_view kQwenRankTemplate =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n";

std::string folder_name(const std::string& folder) {
  std::error_code ignored;
  fs::path path = fs::weakly_canonical(folder, ignored);
  if (path.filename().empty()) path = path.parent_path();
  return path.filename().string();
}

// The type of the folder's weights.
std::string stored_type(const std::vector<PlannedTensor>& tensors) {
  for (const PlannedTensor& each : tensors)
    if (each.name == "token_embd.weight")
      return each.type == DType::f16 ? "F16" : each.type == DType::bf16 ? "BF16" : "F32";
  return "F32";
}

// The metadata, without tensors. `context`: tokens, as written.
GgufWriter metadata(const HfFolder& folder, const HfArchitecture& architecture,
                    const ConvertOptions& options, int64_t* context) {
  const JsonView config(folder.config());
  GgufWriter writer;
  writer.set("general.architecture", architecture.gguf);
  writer.set("general.type", "model");
  writer.set("general.name", options.name.empty() ? folder_name(folder.path()) : options.name);
  write_hyperparameters(architecture, config, writer);
  const std::string prefix = fmt::format("{}.", architecture.gguf);
  if (architecture.from_tensors) architecture.from_tensors(folder, writer);
  const SentenceSettings sentences = sentence_settings(folder);
  *context = context_length(architecture, config);
  if (sentences.max_tokens && *sentences.max_tokens < *context) {
    *context = *sentences.max_tokens;
    writer.set(prefix + "context_length", static_cast<uint32_t>(*context));
  }
  constexpr uint32_t kMean = 1, kRank = 4;
  if (sentences.answers || architecture.ranks) {
    writer.set(prefix + "pooling_type", kRank);
    writer.set("tokenizer.chat_template.rerank", kQwenRankTemplate);
  } else if (sentences.pooling || architecture.is_bare)
    writer.set(prefix + "pooling_type", sentences.pooling.value_or(kMean));
  return writer;
}

int64_t vocabulary_of(const HfFolder& folder, const std::vector<PlannedTensor>& tensors) {
  for (const PlannedTensor& each : tensors)
    if (each.name == "token_embd.weight") return each.shape[0];
  throw Error(ErrorCode::kCorruptFile,
              fmt::format("{}: no tensor is the token embedding", folder.path()));
}

// The types that the tensors get. Only a file can be asked, so its header is made and parsed.
std::vector<ElementType> types_of(const std::vector<PlannedTensor>& tensors, GgufWriter layout,
                                  const QuantiseMix& mix) {
  for (const PlannedTensor& each : tensors)
    layout.add_tensor(each.name, each.shape, DType::f32, std::span<const std::byte>());
  const std::string header = layout.header();
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(header)));
  std::vector<ElementType> types;
  for (const auto& chosen : quantised_types(file, mix))
    types.push_back(chosen.value_or(ElementType(DType::f32)));
  return types;
}

// A file that is removed unless it is kept.
struct Draft {
  explicit Draft(const std::string& of) : path(of + ".converted.part") {}
  ~Draft() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  void keep_as(const std::string& to) const {
    std::error_code failed;
    fs::rename(path, to, failed);
    if (failed)
      throw Error(ErrorCode::kIo, fmt::format("{}: cannot be written: {}", to, failed.message()));
  }
  std::string path;
};

}  // namespace

ConvertResult convert_folder(const std::string& path, const std::string& to,
                             const ConvertOptions& options) {
  try {
    const HfFolder folder = HfFolder::open(path);
    const HfArchitecture& architecture = hf_architecture(JsonView(folder.config()));
    int64_t context = 0;
    GgufWriter writer = metadata(folder, architecture, options, &context);
    const std::vector<PlannedTensor> tensors = plan_tensors(architecture, folder, context);
    const QuantiseMix& mix =
        quantise_mix(options.type.empty() ? stored_type(tensors) : options.type);
    writer.set("general.file_type", mix.file_type);
    if (mix.base.is_block()) writer.set("general.quantization_version", uint32_t{2});
    write_tokenizer(folder, vocabulary_of(folder, tensors), writer);

    std::vector<ElementType> types = types_of(tensors, writer, mix);
    for (size_t i = 0; i < tensors.size(); ++i)  // quantised ones stay as they are
      if (options.type.empty() && tensors[i].type.is_block()) types[i] = tensors[i].type;
    std::string at;  // the tensor being written
    for (size_t i = 0; i < tensors.size(); ++i)
      writer.add_tensor(
          tensors[i].name, tensors[i].shape, types[i], [&, i](const GgufWriter::Sink& sink) {
            at = tensors[i].name;
            try {
              produce(tensors[i], types[i], cpu_pool(), sink);
            } catch (const Error& error) {
              throw Error(error.code(), fmt::format("tensor {}: {}", at, error.what()));
            }
          });
    const Draft draft(to);
    writer.write(draft.path, [&](uint64_t written, uint64_t all) {
      if (options.progress) options.progress(at, written, all);
    });
    const GgufFile file = GgufFile::open(draft.path);
    check_loads(file);
    Tokenizer::from(file);
    draft.keep_as(to);
    return {std::string(architecture.gguf), mix.name, tensors.size(), writer.file_bytes()};
  } catch (const JsonError& error) {
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("converting {}: a value of its JSON files is wrong: {}", path, error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("converting {}: {}", path, error.what()));
  }
}

}  // namespace prism::llm
