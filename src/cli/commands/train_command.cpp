// `prism train`: trains a model and writes a GGUF file.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/system/output_file.h"
#include "cli/commands.h"
#include "cli/train.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

void add_model_options(const Command& command, TrainSettings& s) {
  command
      .option("--shape", s.model.shape,
              "the sizes of a new model: nano, tiny, small, medium or base")
      .shows_default()
      .sets(s.model.has_shape);
  command.option("--layers", s.model.layers, "layers, instead of the shape's").positive();
  command.option("--width", s.model.width, "width, instead of the shape's").positive();
  command.option("--heads", s.model.heads, "attention heads, instead of the shape's").positive();
  command.option("--kv-heads", s.model.kv_heads, "heads of keys and values (default: as many)")
      .positive();
  command
      .option("--context", s.context,
              "tokens of a training sequence, and what the model can remember")
      .positive();
  command
      .option("--tokenizer", s.model.tokenizer,
              "bpe learns frequent parts of words, chars takes single characters")
      .shows_default()
      .sets(s.model.has_tokenizer);
  command.option("--vocab", s.model.vocabulary, "tokens that bpe learns (default: the shape's)")
      .positive();
  command.flag("--untied", s.model.untied, "give the output weights of its own");
  command.option("--full", s.full,
                 "train all weights of this model, a GGUF file, instead of a new one");
}

void add_training_options(const Command& command, TrainSettings& s) {
  command.option("-n,--steps", s.steps, "updates of the weights (default: the shape's)").positive();
  command.option("--batch", s.batch, "sequences in a step (default: the shape's)").positive();
  command.option("--accumulate", s.accumulate, "batches whose mean makes one update")
      .positive()
      .shows_default();
  command.option("--lr", s.rate, "the highest learning rate (default: the shape's)").positive();
  command
      .option("--warmup", s.warmup,
              "steps until that rate is reached; then it falls (default: a twentieth)")
      .not_negative();
  command.option("--weight-decay", s.weight_decay, "how fast weights shrink (default: 0.1)")
      .not_negative();
  command
      .option("--dropout", s.dropout,
              "share of activations that a step leaves out, against overfitting")
      .not_negative();
  command.option("--clip", s.clip, "the largest norm of the gradients; 0: no limit")
      .shows_default();
  command.option("--validation", s.validation, "share of the text that is kept for validation")
      .shows_default();
  command
      .option("--validate-every", s.validate_every,
              "steps between validations (default: a tenth of them)")
      .positive();
  command
      .option("--patience", s.patience,
              "stop early after this many validations without improvement (default: never)")
      .positive();
  command.option("--seed", s.seed, "seed of weights, order of the data and dropout")
      .shows_default();
  command.option("--device", s.device, "the device, as `prism devices` names it").shows_default();
  command
      .option("--precision", s.precision,
              "type of matrix products: f32, bf16 or f16; weights stay in f32. Not with --lora")
      .shows_default();
  command.flag("--recompute", s.recompute,
               "compute layers again for the gradient: less memory, about a third more time");
  command.flag("--detect-anomaly", s.detect_anomaly,
               "check every step, and name the layer where a loss that is not finite began");
}

void add_file_options(const Command& command, TrainSettings& s) {
  command.option("--checkpoint", s.checkpoint,
                 "file for the state of the run (default: OUTPUT.checkpoint)");
  command
      .option("--save-every", s.save_every, "steps between checkpoints (default: a tenth of them)")
      .positive();
  command.flag("--resume", s.resume, "continue from the checkpoint, with the same bits");
  command.option("--log", s.log, "append loss and speed to this file, as JSON lines");
  command.option("--svg", s.svg, "draw the curve of the loss into this file");
  command.flag("--overwrite", s.overwrite, "replace an output that exists");
  command
      .option("--samples", s.samples,
              "texts to print at the end (default: 1; with --lora only if there is a --prompt)")
      .not_negative();
  command.option("--sample-tokens", s.sample_tokens, "tokens of such a text")
      .positive()
      .shows_default()
      .sets(s.has_sample_tokens);
  command.option("-p,--prompt", s.prompt,
                 "how such a text begins (default: the data's first word); with --lora a question "
                 "to answer");
  command.flag("-q,--quiet", s.quiet, "print no progress");
}

// Finds out before hours of training that a file cannot be written. Nothing is left behind.
void check_writable(const std::string& path) {
  if (!path.empty()) OutputFile probe(path);
}

// Files that are written must differ from each other and from those that are read.
void check_apart(const TrainSettings& s) {
  std::vector<std::pair<std::string, std::string>> used = {{"--data", s.data}};
  if (!s.lora.model.empty()) used.emplace_back("--lora", s.lora.model);
  for (const auto& [option, path] :
       std::vector<std::pair<std::string, std::string>>{{"--output", s.output},
                                                        {"--checkpoint", s.checkpoint},
                                                        {"--log", s.log},
                                                        {"--svg", s.svg}}) {
    if (path.empty()) continue;
    for (const auto& [other_option, other] : used) {
      std::error_code absent;  // files that do not exist are compared by name
      if (path == other || std::filesystem::equivalent(path, other, absent))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("train: {} and {} are both {}; it would be lost", other_option,
                                option, path));
    }
    used.emplace_back(option, path);
  }
}

// Options of another kind of training would have no effect.
void check_kind(const TrainSettings& s) {
  const TrainSettings usual;
  const auto refuse = [](bool is_given, const char* option, const char* why) {
    if (is_given)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("train: {} {}", option, why));
  };
  if (s.lora.model.empty()) {
    refuse(s.lora.has_rank, "--rank", "needs --lora");
    refuse(s.lora.alpha != usual.lora.alpha, "--alpha", "needs --lora");
    refuse(!s.lora.matrices.empty(), "--matrices", "needs --lora");
  }
  if (s.lora.model.empty() && s.full.empty()) return;
  const char* const why = "is for new models; the model of --lora or --full has its own";
  refuse(s.model.has_shape && !s.lora.model.empty(), "--shape", why);
  refuse(s.model.layers != usual.model.layers, "--layers", why);
  refuse(s.model.width != usual.model.width, "--width", why);
  refuse(s.model.heads != usual.model.heads, "--heads", why);
  refuse(s.model.kv_heads != usual.model.kv_heads, "--kv-heads", why);
  refuse(s.model.has_tokenizer, "--tokenizer", why);
  refuse(s.model.vocabulary != usual.model.vocabulary, "--vocab", why);
  refuse(s.model.untied, "--untied", why);
  if (s.lora.model.empty() || !s.prompt.empty()) return;
  const char* const no_prompt = "needs --prompt with --lora: a question that the model answers";
  refuse(s.samples > 0, "--samples", no_prompt);
  refuse(s.has_sample_tokens, "--sample-tokens", no_prompt);
}

int train(TrainSettings s) {
  check_kind(s);
  if (!s.lora.model.empty() && s.precision != "f32")
    throw Error(ErrorCode::kInvalidArgument,
                "train: --precision is for new models; the numbers of adapters are f32");
  if (s.checkpoint.empty()) s.checkpoint = s.output + ".checkpoint";
  check_apart(s);
  const bool has_checkpoint = std::filesystem::exists(s.checkpoint);
  if (s.resume && !has_checkpoint)
    throw Error(ErrorCode::kNotFound,
                s.checkpoint + ": no checkpoint to resume from; leave out --resume to start anew");
  if (!s.resume && !s.overwrite) {
    if (std::filesystem::exists(s.output))
      throw Error(ErrorCode::kInvalidArgument,
                  s.output + ": the file exists; --overwrite replaces it");
    if (has_checkpoint)
      throw Error(ErrorCode::kInvalidArgument,
                  s.checkpoint +
                      ": an earlier run left this checkpoint; --resume continues that run, "
                      "--overwrite starts anew");
  }
  for (const std::string& path : {s.output, s.checkpoint, s.svg}) check_writable(path);
  return s.lora.model.empty() ? train_gpt(s) : train_lora(s);
}

}  // namespace

void add_train_command(const Command& program) {
  const Command command =
      program.subcommand("train", "train a small model from text, or an adapter for a model");
  auto settings = std::make_shared<TrainSettings>();
  command
      .option("-d,--data", settings->data,
              "the text to learn, a file in UTF-8; with --lora also chats, as JSON lines")
      .required();
  command.option("-o,--output", settings->output, "the GGUF file to write").required();
  add_model_options(command.group("The model"), *settings);
  add_training_options(command.group("The training"), *settings);
  add_file_options(command.group("Files and output"), *settings);
  add_lora_options(command, settings->lora);
  command.footer(
      "The result runs in `prism run` and in other programs that read GGUF files. Ctrl-C saves a "
      "checkpoint; --resume continues from it.\nExamples:\n"
      "  prism train --data shakespeare.txt -o my.gguf\n"
      "  prism run my.gguf 'First Citizen:'\n"
      "  prism train --data notes.txt --shape small --steps 5000 -o notes.gguf --svg curve.svg\n"
      "  prism train --lora smollm2 --data chats.jsonl -o adapter.gguf\n"
      "  prism run smollm2 'Who are you?' --lora adapter.gguf");
  command.run([settings] { return train(*settings); });
}

}  // namespace prism::cli
