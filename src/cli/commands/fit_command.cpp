// `prism fit MODEL`: which layers would go to which device, which context fits, and the speed.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/device_json.h"
#include "cli/fit_options.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "llm/architectures/architecture.h"
#include "llm/fit/expected_speed.h"
#include "prism/llm/fit.h"
#include "prism/llm/model_store.h"

namespace prism::cli {
namespace {

void print_json(const llm::GgufFile& file, const llm::Fit& fit) {
  const llm::Placement& placement = fit.placement;
  Json layers = Json::array(), experts = Json::array(), devices = Json::array();
  for (const Device& device : placement.layers) layers.push_back(device.id());
  for (const Device& device : placement.experts) experts.push_back(device.id());
  for (const llm::DeviceShare& share : fit.shares)
    devices.push_back({{"device", share.device.id()},
                       {"layers", share.layers},
                       {"expert_layers", share.expert_layers},
                       {"weight_bytes", share.weight_bytes},
                       {"kv_cache_bytes", share.kv_bytes},
                       {"activation_bytes", share.work_bytes},
                       {"total_bytes", share.bytes()},
                       {"free_bytes", bytes_json(share.free_bytes)},
                       {"margin_bytes", share.margin_bytes}});
  const Json all = {{"file", file.path()},
                    {"context", placement.context},
                    {"largest_context", fit.largest_context},
                    {"kv_type", placement.kv_type.name()},
                    {"embedding", placement.embedding.id()},
                    {"output", placement.output.id()},
                    {"layers", layers},
                    {"experts", experts},
                    {"devices", devices},
                    {"tokens_per_second", fit.tokens_per_second},
                    {"prompt_tokens_per_second", fit.prompt_tokens_per_second},
                    {"why", fit.why}};
  std::cout << all.dump(2) << "\n";
}

void print_text(const llm::GgufFile& file, const llm::Fit& fit) {
  std::cout << fmt::format("{} fits: {}\n\n", file.path(), fit.why);
  const std::string architecture(file.string_or("general.architecture", ""));
  if (!llm::is_known_architecture(architecture))
    std::cout << fmt::format(
        "Prism does not know the architecture {}, so it cannot run this model; docs/models.md says "
        "how to ask for it. The figures are those of a transformer of this size.\n\n",
        printable(architecture));
  std::vector<std::vector<std::string>> rows;
  for (const llm::DeviceShare& share : fit.shares)
    rows.push_back({share.device.id(), std::to_string(share.layers), size_text(share.weight_bytes),
                    size_text(share.kv_bytes), size_text(share.work_bytes),
                    size_text(share.bytes()), size_text(share.free_bytes),
                    size_text(share.margin_bytes)});
  std::cout << table({"device", "layers", "weights", "cache", "work", "total", "free", "margin"},
                     rows);
  std::cout << fmt::format("\nlargest context with these layers: {}\n", fit.largest_context);
  if (fit.tokens_per_second > 0)
    std::cout << fmt::format("expected: about {} tokens/s of text, {} tokens/s of prompt\n",
                             number_text(fit.tokens_per_second),
                             number_text(fit.prompt_tokens_per_second));
  else
    std::cout << "expected speed: not known; `prism calibrate` measures the devices\n";
}

}  // namespace

void add_fit_command(const Command& program) {
  const Command command = program.subcommand(
      "fit", "show where a model would go, the context that fits, and the speed");
  auto choice = std::make_shared<FitChoice>();
  auto json = std::make_shared<bool>(false);
  add_fit_options(command, *choice);
  command.flag("--json", *json, "print JSON");
  command.footer(
      "If the model is not on this machine, only its header is read.\nExamples:\n  prism fit "
      "model.gguf\n  "
      "prism fit hf:user/repo:file.gguf --context 32768 --kv-type q8_0\n  prism fit model.gguf "
      "-ngl "
      "20");
  command.run([choice, json] {
    const llm::FitOptions options = choice->options();
    const llm::ModelHeader header = llm::ModelHeader::open(choice->model);
    if (!llm::known_host_speed(Device::cpu())) llm::measure_host_speed(Device::cpu());
    const llm::Fit fit = llm::fit_model(header.file(), options);
    if (*json)
      print_json(header.file(), fit);
    else
      print_text(header.file(), fit);
    return kRight;
  });
}

}  // namespace prism::cli
