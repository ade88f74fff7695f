// Adds to tiny models of every architecture the keys that only others define: the logits stay.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "llm/model/model.h"
#include "support/models/architecture_files.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

using Keys = std::set<std::string>;

// By architecture, the keys that it defines: those that the engine behind the expected logits reads
// beside those that it reads for all, and a few of Prism's own.
std::map<std::string, Keys> keys_by_architecture() {
  std::istringstream lines(
      test::read_file(test::source_dir() / "tests" / "data" / "architecture_keys.txt"));
  std::map<std::string, Keys> result;
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    Keys& keys = result[line.substr(0, colon)];
    std::istringstream words(line.substr(colon + 1));
    for (std::string word; words >> word;) keys.insert(word);
  }
  return result;
}

// A value that would change a model whose architecture has the key.
void set_value(GgufWriter& to, const std::string& architecture, const std::string& name) {
  static const Keys kFlags = {"attention.recurrent_layers",
                              "expert_weights_norm",
                              "kda.safe_gate",
                              "norm_before_fc",
                              "norm_before_residual",
                              "rope.scaling.finetuned",
                              "skip_loop_final_norm",
                              "ssm.dt_b_c_rms",
                              "swin_norm",
                              "use_parallel_residual"};
  const bool is_number = std::ranges::any_of(
      std::initializer_list<const char*>{"_scale", "_epsilon", "logit_softcapping", "freq_base",
                                         "freq_base_swa", "beta", "clamp", "gate_lower_bound",
                                         "bias", "yarn_", "xielu", "gain"},
      [&](const char* part) { return name.find(part) != std::string::npos; });
  const std::string key = name.starts_with("xielu") ? name : architecture + "." + name;
  if (name == "hidden_activation")
    to.set(key, "relu");
  else if (kFlags.contains(name))
    to.set(key, name != "expert_weights_norm" && name != "rope.scaling.finetuned");
  else if (is_number || name == "attention.scale")
    to.set(key, 0.37f);
  else
    to.set(key, uint32_t{3});
}

GgufFile with_keys(const GgufFile& file, const Keys& names, const std::string& path) {
  GgufWriter to;
  const std::string architecture(file.string("general.architecture"));
  for (const auto& [key, value] : file.metadata()) to.set(key, value);
  for (const std::string& name : names) set_value(to, architecture, name);
  for (const GgufTensor& each : file.tensors()) to.add_tensor(each, file.data(each));
  to.write(path);
  return GgufFile::open(path);
}

std::vector<float> logits_of(const GgufFile& file, std::span<const int32_t> tokens) {
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 256, DType::f32)});
  int32_t first = 0;
  if (model.config().has_decoder()) {
    const SequencePart whole{0, 0, tokens, Wanted::none};
    model.forward(std::span(&whole, 1));
    first = static_cast<int32_t>(tokens.size());
  }
  const SequencePart part{0, first, tokens, Wanted::all};
  return model.forward(std::span(&part, 1)).to_vector<float>();
}

// Empty, or how the model differs with these keys.
std::string difference(const GgufFile& file, const std::vector<int32_t>& tokens, const Keys& names,
                       const std::string& path) {
  try {
    const bool same = logits_of(file, tokens) == logits_of(with_keys(file, names, path), tokens);
    return same ? "" : "other logits";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(ForeignKeys, AreIgnored) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const std::map<std::string, Keys> known = keys_by_architecture();
  Keys all;
  for (const auto& [architecture, keys] : known) all.insert(keys.begin(), keys.end());
  const test::TemporaryFolder folder;
  const std::string path = folder / "changed.gguf";
  for (const test::ArchitectureFile& each : files) {
    const GgufFile file = GgufFile::open(each.path);
    const std::string architecture(file.string("general.architecture"));
    ASSERT_TRUE(known.contains(architecture)) << architecture;
    Keys foreign;
    std::ranges::set_difference(all, known.at(architecture), std::inserter(foreign, foreign.end()));
    if (difference(file, each.tokens, foreign, path).empty()) continue;
    for (const std::string& name : foreign)
      EXPECT_EQ(difference(file, each.tokens, {name}, path), "") << each.name << ": " << name;
    ADD_FAILURE() << each.name << " with all foreign keys";
  }
}

}  // namespace
}  // namespace prism::llm
