// `prism train --lora`: trains an adapter for a model that exists.
#include "cli/train.h"
#include "prism/error.h"

namespace prism::cli {

void add_lora_options(const Command& command, LoraSettings& settings) {
  command.group("Train an adapter (LoRA)")
      .option("--lora", settings.model,
              "a GGUF file or the name of a model to train an adapter for");
}

int train_lora(const TrainSettings&) {
  throw Error(ErrorCode::kNotSupported, "train: --lora is not available yet");
}

}  // namespace prism::cli
