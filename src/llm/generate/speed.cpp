// Times prompts and decoding, and counts the bytes and operations of a token.
#include "llm/generate/speed.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "llm/model/decode.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<int32_t> any_tokens(const Model& model, int64_t count) {
  std::mt19937 random(1);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& each : tokens)
    each = static_cast<int32_t>(random() % static_cast<uint64_t>(model.config().vocabulary));
  return tokens;
}

void check_room(const Model& model, int64_t tokens) {
  if (tokens > model.context())
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("bench: {} tokens do not fit into a context of {}", tokens, model.context()));
}

}  // namespace

double prompt_seconds(Model& model, int64_t tokens, int repeats) {
  check_room(model, tokens);
  const std::vector<int32_t> ids = any_tokens(model, tokens);
  double best = 1e300;
  for (int i = -1; i < repeats; ++i) {  // the first run makes the plans
    const double took = seconds_of([&] { model.prefill(0, 0, ids).to_vector<float>(); });
    if (i >= 0) best = std::min(best, took);
  }
  return best;
}

double decode_seconds(Model& model, int64_t depth, int64_t tokens, int repeats) {
  constexpr int64_t kWarm = 4;  // steps that make and record the plan
  check_room(model, depth + tokens + kWarm + 1);
  if (depth > 0) model.prefill(0, 0, any_tokens(model, depth)).to_vector<float>();
  DecodeLoop loop(model);
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    loop.start({{.slot = 0, .position = static_cast<int32_t>(depth), .token = 1}});
    for (int64_t step = 0; step < kWarm; ++step) loop.queue_step();
    loop.read(kWarm - 1);
    best = std::min(best, seconds_of([&] {
                      // Queue ahead and read each token, as a generation does.
                      for (int64_t step = kWarm; step < kWarm + tokens; ++step) {
                        while (loop.queued() < std::min(step + 2, kWarm + tokens))
                          loop.queue_step();
                        loop.read(step);
                      }
                    }));
  }
  return best;
}

TokenCost token_cost(const GgufFile& file, const Config& config, ElementType kv_type) {
  TokenCost cost;
  const bool tied = file.find_tensor("output.weight") == nullptr;
  for (const GgufTensor& tensor : file.tensors()) {
    double share = 1;
    if (tensor.name == "token_embd.weight" && !tied) continue;
    if (tensor.name.find("_exps.") != tensor.name.npos && config.experts > 0)
      share = static_cast<double>(config.experts_used) / static_cast<double>(config.experts);
    cost.weight_bytes += share * static_cast<double>(tensor.bytes);
    if (tensor.shape.rank() > 1)
      cost.operations += share * 2 * static_cast<double>(tensor.shape.elements());
  }
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const int64_t compression = config.at(layer).compression;
    const CachedPosition each = compression > 0 ? config.compressed(layer) : config.cached(layer);
    cost.cache_bytes_a_token +=
        static_cast<double>(kv_type.row_bytes(static_cast<uint64_t>(each.elements()))) /
        static_cast<double>(std::max<int64_t>(1, compression));
  }
  return cost;
}

}  // namespace prism::llm
