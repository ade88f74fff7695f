// `prism train` without --lora: trains all weights of a small GPT.
#include "cli/train.h"
#include "prism/error.h"

namespace prism::cli {

int train_gpt(const TrainSettings&) {
  throw Error(ErrorCode::kNotSupported, "train: not available yet");
}

}  // namespace prism::cli
