// Where the layers of a model go, what context fits, and how fast that will be.
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

namespace prism::llm {

// What the user says; everything left out is chosen. What is said is kept, or it is an error.
struct FitOptions {
  // A spelling as of Device::named. All of the model goes to a device that is named, unless
  // gpu_layers or cpu_experts say what the CPU gets.
  std::string device = "auto";
  std::optional<int64_t> gpu_layers;  // on devices other than the CPU; more than there are: all
  std::optional<int64_t> context;
  int64_t min_context = 0;               // less is not chosen; 0: 2048, or what the model has
  std::optional<ElementType> kv_type;    // else f16
  std::optional<uint64_t> margin_bytes;  // left free on each device; else 1/16 of it, 1 GB at most
  bool cpu_experts = false;              // a mixture's experts stay on the CPU
  int64_t batch_rows = kPromptBatch;     // of a prompt, worked on at once
};

// A device to put layers on. The CPU is the last of a list.
struct FitDevice {
  Device device;
  uint64_t free_bytes = 0;  // now
  uint64_t total_bytes = 0;
  double bandwidth = 0;       // bytes a second, as measured; 0: unknown
  double f16_rate = 0;        // operations a second of products
  double quantised_rate = 0;  // of those with quantised weights, where that is another
  // Devices with the same one share their memory: the CPU, and what is unified with it.
  std::string memory;
};

struct DeviceShare {
  Device device;
  int64_t layers = 0, expert_layers = 0;  // expert_layers: whose experts lie here
  uint64_t weight_bytes = 0, kv_bytes = 0, work_bytes = 0;
  uint64_t free_bytes = 0, margin_bytes = 0;
  uint64_t bytes() const { return weight_bytes + kv_bytes + work_bytes; }
};

struct Fit {
  Placement placement;
  std::vector<DeviceShare> shares;  // of the devices that are used
  int64_t largest_context = 0;      // that fits with as many layers where they are
  double tokens_per_second = 0;     // of decoding, expected; 0: some device was never calibrated
  double prompt_tokens_per_second = 0;
  std::string why;  // one sentence
};

// The devices of the machine for these options, fastest first, each card once; or the first alone,
// which spares the drivers of the others.
std::vector<FitDevice> fit_devices(const FitOptions& options, bool is_first_enough = false);

// Throws kOutOfMemory where it does not fit, saying by how much, and the settings that would;
// kInvalidArgument for options that cannot be.
Fit fit_model(const GgufFile& file, const FitOptions& options = {});
Fit fit_model(const GgufFile& file, const std::vector<FitDevice>& devices,
              const FitOptions& options);

}  // namespace prism::llm
