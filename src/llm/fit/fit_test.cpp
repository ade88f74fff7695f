// Tests fitting models to devices of any size: whole models, spill to the CPU, and errors.
#include "prism/llm/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "runtime/counted_device.h"
#include "support/devices/fake_device.h"
#include "support/run_program.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

// A device without storage that has a name, a card and this much free memory.
FitDevice gpu(const std::string& id, uint64_t free_bytes, double bandwidth = 1e12) {
  const auto driver = std::make_shared<test::FakeDevice>(id, free_bytes);
  FitDevice device;
  device.device = Device(driver, "");
  device.free_bytes = device.total_bytes = free_bytes;
  device.bandwidth = bandwidth;
  device.f16_rate = 1e14;
  device.memory = id;
  return device;
}

FitDevice cpu(uint64_t free_bytes) {
  FitDevice device;
  device.device = Device::cpu();
  device.free_bytes = device.total_bytes = free_bytes;
  device.bandwidth = 1e10;
  device.f16_rate = 1e11;
  device.memory = "host";
  return device;
}

constexpr int kLayers = 10;
constexpr uint64_t kMb = 1 << 20;

// Ten layers of 8 MB (in a mixture, 6 MB are experts), an embedding and an output of 4 MB each; the
// KV cache takes 2 KB per layer and token.
GgufFile write_model(bool is_mixture) {
  const test::TemporaryFolder folder;
  static const std::vector<std::byte> zeros(8 * kMb);
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  writer.set("llama.block_count", uint32_t{kLayers});
  writer.set("llama.embedding_length", 1024u);
  writer.set("llama.feed_forward_length", 64u);
  writer.set("llama.attention.head_count", 16u);
  writer.set("llama.attention.head_count_kv", 8u);
  writer.set("llama.context_length", 4096u);
  if (is_mixture) {
    writer.set("llama.expert_count", 8u);
    writer.set("llama.expert_used_count", 2u);
  }
  const auto add = [&](const std::string& name, int64_t megabytes) {
    const int64_t rows = megabytes * static_cast<int64_t>(kMb) / 2048;
    writer.add_tensor(name, {rows, 1024}, DType::f16,
                      std::span(zeros).first(static_cast<size_t>(megabytes) * kMb));
  };
  add("token_embd.weight", 4);
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    add(layer + "attn_q.weight", is_mixture ? 2 : 8);
    if (is_mixture) add(layer + "ffn_up_exps.weight", 6);
  }
  add("output.weight", 4);
  writer.write(folder / "m.gguf");
  return GgufFile::open(folder / "m.gguf");
}

// Written once; the memory-mapped file stays valid after deletion.
const GgufFile& model(bool is_mixture = false) {
  static const GgufFile plain = write_model(false), mixture = write_model(true);
  return is_mixture ? mixture : plain;
}

int64_t layers_on(const Fit& fit, const std::string& id) {
  return std::ranges::count_if(fit.placement.layers,
                               [&](const Device& device) { return device.id() == id; });
}

FitOptions with_margin() {
  FitOptions options;
  options.margin_bytes = 0;
  return options;
}

TEST(Fit, AllOnTheFastestWhereItFits) {
  const Fit fit =
      fit_model(model(), {gpu("gpu:0", 1000 * kMb), gpu("gpu:1", 1000 * kMb), cpu(1000 * kMb)},
                with_margin());
  EXPECT_EQ(layers_on(fit, "gpu:0"), kLayers);
  EXPECT_EQ(fit.placement.embedding.id(), "gpu:0");
  EXPECT_EQ(fit.placement.output.id(), "gpu:0");
  EXPECT_EQ(fit.placement.context, 4096);
  EXPECT_EQ(fit.largest_context, 4096);
  EXPECT_EQ(fit.placement.kv_type, ElementType(DType::f16));
  EXPECT_TRUE(fit.placement.experts.empty());
  ASSERT_EQ(fit.shares.size(), 1u);
  EXPECT_EQ(fit.shares[0].weight_bytes, 88 * kMb);
  EXPECT_EQ(fit.shares[0].kv_bytes, uint64_t{4224} * 2048 * kLayers);
  EXPECT_GT(fit.tokens_per_second, 1000);
}

// WebGPU does not report its memory size: whether a model fits is found by trying.
TEST(Fit, AllOnADeviceThatDoesNotTellItsMemory) {
  const Fit fit = fit_model(model(), {gpu("gpu:0", kUnknownBytes), cpu(kMb)}, {});
  EXPECT_EQ(layers_on(fit, "gpu:0"), kLayers);
  EXPECT_EQ(fit.placement.context, 4096);
  EXPECT_EQ(fit.shares[0].free_bytes, kUnknownBytes);
}

TEST(Fit, AShorterContextBeforeTheCpu) {
  const GgufFile& file = model();
  // 4096 tokens take 80 MB, 2048 take 40 MB; work memory takes less than 16 MB.
  const Fit fit = fit_model(file, {gpu("gpu:0", 150 * kMb), cpu(1000 * kMb)}, with_margin());
  EXPECT_EQ(layers_on(fit, "gpu:0"), kLayers);
  EXPECT_EQ(fit.placement.context, 2048);
  EXPECT_GE(fit.largest_context, 2048);
  EXPECT_LT(fit.largest_context, 4096);
  // An explicit context is kept: layers go to the CPU instead.
  FitOptions said = with_margin();
  said.context = 4096;
  const Fit kept = fit_model(file, {gpu("gpu:0", 150 * kMb), cpu(1000 * kMb)}, said);
  EXPECT_EQ(kept.placement.context, 4096);
  EXPECT_LT(layers_on(kept, "gpu:0"), kLayers);
  said = with_margin();
  said.min_context = 4096;
  EXPECT_EQ(fit_model(file, {gpu("gpu:0", 150 * kMb), cpu(1000 * kMb)}, said).placement.context,
            4096);
}

TEST(Fit, TheLastLayersStayTogetherOffTheCpu) {
  const GgufFile& file = model();
  const Fit fit = fit_model(file, {gpu("gpu:0", 70 * kMb), gpu("gpu:1", 40 * kMb), cpu(500 * kMb)},
                            with_margin());
  EXPECT_GT(layers_on(fit, "gpu:0"), 0);
  EXPECT_GT(layers_on(fit, "gpu:1"), 0);
  EXPECT_GT(layers_on(fit, "cpu:0"), 0);
  EXPECT_EQ(fit.placement.output.id(), "gpu:0");
  EXPECT_EQ(fit.placement.embedding.id(), "cpu:0");
  EXPECT_EQ(fit.placement.layers.front().id(), "cpu:0");
  EXPECT_EQ(fit.placement.layers.back().id(), "gpu:0");
  int crossings = 0;
  for (size_t i = 1; i < fit.placement.layers.size(); ++i)
    crossings += fit.placement.layers[i].id() != fit.placement.layers[i - 1].id();
  EXPECT_EQ(crossings, 2);
}

TEST(Fit, AnyDevicesEveryShareFits) {
  const GgufFile &plain = model(), &mixture = model(true);
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<FitDevice> devices;
    for (unsigned i = 0; i < random() % 3; ++i)
      devices.push_back(gpu("gpu:" + std::to_string(i), random() % 150 * kMb));
    devices.push_back(cpu((40 + random() % 250) * kMb));
    FitOptions options;
    options.margin_bytes = random() % 20 * kMb;
    options.cpu_experts = random() % 3 == 0;
    if (random() % 3 == 0) options.gpu_layers = random() % 15;
    if (random() % 3 == 0) options.context = 1 + random() % 4096;
    const GgufFile& file = round % 2 ? plain : mixture;
    try {
      const Fit fit = fit_model(file, devices, options);
      EXPECT_EQ(fit.placement.layers.size(), size_t{kLayers});
      int64_t layers = 0;
      uint64_t weights = 0;
      for (const DeviceShare& share : fit.shares) {
        EXPECT_LE(share.bytes() + *options.margin_bytes, share.free_bytes) << share.device.id();
        layers += share.layers;
        weights += share.weight_bytes;
      }
      EXPECT_EQ(layers, kLayers);
      EXPECT_EQ(weights, 88 * kMb);
      if (options.context) {
        EXPECT_EQ(fit.placement.context, *options.context);
      }
      if (options.gpu_layers && devices.size() > 1) {
        EXPECT_EQ(kLayers - layers_on(fit, "cpu:0"),
                  std::min<int64_t>(kLayers, *options.gpu_layers));
      }
      EXPECT_GE(fit.largest_context, fit.placement.context);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
    }
  }
}

TEST(Fit, AMixturesExpertsGoToTheCpuFirst) {
  const GgufFile& file = model(true);
  FitOptions options = with_margin();
  options.context = 1024;
  const Fit fit = fit_model(file, {gpu("gpu:0", 85 * kMb), cpu(500 * kMb)}, options);
  EXPECT_EQ(layers_on(fit, "gpu:0"), kLayers);
  ASSERT_EQ(fit.placement.experts.size(), size_t{kLayers});
  EXPECT_EQ(fit.placement.experts.front().id(), "cpu:0");
  EXPECT_EQ(fit.placement.experts.back().id(), "gpu:0");
  options.cpu_experts = true;
  const Fit all = fit_model(file, {gpu("gpu:0", 1000 * kMb), cpu(500 * kMb)}, options);
  for (const Device& device : all.placement.experts) EXPECT_EQ(device.id(), "cpu:0");
  EXPECT_EQ(layers_on(all, "gpu:0"), kLayers);
}

TEST(Fit, WhatDoesNotFitSaysByHowMuchAndWhatWould) {
  const GgufFile& file = model();
  const auto said = [&](const std::vector<FitDevice>& devices, const FitOptions& options) {
    try {
      fit_model(file, devices, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      return std::string(error.what());
    }
    return std::string("it fits");
  };
  FitOptions options = with_margin();
  options.context = 4096;
  const std::string context = said({cpu(150 * kMb)}, options);
  EXPECT_NE(context.find("needs 180 MiB for"), std::string::npos) << context;
  EXPECT_NE(context.find("more than available"), std::string::npos) << context;
  EXPECT_NE(context.find("--context 2048"), std::string::npos) << context;
  EXPECT_NE(context.find("--kv-type q8_0"), std::string::npos) << context;
  options.margin_bytes = 400 * kMb;
  EXPECT_NE(said({cpu(500 * kMb)}, options).find("a smaller --memory-margin"), std::string::npos);
  options.margin_bytes = 0;
  const std::string smaller = said({cpu(50 * kMb)}, with_margin());
  EXPECT_NE(smaller.find("a smaller model"), std::string::npos) << smaller;
  // A device named explicitly is used alone; --gpu-layers would add the CPU.
  const std::string layers = said({gpu("gpu:0", 80 * kMb)}, with_margin());
  EXPECT_NE(layers.find("--gpu-layers"), std::string::npos) << layers;
  options.gpu_layers = 100;
  EXPECT_NE(said({gpu("gpu:0", 80 * kMb), cpu(500 * kMb)}, options).find("--gpu-layers"),
            std::string::npos);
  options.gpu_layers = -1;
  EXPECT_THROW(fit_model(file, {cpu(500 * kMb)}, options), Error);
}

TEST(Fit, AllOfAModelOnTheCpuThatIsHere) {
  FitOptions options;
  options.device = "cpu";
  const Fit fit = fit_model(model(), options);
  EXPECT_EQ(layers_on(fit, "cpu:0"), kLayers);
}

}  // namespace
}  // namespace prism::llm
