// Tests data files and loaders, checkpoints of runs that are killed, anomalies, and logs.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/error.h"
#include "prism/grad.h"
#include "prism/io.h"
#include "prism/nn.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "support/run_program.h"

namespace prism {
namespace {

using test::TemporaryFolder;
using test::write_file;
const Device cpu = Device::cpu();

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Training : public testing::Test {
 protected:
  void SetUp() override { set_default_device(cpu); }
  TemporaryFolder folder_;
};

TEST_F(Training, ReadsIdxFiles) {
  const std::string bytes("\0\0\x0b\x02\0\0\0\x02\0\0\0\x03\0\x01\0\x02\xff\xff\0\x04\0\x05\x01\0",
                          24);
  write_file(folder_ / "a.idx", bytes);
  const Tensor read = nn::load_idx(folder_ / "a.idx");
  EXPECT_EQ(read.shape(), (Shape{2, 3}));
  EXPECT_EQ(read.to_doubles(), (std::vector<double>{1, 2, -1, 4, 5, 256}));
  write_file(folder_ / "short.idx", bytes.substr(0, 20));
  EXPECT_TRUE(contains(message_of([&] { nn::load_idx(folder_ / "short.idx"); }), "complete"));
  write_file(folder_ / "empty.idx", "");
  EXPECT_THROW(nn::load_idx(folder_ / "empty.idx"), Error);
  EXPECT_THROW(nn::load_idx(folder_ / "missing.idx"), Error);
  std::string huge = bytes;
  for (size_t i = 4; i < 12; ++i) huge[i] = '\xff';
  write_file(folder_ / "huge.idx", huge);
  EXPECT_THROW(nn::load_idx(folder_ / "huge.idx"), Error);
}

TEST_F(Training, ReadsCsvFiles) {
  write_file(folder_ / "a.csv", "width,height\n1,2.5\r\n-3e2; 4\n\n");
  const Tensor read = nn::load_csv(folder_ / "a.csv");
  EXPECT_EQ(read.shape(), (Shape{2, 2}));
  EXPECT_EQ(read.to_doubles(), (std::vector<double>{1, 2.5, -300, 4}));
  write_file(folder_ / "b.csv", "1,2\n3\n");
  EXPECT_TRUE(contains(message_of([&] { nn::load_csv(folder_ / "b.csv"); }), "line 2 has 1"));
  write_file(folder_ / "c.csv", "1,2\n3,x\n");
  EXPECT_TRUE(contains(message_of([&] { nn::load_csv(folder_ / "c.csv"); }), "line 2"));
  write_file(folder_ / "d.csv", "");
  EXPECT_TRUE(contains(message_of([&] { nn::load_csv(folder_ / "d.csv"); }), "empty"));
}

TEST_F(Training, LoadersShuffleBySeed) {
  const Tensor x = arange(10, DType::i32, cpu).eval(), y = (x * 2.0).eval();
  const auto epoch = [&](nn::DataLoader& loader) {
    std::vector<double> all;
    for (int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
      const std::vector<Tensor> batch = loader.next();
      const std::vector<double> a = batch[0].to_doubles(), b = batch[1].to_doubles();
      for (size_t r = 0; r < a.size(); ++r) EXPECT_EQ(b[r], 2 * a[r]) << "rows belong together";
      all.insert(all.end(), a.begin(), a.end());
    }
    return all;
  };
  for (const bool prefetch : {false, true}) {
    const nn::DataLoaderOptions options{
        .batch = 3, .keep_rest = true, .seed = 5, .prefetch = prefetch, .device = cpu};
    nn::DataLoader one(nn::tensor_source({x, y}), options);
    EXPECT_EQ(one.batches_per_epoch(), 4);
    const std::vector<double> first = epoch(one), second = epoch(one);
    EXPECT_EQ(std::set<double>(first.begin(), first.end()).size(), 10u) << "each sample once";
    EXPECT_NE(first, second) << "another order in each epoch";
    nn::DataLoader two(nn::tensor_source({x, y}), options);
    EXPECT_EQ(epoch(two), first) << "the seed alone decides";
    two.seek(4);
    EXPECT_EQ(epoch(two), second);
    EXPECT_EQ(two.position(), 8);
    two.seek(1);
    const std::vector<double> part = two.next()[0].to_doubles();
    EXPECT_TRUE(std::equal(part.begin(), part.end(), first.begin() + 3));
  }
  nn::DataLoader dropped(nn::tensor_source({x}), {.batch = 3, .device = cpu});
  EXPECT_EQ(dropped.batches_per_epoch(), 3);
  EXPECT_THROW(nn::DataLoader(nn::tensor_source({x}), {.batch = 11}), Error);
  EXPECT_THROW(nn::tensor_source({x, zeros({3}, DType::f32, cpu)}), Error);
}

TEST_F(Training, TokenFilesAreMapped) {
  std::string bytes;
  for (int i = 0; i < 11; ++i) bytes += {static_cast<char>(i), i == 10 ? '\x01' : '\0'};
  write_file(folder_ / "tokens.bin", bytes);
  const auto source = nn::token_file_source(folder_ / "tokens.bin", 3);
  EXPECT_EQ(source->size(), 3);
  const int64_t samples[] = {2, 0};
  const std::vector<Tensor> batch = source->batch(samples);
  EXPECT_EQ(batch[0].to_doubles(), (std::vector<double>{6, 7, 8, 0, 1, 2}));
  EXPECT_EQ(batch[1].to_doubles(), (std::vector<double>{7, 8, 9, 1, 2, 3}));
  EXPECT_TRUE(
      contains(message_of([&] { nn::token_file_source(folder_ / "tokens.bin", 11); }), "too few"));
  EXPECT_THROW(nn::token_file_source(folder_ / "tokens.bin", 3, 4), Error) << "22 bytes";
  EXPECT_THROW(nn::token_source({1, 2, 3}, 0), Error);
  EXPECT_THROW(nn::token_source({1, 2, 3}, 1, -1), Error);
  const auto overlapping = nn::token_source({5, 6, 7, 8, 9, 10}, 3, 2);
  ASSERT_EQ(overlapping->size(), 2);
  const std::vector<int64_t> both = {1, 0};
  EXPECT_EQ(overlapping->batch(both)[0].to_vector<int32_t>(),
            (std::vector<int32_t>{7, 8, 9, 5, 6, 7}));
  EXPECT_EQ(overlapping->batch(both)[1].to_vector<int32_t>(),
            (std::vector<int32_t>{8, 9, 10, 6, 7, 8}));
}

// --- checkpoints

struct Net : nn::Module {
  nn::Linear first{6, 16}, second{16, 3};
  nn::Dropout dropout{0.3};
  nn::BatchNorm norm{16};
  PRISM_MEMBERS(first, norm, dropout, second)
  Tensor operator()(const Tensor& x) { return second(dropout(relu(norm(first(x))))); }
};

// A run with everything that has state: dropout, running means, accumulation, averages, a schedule.
struct WholeRun {
  WholeRun() {
    seed(3);
    model = std::make_unique<Net>();
    optimizer = std::make_unique<nn::AdamW>(model->parameters(), nn::AdamWSettings{.lr = 0.01});
    optimizer->set_schedule(nn::warm_up(5, nn::cosine_schedule(50)));
    average = std::make_unique<nn::MovingAverage>(model->parameters(), 0.9);
    const Tensor x = normal({40, 6}, 1, 0, 1, DType::f32, cpu).eval();
    const Tensor y = argmax(x.slice(1, 0, 3)).eval();
    loader = std::make_unique<nn::DataLoader>(nn::tensor_source({x, y}),
                                              nn::DataLoaderOptions{.batch = 8, .device = cpu});
    step = std::make_unique<nn::TrainStep>(
        *optimizer,
        [this](std::span<const Tensor> batch) {
          return nn::cross_entropy((*model)(batch[0]), batch[1]);
        },
        nn::TrainStepOptions{.clip_norm = 1, .accumulate = 2, .average = average.get()});
  }
  nn::TrainingRun parts() {
    return {model.get(), {optimizer.get()}, step.get(), average.get(), loader.get()};
  }
  double train(int64_t until, const std::string& checkpoint = "") {
    double loss = 0;
    while (step->batches() < until) {
      loss = (*step)(loader->next()).item();
      if (!checkpoint.empty()) nn::save_checkpoint(checkpoint, parts());
    }
    return loss;
  }
  std::vector<double> state() {
    std::vector<double> all;
    for (const auto& [name, tensor] : model->state_dict())
      for (const double each : tensor.to_doubles()) all.push_back(each);
    for (const Tensor& tensor : average->averages())
      for (const double each : tensor.to_doubles()) all.push_back(each);
    return all;
  }
  std::unique_ptr<Net> model;
  std::unique_ptr<nn::AdamW> optimizer;
  std::unique_ptr<nn::MovingAverage> average;
  std::unique_ptr<nn::DataLoader> loader;
  std::unique_ptr<nn::TrainStep> step;
};

TEST_F(Training, ResumedRunsHaveTheSameBits) {
  WholeRun whole;
  const double wanted = whole.train(30);
  for (const int64_t at : {10, 13}) {  // after an update, and within an accumulation
    WholeRun one;
    one.train(at);
    nn::save_checkpoint(folder_ / "run.safetensors", one.parts());
    WholeRun two;
    two.train(3);
    nn::load_checkpoint(folder_ / "run.safetensors", two.parts());
    EXPECT_EQ(two.train(30), wanted) << at;
    EXPECT_EQ(two.state(), whole.state()) << at;
  }
}

TEST_F(Training, RefusesCheckpointsOfOthers) {
  WholeRun run;
  run.train(4);
  nn::save_checkpoint(folder_ / "run.safetensors", run.parts());
  const std::vector<double> before = run.state();
  nn::Linear other(2, 3);
  nn::TrainingRun wrong = run.parts();
  wrong.model = &other;
  EXPECT_TRUE(contains(message_of([&] { nn::load_checkpoint(folder_ / "run.safetensors", wrong); }),
                       "another model"));
  auto tensors = load_safetensors(folder_ / "run.safetensors", cpu);
  tensors["model/second.bias"] = zeros({4}, DType::f32, cpu);
  save_safetensors(folder_ / "other.safetensors", tensors);
  EXPECT_TRUE(contains(
      message_of([&] { nn::load_checkpoint(folder_ / "other.safetensors", run.parts()); }), "[4]"));
  write_file(folder_ / "torn.safetensors",
             test::read_file(folder_ / "run.safetensors").substr(0, 900));
  EXPECT_THROW(nn::load_checkpoint(folder_ / "torn.safetensors", run.parts()), Error);
  EXPECT_EQ(run.state(), before) << "nothing was changed";
  EXPECT_THROW(nn::save_checkpoint(folder_ / "no/such/folder.safetensors", run.parts()), Error);
}

#ifdef __linux__
constexpr const char* kFolder = "TRAINING_TEST_FOLDER";

// Started by the test below as a program of its own.
TEST(TrainingChild, Trains) {
  const char* const folder = std::getenv(kFolder);
  if (!folder) GTEST_SKIP() << "run by Training.KilledRunsContinue";
  set_default_device(cpu);
  const std::string path = std::string(folder) + "/run.safetensors";
  WholeRun run;
  if (std::filesystem::exists(path)) nn::load_checkpoint(path, run.parts());
  run.train(200, path);
  write_file(std::string(folder) + "/done", "");
}

TEST_F(Training, KilledRunsContinue) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  int killed = 0;
  double seconds = 0.1;
  while (!std::filesystem::exists(folder_ / "done")) {
    const test::ProcessResult result =
        test::run_process({"timeout", "-s", "KILL", std::to_string(seconds), "env",
                           std::string(kFolder) + "=" + folder_.path().string(), self,
                           "--gtest_filter=TrainingChild.Trains"});
    killed += result.status == 137;
    ASSERT_TRUE(result.status == 137 || result.status == 0) << result.output;
    seconds *= 1.5;
  }
  EXPECT_GT(killed, 0);
  WholeRun whole, resumed;
  whole.train(200);
  nn::load_checkpoint(folder_ / "run.safetensors", resumed.parts());
  EXPECT_EQ(resumed.state(), whole.state());
}
#endif

// --- anomalies

TEST_F(Training, AnomaliesNameStepAndLayer) {
  Net model;
  nn::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  const auto loss_of = [&](std::span<const Tensor> batch) {
    return mean(square(model(batch[0]))) + sum(sqrt(batch[1]) * mean(model.first.weight));
  };
  nn::TrainStep step(optimizer, loss_of, {.detect_anomaly = true, .model = &model});
  const Tensor good = normal({4, 6}, 2, 0, 1, DType::f32, cpu), fine = ones({1}, DType::f32, cpu);
  step({good, fine});
  const std::vector<double> before = model.second.weight.to_doubles();
  const std::vector<double> means = model.norm.running_mean.to_doubles();
  const Tensor bad = where(good == good.max(), 3e38, good) * 10.0;
  std::string message = message_of([&] { step({bad, fine}); });
  EXPECT_TRUE(contains(message, "step 1 ") && contains(message, "output of first, Linear(6 -> 16)"))
      << message;
  message = message_of([&] { step({good, full({1}, -1.0, DType::f32, cpu)}); });
  EXPECT_TRUE(contains(message, "in the loss itself")) << message;
  EXPECT_EQ(model.second.weight.to_doubles(), before) << "such steps change nothing";
  EXPECT_EQ(model.norm.running_mean.to_doubles(), means);
  EXPECT_TRUE(std::isfinite(step({good, fine}).item())) << "training goes on";
  // A finite loss with an infinite slope.
  nn::TrainStep steep(optimizer,
                      [&](std::span<const Tensor> batch) {
                        return sum(sqrt(model.second.bias * 0.0)) + mean(square(model(batch[0])));
                      },
                      {.detect_anomaly = true, .model = &model});
  message = message_of([&] { steep({good}); });
  EXPECT_TRUE(contains(message, "gradient of second.bias")) << message;
}

// --- dropout in compiled steps

TEST_F(Training, CompiledStepsDrawNewMasks) {
  Tensor w = ones({1000}, DType::f32, cpu).set_requires_grad();
  nn::SGD optimizer({w}, {.lr = 0});
  nn::Dropout first(0.25), second(0.25);
  const auto make = [&](uint64_t key) {
    return nn::TrainStep(optimizer,
                         [&](std::span<const Tensor>) { return sum(first(w) * second(w)); },
                         {.seed = key});
  };
  nn::TrainStep one = make(7), same = make(7), other = make(8);
  std::vector<double> a, b, c;
  for (int i = 0; i < 4; ++i) {
    a.push_back(one(std::initializer_list<Tensor>{}).item());
    b.push_back(same(std::initializer_list<Tensor>{}).item());
    c.push_back(other(std::initializer_list<Tensor>{}).item());
  }
  EXPECT_EQ(a, b) << "the seed decides";
  EXPECT_NE(a, c);
  EXPECT_EQ(std::set<double>(a.begin(), a.end()).size(), 4u) << "another mask in each step";
  for (const double each : a) EXPECT_NEAR(each, 1000, 100) << "two masks that are independent";
  EXPECT_EQ(one.plans(), 1u);
}

// --- logs

TEST_F(Training, CompiledFunctionsSeeUpdatedParameters) {
  Tensor weight = full({2, 3}, 1.0, DType::f32, cpu);
  weight.eval();
  weight.set_requires_grad();
  nn::SGD optimizer({weight}, {.lr = 1});
  nn::TrainStep step(optimizer, [&](std::span<const Tensor> in) { return sum(weight * in[0]); });
  CompiledFunction validate = compile([&](std::span<const Tensor> in) {
    const NoGrad off;
    return std::vector<Tensor>{sum(in[0] * (2.0 * weight))};  // 2 weight depends on no input
  });
  const Tensor x = full({2, 3}, 1.0, DType::f32, cpu).eval();
  EXPECT_EQ(validate({x})[0].item(), 12);
  step({x});
  EXPECT_EQ(validate({x})[0].item(), 0);
}

TEST_F(Training, LogsAndCurves) {
  {
    nn::TrainingLog log(folder_ / "log.jsonl");
    log.add(1, {{"loss", 2.5}});
    log.add(2, {{"loss", NAN}, {"rate", 0.1}});
    log.write_svg(folder_ / "curve.svg", {"loss", "rate"});
  }
  const std::string lines = test::read_file(folder_ / "log.jsonl");
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["step"], 1);
  EXPECT_EQ(first["loss"], 2.5);
  const auto second = nlohmann::json::parse(lines.substr(lines.find('\n')));
  EXPECT_TRUE(second["loss"].is_null());
  const std::string curve = test::read_file(folder_ / "curve.svg");
  EXPECT_TRUE(contains(curve, "<polyline") && contains(curve, "rate")) << curve;
  EXPECT_THROW(nn::TrainingLog(folder_ / "no/log"), Error);
  const nn::Progress progress(2000, 64, "tokens");
  const std::string line = progress.line(1000, 1.23456);
  EXPECT_TRUE(contains(line, "step 1,000 of 2,000, loss 1.235, ") &&
              contains(line, " tokens/s, 1 s left"))
      << line;
}

}  // namespace
}  // namespace prism
