// Checkpoints: states of all parts under prefixes, in one file.
#include "prism/nn/checkpoint.h"

#include <functional>

#include <fmt/format.h>

#include "ops/create/random_keys.h"
#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops/assign.h"
#include "prism/ops/create.h"

namespace prism::nn {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, message));
}

Tensor numbers(std::vector<int64_t> values) {
  return from_vector(values, {static_cast<int64_t>(values.size())}, Device::cpu());
}

// A part of a run: what it saves, and how it takes it back.
struct Part {
  std::string prefix;
  StateDict state;
  std::function<void(const StateDict&)> load;
};

void assign_all(const std::vector<Tensor>& targets, const StateDict& state) {
  std::vector<Tensor> changes;
  for (size_t i = 0; i < targets.size(); ++i)
    changes.push_back(assign(targets[i], state.at(std::to_string(i)).to(targets[i].device())));
  eval(changes);
}

std::vector<Part> parts_of(const TrainingRun& run) {
  std::vector<Part> parts;
  if (run.model)
    parts.push_back({"model", run.model->state_dict(),
                     [&](const StateDict& state) { run.model->load_state_dict(state); }});
  for (size_t i = 0; i < run.optimizers.size(); ++i)
    parts.push_back({fmt::format("optimizer{}", i), run.optimizers[i]->state_dict(),
                     [&run, i](const StateDict& s) { run.optimizers[i]->load_state_dict(s); }});
  if (run.step)
    parts.push_back({"step", run.step->state_dict(),
                     [&](const StateDict& state) { run.step->load_state_dict(state); }});
  if (run.average) {
    StateDict state;
    for (size_t i = 0; i < run.average->averages().size(); ++i)
      state[std::to_string(i)] = run.average->averages()[i];
    parts.push_back({"average", std::move(state),
                     [&](const StateDict& given) { assign_all(run.average->averages(), given); }});
  }
  if (run.loader)
    parts.push_back(
        {"loader", {{"position", numbers({run.loader->position()})}}, [&](const StateDict& state) {
           run.loader->seek(static_cast<int64_t>(state.at("position").to_vector<int64_t>()[0]));
         }});
  parts.push_back({"random",
                   {{"state", numbers({static_cast<int64_t>(random_key_state())})}},
                   [](const StateDict& state) {
                     seed(static_cast<uint64_t>(state.at("state").to_vector<int64_t>()[0]));
                   }});
  return parts;
}

}  // namespace

void save_checkpoint(const std::string& path, const TrainingRun& run) {
  std::map<std::string, Tensor> all;
  for (const Part& part : parts_of(run))
    for (const auto& [name, tensor] : part.state) all[part.prefix + "/" + name] = tensor;
  save_safetensors(path, all);
}

void load_checkpoint(const std::string& path, const TrainingRun& run) {
  const std::map<std::string, Tensor> all = load_safetensors(path, Device::cpu());
  const std::vector<Part> parts = parts_of(run);
  std::vector<StateDict> states(parts.size());
  size_t used = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const auto& [name, mine] : parts[i].state) {
      const std::string whole = parts[i].prefix + "/" + name;
      const auto found = all.find(whole);
      if (found == all.end())
        fail(path, fmt::format("\"{}\" is missing; is this a checkpoint of another model?", whole));
      if (!(found->second.shape() == mine.shape()))
        fail(path, fmt::format("\"{}\" has shape {}, the run's has {}; is this a checkpoint of "
                               "another model?",
                               whole, found->second.shape().text(), mine.shape().text()));
      states[i][name] = found->second;
      ++used;
    }
  }
  if (used != all.size())
    fail(path, fmt::format("{} tensors, the run has {}; is this a checkpoint of another model?",
                           all.size(), used));
  for (size_t i = 0; i < parts.size(); ++i) parts[i].load(states[i]);
}

}  // namespace prism::nn
