// `prism model quantize IN OUT TYPE`: writes a model in another element type.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "base/system/thread_pool.h"
#include "cli/commands.h"
#include "cli/model_fetch.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/terminal.h"
#include "llm/gguf/quantise_file.h"
namespace prism::cli {
namespace {

struct Options {
  std::string input, output, type, importance;
  std::vector<std::string> types;
  bool requantise = false, overwrite = false;
  uint32_t threads = 0;
};

int quantise(const Options& options) {
  const llm::QuantiseMix& mix = llm::quantise_mix(options.type);
  const llm::GgufFile file = llm::GgufFile::open(model_path(options.input));
  check_output(options.output, file.parts(), options.overwrite);
  std::unique_ptr<ThreadPool> pool;
  if (options.threads > 0) pool = std::make_unique<ThreadPool>(options.threads);
  llm::QuantiseOptions how;
  how.requantise = options.requantise;
  for (const std::string& rule : options.types) how.types.push_back(llm::tensor_type_rule(rule));
  llm::ImportanceMatrix importance;
  if (!options.importance.empty()) {
    importance = llm::ImportanceMatrix::open(options.importance);
    how.importance = &importance;
    how.importance_file = options.importance;
  }
  how.pool = pool.get();
  how.progress = [](const std::string& tensor, uint64_t done, uint64_t all) {
    progress_bar(tensor, done, all);
  };
  const auto begun = std::chrono::steady_clock::now();
  const llm::QuantiseResult result = llm::quantise_file(file, options.output, mix, how);
  end_progress();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::cout << fmt::format(
      "{}: {} of {} tensors to {}{}, {} to {} in {:.1f} s\n", options.output, result.changed,
      result.tensors, mix.name,
      how.importance ? fmt::format(" ({} by importance)", result.weighted) : "",
      size_text(result.input_bytes), size_text(result.output_bytes), took.count());
  return kRight;
}

}  // namespace

void add_model_quantize_command(const Command& model) {
  const Command command = model.subcommand("quantize", "write a model in another element type");
  auto options = std::make_shared<Options>();
  command
      .option("input", options->input, "a GGUF file in F32, F16, BF16 or Q8_0, or a model's name")
      .required();
  command.option("output", options->output, "the file to write").required();
  command
      .option("type", options->type,
              fmt::format("one of {}", fmt::join(llm::quantise_mix_names(), ", ")))
      .required();
  command
      .option(
          "--tensor-type", options->types,
          "PATTERN=TYPE: the type of the tensors in whose names the regular expression is found; "
          "may be repeated, the first that matches counts")
      .one_word();
  command.option("--imatrix", options->importance,
                 "a file of prism model imatrix or llama.cpp: columns that count more get smaller "
                 "errors");
  command.flag("--requantize,--allow-requantize", options->requantise,
               "also accept an input of fewer bits, whose errors add up");
  command.flag("--overwrite", options->overwrite, "replace an output that exists");
  command.option("-t,--threads", options->threads, "threads to use").between(1, 4096);
  command.footer(
      "Examples:\n  prism model quantize model-f16.gguf model-q4.gguf Q4_K_M\n  prism model "
      "quantize "
      "model-f16.gguf model-q3.gguf Q3_K_M --imatrix model.imatrix.gguf --tensor-type "
      "'ffn_down=q5_k' --tensor-type 'blk\\.[0-3]\\.=q6_k'");
  command.run([options] { return quantise(*options); });
}

}  // namespace prism::cli
