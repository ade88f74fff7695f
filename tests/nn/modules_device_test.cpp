// Tests layers and losses against PyTorch's outputs and gradients (tests/data/nn), on every device
// found; and what modules do with their tensors.
#include <cmath>
#include <fstream>
#include <functional>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/nn.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "support/devices/devices.h"
#include "support/paths.h"
#include "support/seed.h"

namespace prism {
namespace {

using nlohmann::json;

const json& vectors() {
  static const json all = [] {
    std::ifstream file(test::source_dir() / "tests/data/nn/module_vectors.json");
    return json::parse(file);
  }();
  return all;
}

Tensor tensor(const json& stored, const Device& device) {
  const Shape shape(stored["shape"].get<std::vector<int64_t>>());
  return from_vector(stored["values"].get<std::vector<float>>(), shape, device);
}

void expect_near(const Tensor& got, const json& stored, const std::string& where) {
  const auto wanted = stored["values"].get<std::vector<double>>();
  const std::vector<double> values = got.to_doubles();
  ASSERT_EQ(values.size(), wanted.size()) << where;
  double largest = 0;
  for (const double each : wanted) largest = std::max(largest, std::abs(each));
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], 2e-5 * (largest + 1)) << where << " " << i;
}

using MakeLayer = std::function<std::shared_ptr<nn::Layer>(const Device&)>;

template <class L, class... Arguments>
MakeLayer layer(Arguments... arguments) {
  return [=](const Device& device) { return std::make_shared<L>(arguments..., device); };
}

const std::vector<std::pair<std::string, MakeLayer>>& layers() {
  using namespace nn;
  static const std::vector<std::pair<std::string, MakeLayer>> all = {
      {"linear", layer<Linear>(5, 4, true)},
      {"embedding", layer<Embedding>(7, 3)},
      {"conv2d",
       layer<Conv2d>(
           4, 6, 3,
           Conv2dOptions{.stride_y = 2, .stride_x = 2, .padding_y = 1, .padding_x = 1, .groups = 2},
           true)},
      {"conv1d", layer<Conv1d>(3, 5, 3, Conv1dOptions{.padding = 2, .dilation = 2}, true)},
      {"layer_norm", layer<LayerNorm>(7, 1e-5)},
      {"rms_norm", layer<RMSNorm>(7, 1e-5)},
      {"group_norm", layer<GroupNorm>(3, 6, 1e-5)},
      {"attention", layer<SelfAttention>(8, 4, SelfAttentionOptions{})},
      {"attention_open", layer<SelfAttention>(8, 2, SelfAttentionOptions{.causal = false})},
      {"attention_grouped",
       layer<SelfAttention>(16, 4, SelfAttentionOptions{.kv_heads = 2, .rotary_base = 10000})},
      {"batch_norm", layer<BatchNorm>(5, 1e-5, 0.1)},
      {"batch_norm_eval", layer<BatchNorm>(5, 1e-5, 0.1)},
  };
  return all;
}

TEST(LayersDevice, AgreeWithPyTorch) {
  for (const Device& device : test::every_device()) {
    for (const auto& [name, make] : layers()) {
      const std::string where = name + " on " + device.id();
      const json& stored = vectors()["layers"][name];
      const auto made = make(device);
      nn::StateDict state;
      for (const auto& [key, value] : stored["parameters"].items())
        state[key] = tensor(value, device);
      if (stored.contains("before")) {
        state["running_mean"] = tensor(stored["before"]["mean"], device);
        state["running_var"] = tensor(stored["before"]["var"], device);
      }
      made->load_state_dict(state);
      if (name == "batch_norm_eval") made->eval();
      Tensor x = tensor(stored["x"], device);
      if (name == "embedding")
        x = x.astype(DType::i32);
      else
        x.set_requires_grad();
      const Tensor y = (*made)(x);
      expect_near(y, stored["y"], where);
      (y * tensor(stored["factors"], device)).sum().backward();
      if (stored.contains("x_gradient")) expect_near(x.grad(), stored["x_gradient"], where + " x");
      for (const auto& [key, parameter] : made->named_parameters())
        expect_near(parameter.grad(), stored["gradients"][key], where + " " + key);
      if (stored.contains("after")) {
        expect_near(made->state_dict().at("running_mean"), stored["after"]["mean"], where);
        expect_near(made->state_dict().at("running_var"), stored["after"]["var"], where);
      }
    }
  }
}

TEST(LossesDevice, AgreeWithPyTorch) {
  using namespace nn;
  using Loss = std::function<Tensor(const Tensor&, std::span<const Tensor>)>;
  const auto entropy = [](CrossEntropyOptions options) -> Loss {
    return [=](const Tensor& p, std::span<const Tensor>) {
      return nn::cross_entropy(p, from_vector<int32_t>({2, 0, -100, 3, 1}, {5}, p.device()),
                               options);
    };
  };
  const auto pair = [](auto function) -> Loss {
    return [=](const Tensor& p, std::span<const Tensor> more) {
      return function(p, more[0], Reduction::mean);
    };
  };
  const std::map<std::string, Loss> all = {
      {"cross_entropy", entropy({})},
      {"cross_entropy_smooth", entropy({.label_smoothing = 0.2})},
      {"cross_entropy_sum", entropy({.reduction = Reduction::sum})},
      {"bce", pair(bce_with_logits)},
      {"mse", pair(mse_loss)},
      {"l1", pair(l1_loss)},
      {"huber",
       [](const Tensor& p, std::span<const Tensor> more) { return huber_loss(p, more[0], 0.7); }},
      {"kl", pair(kl_divergence)},
      {"hinge", pair(hinge_loss)},
      {"cosine",
       [](const Tensor& p, std::span<const Tensor> more) {
         return cosine_loss(p, more[0], more[1], 0.1);
       }},
  };
  EXPECT_EQ(all.size(), vectors()["losses"].size());
  for (const Device& device : test::every_device()) {
    for (const auto& [name, loss] : all) {
      const json& stored = vectors()["losses"][name];
      Tensor p = tensor(stored["prediction"], device);
      p.set_requires_grad();
      std::vector<Tensor> more;
      for (const json& each : stored["more"]) more.push_back(tensor(each, device));
      const Tensor value = loss(p, more);
      EXPECT_NEAR(value.item(), stored["value"].get<double>(), 1e-5) << name << device.id();
      value.backward();
      expect_near(p.grad(), stored["gradient"], name + " on " + device.id());
    }
  }
}

struct Block : nn::Module {
  nn::Linear up{4, 8}, down{8, 4};
  nn::Dropout dropout{0.5};
  PRISM_MEMBERS(up, down, dropout)
  Tensor operator()(const Tensor& x) { return x + dropout(down(relu(up(x)))); }
};

struct Stack : nn::Module {
  std::vector<Block> blocks{2};
  nn::Sequential head{nn::LayerNorm(4), nn::Linear(4, 3)};
  Tensor tied;
  PRISM_MEMBERS(blocks, head, tied)
  Tensor operator()(Tensor x) {
    for (Block& each : blocks) x = each(x);
    return head(x);
  }
};

class Modules : public testing::Test {
 protected:
  void SetUp() override {
    before_ = default_device();
    set_default_device(Device::cpu());
  }
  void TearDown() override { set_default_device(before_); }
  Device before_;
};

TEST_F(Modules, NameTheirTensors) {
  Stack model;
  model.tied = model.blocks[0].up.weight;
  std::vector<std::string> names;
  for (const auto& [name, each] : model.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "blocks.0.up.weight", "blocks.0.up.bias", "blocks.0.down.weight",
                       "blocks.0.down.bias", "blocks.1.up.weight", "blocks.1.up.bias",
                       "blocks.1.down.weight", "blocks.1.down.bias", "head.0.weight", "head.0.bias",
                       "head.1.weight", "head.1.bias", "tied"}));
  EXPECT_EQ(model.parameters().size(), 12u) << "shared weights count once";
  EXPECT_EQ(model.parameter_count(), 2 * (32 + 8 + 32 + 4) + 8 + 15);
  const std::string summary = model.summary();
  for (const char* part : {"up: Linear(4 -> 8)", "LayerNorm(4)", "175 parameters"})
    EXPECT_NE(summary.find(part), std::string::npos) << summary;
}

TEST_F(Modules, SwitchBetweenTrainingAndEvaluation) {
  Stack model;
  const Tensor x = normal({5, 4}, 3, 0, 1, DType::f32, Device::cpu());
  EXPECT_NE(model(x).to_doubles(), model(x).to_doubles()) << "dropout draws anew";
  model.eval();
  EXPECT_FALSE(model.blocks[1].dropout.is_training());
  EXPECT_EQ(model(x).to_doubles(), model(x).to_doubles());
  model.train();
  EXPECT_TRUE(model.blocks[1].dropout.is_training());
}

TEST_F(Modules, SaveAndLoadTheirState) {
  Stack one, two;
  one.eval(), two.eval();
  const Tensor x = normal({5, 4}, 3, 0, 1, DType::f32, Device::cpu());
  EXPECT_NE(one(x).to_doubles(), two(x).to_doubles());
  const Tensor held = two.head[1].named_parameters()[0].second;
  two.load_state_dict(one.state_dict());
  EXPECT_EQ(one(x).to_doubles(), two(x).to_doubles());
  EXPECT_EQ(held.to_doubles(), one.state_dict().at("head.1.weight").to_doubles()) << "in place";
  const auto refused = [&](const std::function<void(nn::StateDict&)>& change, const char* name) {
    nn::StateDict state = one.state_dict();
    change(state);
    try {
      two.load_state_dict(state);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  refused([](nn::StateDict& s) { s.erase("blocks.1.up.bias"); }, "blocks.1.up.bias");
  refused([](nn::StateDict& s) { s["more"] = zeros({1}); }, "more");
  refused([](nn::StateDict& s) { s["head.1.bias"] = zeros({4}); }, "[4]");
}

TEST_F(Modules, MoveToADevice) {
  for (const Device& device : test::every_device()) {
    Stack model;
    model.tied = model.blocks[0].up.weight;
    model.eval();
    const Tensor x = normal({5, 4}, 3, 0, 1, DType::f32, Device::cpu());
    const std::vector<double> wanted = model(x).to_doubles();
    model.to(device);
    EXPECT_EQ(model.tied.node(), model.blocks[0].up.weight.node()) << "still shared";
    EXPECT_TRUE(model.tied.requires_grad());
    const std::vector<double> got = model(x.to(device)).to_doubles();
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << device.id();
  }
}

TEST_F(Modules, ChunksOfCrossEntropyAddUp) {
  constexpr int64_t kRows = 101, kWidth = 8, kClasses = 501;
  std::mt19937 random(test_seed());
  std::vector<int32_t> targets(kRows);
  for (int32_t& each : targets)
    each = random() % 5 == 0 ? -100 : static_cast<int32_t>(random() % kClasses);
  for (const Device& device : test::every_device()) {
    const Tensor x = randn({kRows, kWidth}, DType::f32, device).eval(),
                 w = randn({kClasses, kWidth}, DType::f32, device).eval(),
                 target = from_vector(targets, {kRows}, device);
    for (const nn::Reduction reduction :
         {nn::Reduction::mean, nn::Reduction::sum, nn::Reduction::none}) {
      if (!device.info().is_cpu && reduction != nn::Reduction::mean) continue;  // slow to compile
      const auto losses = [&](int64_t rows_at_once) {
        return value_and_grad([&, rows_at_once](std::span<const Tensor> in) {
          const auto scores = [&](const Tensor& rows) { return linear(rows, in[1]); };
          const nn::CrossEntropyOptions options{.label_smoothing = 0.1, .reduction = reduction};
          return sum(
              square(nn::chunked_cross_entropy(in[0], scores, target, options, rows_at_once)));
        })({x, w});
      };
      const ValueAndGrad whole = losses(kRows), parts = losses(16);
      EXPECT_NEAR(parts.value.item(), whole.value.item(), 1e-5 * whole.value.item());
      for (size_t i = 0; i < 2; ++i) {
        const double largest = whole.gradients[i].abs().max().item();
        EXPECT_LT((parts.gradients[i] - whole.gradients[i]).abs().max().item(), 1e-5 * largest)
            << device.id();
      }
      const auto temporaries = [](const ValueAndGrad& of) {
        uint64_t bytes = 0;
        for (const PlanMemory& each : estimate_memory(of.gradients)) bytes += each.temporaries;
        return bytes;
      };
      if (device.info().is_cpu && reduction != nn::Reduction::none) {
        EXPECT_LT(temporaries(losses(16)) * 2, temporaries(losses(kRows)));
      }
    }
  }
}

TEST_F(Modules, RefuseBadInput) {
  EXPECT_THROW(nn::Linear(0, 3), Error);
  EXPECT_THROW(nn::Dropout(1.0), Error);
  EXPECT_THROW(nn::SelfAttention(10, 3), Error);
  EXPECT_THROW(nn::SelfAttention(12, 4, {.kv_heads = 3}), Error);
  EXPECT_THROW(nn::GroupNorm(3, 7), Error);
  EXPECT_THROW(nn::SelfAttention(8, 2)(zeros({3, 8})), Error);
  EXPECT_THROW(nn::BatchNorm(3)(zeros({1, 3})), Error) << "one element has no variance";
  EXPECT_THROW(nn::mse_loss(zeros({2}), zeros({3})), Error);
  EXPECT_THROW(nn::cross_entropy(zeros({2, 3}), zeros({3}, DType::i32)), Error);
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_THROW(nn::chunked_cross_entropy(zeros({2, 3}), same, zeros({3}, DType::i32)), Error);
  EXPECT_THROW(nn::chunked_cross_entropy(zeros({2, 3}), same, zeros({2}, DType::i32), {}, 0),
               Error);
}

TEST_F(Modules, InitialisersHaveTheirMoments) {
  const Tensor w = zeros({400, 300}).eval();
  const auto moments = [&] { return std::pair(w.mean().item(), std::sqrt(w.variance().item())); };
  nn::init::xavier_uniform(w);
  EXPECT_NEAR(moments().second, std::sqrt(2.0 / 700), 5e-4);
  EXPECT_LE(w.abs().max().item(), std::sqrt(6.0 / 700));
  nn::init::kaiming_normal(w);
  EXPECT_NEAR(moments().second, std::sqrt(2.0 / 300), 5e-4);
  nn::init::normal(w, 1, 0.5);
  EXPECT_NEAR(moments().first, 1, 5e-3);
  EXPECT_NEAR(moments().second, 0.5, 5e-3);
  nn::init::constant(w, 3);
  EXPECT_EQ(w.max().item(), 3);
  EXPECT_THROW(nn::init::kaiming_normal(zeros({3}).eval()), Error);
}

}  // namespace
}  // namespace prism
