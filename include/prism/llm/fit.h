// Chooses the placement of a model's layers and its context, and estimates the speed.
//
//   const Fit fit = fit_model(GgufFile::open("model.gguf"));
//   LanguageModel model = LanguageModel::load("model.gguf", fit.placement, {});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/device.h"
#include "prism/llm/gguf.h"
#include "prism/llm/memory.h"
#include "prism/llm/placement.h"

#pragma GCC visibility push(default)

namespace prism::llm {

// The caller's choices. Unset values are chosen; set values are honoured or cause an error.
struct FitOptions {
  // As for Device::named. A named device gets the whole model, unless gpu_layers or cpu_experts
  // assign parts to the CPU.
  std::string device = "auto";
  std::optional<int64_t> gpu_layers;  // on devices other than the CPU; larger numbers mean all
  std::optional<int64_t> context;
  int64_t min_context = 0;  // lower limit for a chosen context; 0: 2048, or the model's if less
  std::optional<ElementType> kv_type;    // default: f16
  std::optional<uint64_t> margin_bytes;  // left free per device; default: 1/16 of it, at most 1 GB
  bool cpu_experts = false;              // keep a mixture's experts on the CPU
  int64_t batch_rows = kPromptBatch;     // prompt tokens per batch
};

// A device to place layers on. The CPU must be the last of a list.
struct FitDevice {
  Device device;
  uint64_t free_bytes = 0;  // at the moment
  uint64_t total_bytes = 0;
  double bandwidth = 0;       // measured bytes per second; 0: unknown
  double f16_rate = 0;        // matmul operations per second
  double quantised_rate = 0;  // the same with quantised weights, if different
  // Devices with equal names here share their memory: the CPU and devices unified with it.
  std::string memory;
};

struct DeviceShare {
  Device device;
  int64_t layers = 0, expert_layers = 0;  // expert_layers: layers whose experts are here
  uint64_t weight_bytes = 0, kv_bytes = 0, work_bytes = 0;
  uint64_t state_bytes = 0;  // of recurrent layers, for one text
  uint64_t free_bytes = 0, margin_bytes = 0;
  uint64_t bytes() const;  // of all, with a cache for one text
};

struct Fit {
  Placement placement;
  std::vector<DeviceShare> shares;  // only devices that are used
  int64_t largest_context = 0;      // that fits with the same placement of layers
  double tokens_per_second = 0;     // expected decode speed; 0: some device is not calibrated
  double prompt_tokens_per_second = 0;
  std::string why;  // the reason, in one sentence
};

// The devices of the machine for these options, fastest first, each card once. is_first_enough:
// only the first, which avoids starting the drivers of the others.
std::vector<FitDevice> fit_devices(const FitOptions& options, bool is_first_enough = false);

// Throws kOutOfMemory if the model does not fit, with the shortfall and settings that would fit;
// kInvalidArgument for invalid options.
Fit fit_model(const GgufFile& file, const FitOptions& options = {});
Fit fit_model(const GgufFile& file, const std::vector<FitDevice>& devices,
              const FitOptions& options);

// A KV cache that texts share: each takes what it needs, up to the context.
struct SharedCache {
  int64_t slots = 1;   // texts at once
  int64_t tokens = 0;  // of all texts together; at least one context
};
// Sizes the cache by the memory that the fit leaves free: a quarter of the host's, half of that of
// other devices. slots: texts at once; 0: as many as have room, at most 64.
SharedCache fit_shared_cache(const Fit& fit, int64_t slots = 0);

}  // namespace prism::llm

#pragma GCC visibility pop
