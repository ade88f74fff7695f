// Trains a small network to tell three spirals apart. Usage: example_spiral [DEVICE]
#include <prism/prism.h>
#include <cmath>
#include <iostream>

using namespace prism;

namespace {

constexpr int kClasses = 3, kPoints = 100, kHidden = 64, kSteps = 600;

struct Data {
  Tensor points;   // [kClasses * kPoints, 2]
  Tensor classes;  // [kClasses * kPoints]
};

Data make_spirals() {
  const std::vector<float> noise = normal({kClasses * kPoints}, 7).to_vector<float>();
  std::vector<float> points;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < noise.size(); ++i) {
    const int which = static_cast<int>(i) / kPoints;
    const float radius = static_cast<float>(i % kPoints) / kPoints;
    const float angle = 4.0f * (radius + static_cast<float>(which)) + 0.2f * noise[i];
    points.push_back(radius * std::sin(angle));
    points.push_back(radius * std::cos(angle));
    classes.push_back(which);
  }
  return {from_vector(points, {kClasses * kPoints, 2}), from_vector(classes, {kClasses * kPoints})};
}

// weights: two layers, each a matrix and a bias.
Tensor network(const Tensor& x, std::span<const Tensor> weights) {
  const Tensor hidden = relu(matmul(x, weights[0]) + weights[1]);
  return matmul(hidden, weights[2]) + weights[3];
}

// Takes weights and velocities; returns the loss, then both after a step of descent with momentum.
std::vector<Tensor> descend(const Data& data, std::span<const Tensor> state) {
  const std::span<const Tensor> weights = state.first(4), velocities = state.last(4);
  const Tensor loss = cross_entropy(network(data.points, weights), data.classes);
  const std::vector<Tensor> slopes = gradients(loss, weights);
  std::vector<Tensor> results = {loss}, faster;
  for (size_t i = 0; i < weights.size(); ++i) {
    faster.push_back(0.9 * velocities[i] - 0.3 * slopes[i]);
    results.push_back(weights[i] + faster[i]);
  }
  results.insert(results.end(), faster.begin(), faster.end());
  return results;
}

}  // namespace

int main(int count, char** words) try {
  set_default_device(Device::named(count > 1 ? words[1] : "auto"));
  const Data data = make_spirals();
  std::vector<Tensor> state = {randn({2, kHidden}), zeros({kHidden}),
                               0.1 * randn({kHidden, kClasses}), zeros({kClasses})};
  for (size_t i = 0; i < 4; ++i) state.push_back(zeros(state[i].shape()));

  // Planned in the first call, replayed in all others.
  CompiledFunction step =
      compile([&](std::span<const Tensor> inputs) { return descend(data, inputs); });
  for (int i = 1; i <= kSteps; ++i) {
    std::vector<Tensor> results = step(state);
    if (i % 100 == 0) std::cout << "step " << i << ": loss " << results[0].item() << "\n";
    state.assign(results.begin() + 1, results.end());
  }

  const Tensor right = network(data.points, std::span(state).first(4)).argmax() == data.classes;
  const double accuracy = right.astype(DType::f32).mean().item();
  std::cout << "accuracy " << accuracy << " on " << default_device().id() << "\n";
  return accuracy > 0.9 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 2;
}
