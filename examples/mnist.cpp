// Learns to read digits. Usage: example_mnist [--conv] [--steps N] [--data FOLDER] [--device NAME]
// FOLDER holds the four files of MNIST (*-ubyte.gz). Without them it learns digits that it draws
// itself.
#include <prism/prism.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

using namespace prism;

namespace {

struct Digits {
  Tensor images;  // u8 [n, 28, 28]
  Tensor labels;  // i32 [n]
};

Digits load_digits(const std::string& folder, const std::string& part) {
  const std::string path = folder + "/" + part;
  return {nn::load_idx(path + "-images-idx3-ubyte.gz"),
          nn::load_idx(path + "-labels-idx1-ubyte.gz").astype(DType::i32).eval()};
}

// Digits of seven segments, shifted, with noise.
Digits draw_digits(int count, uint64_t key) {
  const unsigned segments[] = {0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f};
  const std::vector<double> random =
      uniform({count, 28 * 28 + 3}, key, 0, 1, DType::f32, Device::cpu()).to_doubles();
  std::vector<uint8_t> pixels(static_cast<size_t>(count) * 784);
  std::vector<int32_t> labels;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const double* const own = &random[i * 787];
    uint8_t* const image = &pixels[i * 784];
    const auto digit = static_cast<size_t>(own[784] * 10);
    const auto left = 6 + static_cast<int>(own[785] * 6), top = 2 + static_cast<int>(own[786] * 5);
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        const int across = x - left, down = y - top;
        const bool wide = across >= 0 && across < 10, high = down >= 0 && down < 20;
        const bool lit[] = {wide && down >= 0 && down < 2,
                            high && down < 10 && across >= 0 && across < 2,
                            high && down < 10 && across >= 8 && across < 10,
                            wide && down >= 9 && down < 11,
                            high && down >= 10 && across >= 0 && across < 2,
                            high && down >= 10 && across >= 8 && across < 10,
                            wide && down >= 18 && down < 20};
        bool on = false;
        for (unsigned s = 0; s < 7; ++s) on = on || (lit[s] && (segments[digit] >> s & 1));
        image[y * 28 + x] =
            static_cast<uint8_t>((on ? 180 : 0) + 70 * own[static_cast<size_t>(y * 28 + x)]);
      }
    }
    labels.push_back(static_cast<int32_t>(digit));
  }
  return {from_vector(pixels, {count, 28, 28}, Device::cpu()),
          from_vector(labels, {count}, Device::cpu())};
}

nn::Sequential dense_network() {
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512),
                        nn::ReLU(), nn::Linear(512, 10));
}

nn::Sequential convolutions() {
  const Conv2dOptions around = {.padding_y = 1, .padding_x = 1};
  return nn::Sequential(nn::Conv2d(1, 16, 3, around), nn::BatchNorm(16), nn::ReLU(),
                        nn::MaxPool2d(), nn::Conv2d(16, 32, 3, around), nn::BatchNorm(32),
                        nn::ReLU(), nn::MaxPool2d(), nn::Flatten(), nn::Linear(32 * 49, 128),
                        nn::ReLU(), nn::Dropout(0.3), nn::Linear(128, 10));
}

Tensor as_input(const Tensor& images) {
  return (images.astype(DType::f32) / 255.0 - 0.1307) / 0.3081;
}

std::vector<int32_t> classify(nn::Sequential& model, const Tensor& images) {
  const NoGrad off;
  std::vector<int32_t> result;
  for (int64_t first = 0; first < images.size(0); first += 1000) {
    const Tensor part = images.slice(0, first, first + 1000).contiguous().to(default_device());
    const Tensor scores = model(as_input(part).unsqueeze(1));
    for (const int32_t each : scores.argmax().to_vector<int32_t>()) result.push_back(each);
  }
  return result;
}

void print_samples(const Digits& digits, const std::vector<int32_t>& answers, int count) {
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<uint8_t> pixels = digits.images[i].contiguous().to_vector<uint8_t>();
    std::cout << "this is a " << answers[static_cast<size_t>(i)] << ":\n";
    for (size_t y = 2; y < 26; y += 2) {
      for (size_t x = 2; x < 26; ++x) std::cout << " .+#"[pixels[y * 28 + x] / 64];
      std::cout << "\n";
    }
  }
}

}  // namespace

int main(int count, char** words) try {
  bool conv = false;
  int64_t steps = 0;
  std::string folder = "../shared/data/mnist", device = "auto";
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--conv")
      conv = true;
    else if (word == "--steps" && i + 1 < count)
      steps = std::atoll(words[++i]);
    else if (word == "--data" && i + 1 < count)
      folder = words[++i];
    else if (word == "--device" && i + 1 < count)
      device = words[++i];
    else
      throw Error(ErrorCode::kInvalidArgument, "unknown option " + word);
  }
  set_default_device(Device::named(device));
  const bool found = std::filesystem::exists(folder + "/train-images-idx3-ubyte.gz");
  if (!found) std::cout << "no MNIST in " << folder << ": learning drawn digits\n";
  const Digits training = found ? load_digits(folder, "train") : draw_digits(4000, 1);
  const Digits test = found ? load_digits(folder, "t10k") : draw_digits(1000, 2);

  seed(42);
  nn::Sequential model = conv ? convolutions() : dense_network();
  std::cout << model.summary();
  nn::DataLoader loader(nn::tensor_source({training.images, training.labels}),
                        {.batch = 128, .seed = 1});
  if (steps == 0) steps = loader.batches_per_epoch() * (conv ? 6 : 3);
  nn::AdamW optimizer(model.parameters(), {.lr = conv ? 3e-3 : 1e-3, .weight_decay = 0.01});
  optimizer.set_schedule(nn::one_cycle_schedule(steps + 1));
  nn::TrainStep step(optimizer, [&](std::span<const Tensor> batch) {
    return nn::cross_entropy(model(as_input(batch[0]).unsqueeze(1)), batch[1]);
  });
  const nn::Progress progress(steps, 128, "images");
  for (int64_t i = 1; i <= steps; ++i) {
    const Tensor loss = step(loader.next());
    if (i % 200 == 0 || i == steps) std::cout << progress.line(i, loss.item()) << std::endl;
  }
  const double seconds = progress.seconds();
  model.eval();
  const std::vector<int32_t> answers = classify(model, test.images),
                             truth = test.labels.to_vector<int32_t>();
  size_t right = 0;
  for (size_t i = 0; i < truth.size(); ++i) right += answers[i] == truth[i];
  std::cout << 100.0 * static_cast<double>(right) / static_cast<double>(truth.size())
            << "% of the test images are right after " << seconds << " s of training\n";
  print_samples(test, answers, 2);
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
