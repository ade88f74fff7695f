// Times training steps: the MNIST network and the char GPT of examples/, with PyTorch beside them.
// Usage: bench_train [--device NAME] [--steps N] [--rounds N] [--explain] [--peer "PYTHON SCRIPT"]
// The peer is bench/train/pytorch_steps.py; it and Prism take turns. The fastest step counts, so
// that other work on the machine disturbs neither.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>

#include <fmt/format.h>

#include "prism/prism.h"

using namespace prism;

namespace {

struct Block : nn::Module {
  explicit Block(int64_t width)
      : norm1(width),
        norm2(width),
        attention(width, 4),
        up(width, 4 * width),
        down(4 * width, width) {}
  nn::LayerNorm norm1, norm2;
  nn::SelfAttention attention;
  nn::Linear up, down;
  PRISM_MEMBERS(norm1, attention, norm2, up, down)
  Tensor operator()(const Tensor& x) {
    const Tensor mixed = x + attention(norm1(x));
    return mixed + down(gelu(up(norm2(mixed))));
  }
};

struct Gpt : nn::Module {
  Gpt() {
    for (int i = 0; i < 4; ++i) blocks.emplace_back(128);
  }
  nn::Embedding tokens{65, 128}, positions{64, 128};
  std::vector<Block> blocks;
  nn::LayerNorm norm{128};
  nn::Linear head{128, 65};
  PRISM_MEMBERS(tokens, positions, blocks, norm, head)
  Tensor operator()(const Tensor& text) {
    Tensor x = tokens(text) + positions(arange(text.size(1), DType::i32, text.device()));
    for (Block& each : blocks) x = each(x);
    return head(norm(x));
  }
};

struct Training {
  std::string name;
  std::unique_ptr<nn::Module> model;
  std::unique_ptr<nn::Optimizer> optimizer;
  std::unique_ptr<nn::TrainStep> step;
  std::vector<Tensor> batch;
};

Training make_mlp() {
  Training work;
  work.name = "mlp";
  auto model = std::make_unique<nn::Sequential>(
      nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
  work.batch = {randn({128, 784}).eval(), cast(rand({128}) * 10.0, DType::i32).eval()};
  work.optimizer = std::make_unique<nn::Adam>(model->parameters());
  work.step = std::make_unique<nn::TrainStep>(*work.optimizer,
                                              [&model = *model](std::span<const Tensor> in) {
                                                return nn::cross_entropy(model(in[0]), in[1]);
                                              });
  work.model = std::move(model);
  return work;
}

Training make_gpt() {
  Training work;
  work.name = "gpt";
  auto model = std::make_unique<Gpt>();
  const auto text = [] { return cast(rand({12, 64}) * 65.0, DType::i32).eval(); };
  work.batch = {text(), text()};
  work.optimizer = std::make_unique<nn::AdamW>(
      model->parameters(), nn::AdamWSettings{.beta2 = 0.99, .weight_decay = 0.1});
  work.step = std::make_unique<nn::TrainStep>(
      *work.optimizer,
      [&model = *model](std::span<const Tensor> in) {
        return nn::cross_entropy(model(in[0]), in[1]);
      },
      nn::TrainStepOptions{.clip_norm = 1});
  work.model = std::move(model);
  return work;
}

// The fastest step, and the mean processor time of all threads.
struct Times {
  double ms = 1e30, cpu_ms = 1e30;
  void keep_best(const Times& other) {
    ms = std::min(ms, other.ms);
    cpu_ms = std::min(cpu_ms, other.cpu_ms);
  }
};

Times own_times(Training& work, int steps) {
  for (int i = 0; i < 5; ++i) (*work.step)(work.batch).item();
  const std::clock_t cpu = std::clock();
  Times times;
  for (int i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    (*work.step)(work.batch).item();
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    times.ms = std::min(times.ms, passed.count());
  }
  times.cpu_ms = static_cast<double>(std::clock() - cpu) * 1e3 / CLOCKS_PER_SEC / steps;
  return times;
}

Times peer_times(const std::string& peer, const std::string& name, int steps) {
  FILE* const pipe = popen(fmt::format("{} {} {}", peer, name, steps).c_str(), "r");
  Times times;
  if (!pipe || std::fscanf(pipe, "%lf %lf", &times.ms, &times.cpu_ms) != 2) times = {};
  if (pipe) pclose(pipe);
  return times;
}

}  // namespace

int main(int count, char** words) try {
  std::string device = "cpu", peer;
  int steps = 50, rounds = 3;
  bool explain = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] { return std::string(i + 1 < count ? words[++i] : ""); };
    if (word == "--device") device = value();
    if (word == "--steps") steps = std::atoi(value().c_str());
    if (word == "--rounds") rounds = std::atoi(value().c_str());
    if (word == "--peer") peer = value();
    if (word == "--explain") explain = true;
  }
  set_default_device(Device::named(device));
  for (const auto& make : {make_mlp, make_gpt}) {
    Training work = make();
    if (explain) std::cout << work.step->explain(work.batch);
    Times own, other;
    for (int round = 0; round < rounds; ++round) {
      own.keep_best(own_times(work, steps));
      if (!peer.empty()) other.keep_best(peer_times(peer, work.name, steps));
    }
    std::cout << fmt::format("{} step on {}: {:.2f} ms, {:.2f} ms of processor time", work.name,
                             device, own.ms, own.cpu_ms);
    if (!peer.empty())
      std::cout << fmt::format("; PyTorch {:.2f} ms, {:.2f} ms ({:.2f} and {:.2f} of its time)",
                               other.ms, other.cpu_ms, own.ms / other.ms,
                               own.cpu_ms / other.cpu_ms);
    std::cout << std::endl;
  }
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
