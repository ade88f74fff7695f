// Trains a network of scalars to tell two interleaved half circles apart, and draws what it
// learned. Usage: example_moons [DEVICE] [STEPS]
#include <prism/prism.h>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>

using namespace prism;
using nn::Value;

namespace {

constexpr int kPoints = 100;

struct Point {
  double x, y, label;  // label: 1 or -1
};

std::vector<Point> make_moons() {
  const std::vector<double> noise = normal({2 * kPoints}, 1, 0, 0.1).to_doubles();
  std::vector<Point> points;
  for (size_t i = 0; i < kPoints; ++i) {
    const double angle = 3.14159265 * static_cast<double>(i / 2) / (kPoints / 2 - 1);
    const bool lower = i % 2 == 1;
    const double x = lower ? 1 - std::cos(angle) : std::cos(angle);
    const double y = lower ? 0.5 - std::sin(angle) : std::sin(angle);
    points.push_back({x + noise[2 * i], y + noise[2 * i + 1], lower ? 1.0 : -1.0});
  }
  return points;
}

Value score_of(const nn::MLP& model, double x, double y, const Device& device) {
  const std::array<Value, 2> inputs = {Value(x, device), Value(y, device)};
  return model(inputs)[0];
}

// The plane as the network sees it: # where it expects the lower moon.
void draw(const nn::MLP& model, const Device& device) {
  std::vector<Value> scores;
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 48; ++column)
      scores.push_back(score_of(model, -1.5 + column * 4.0 / 47, 1.5 - row * 2.5 / 15, device));
  nn::compute(scores);  // all of them in one plan
  for (size_t i = 0; i < scores.size(); ++i)
    std::cout << (scores[i].data() > 0 ? '#' : '.') << (i % 48 == 47 ? "\n" : "");
}

}  // namespace

int main(int count, char** words) try {
  const Device device = Device::named(count > 1 ? words[1] : "auto");
  const int steps = count > 2 ? std::atoi(words[2]) : 100;
  set_default_device(device);
  const std::vector<Point> points = make_moons();
  seed(1337);
  nn::MLP model(2, {16, 16, 1}, device);
  for (int step = 0; step < steps; ++step) {
    Value loss(0, device), decay(0, device);
    std::vector<Value> scores;
    for (const Point& each : points) {
      scores.push_back(score_of(model, each.x, each.y, device));
      loss += relu(1.0 - each.label * scores.back());  // a margin of 1 between the classes
    }
    for (const Value& each : model.parameters()) decay += each * each;
    loss = loss / double{kPoints} + decay * 1e-4;
    model.zero_grad();
    loss.backward();
    int right = 0;
    for (size_t i = 0; i < points.size(); ++i) right += scores[i].data() * points[i].label > 0;
    const double rate = 1.0 - 0.9 * step / steps;
    for (Value& each : model.parameters()) each.set_data(each.data() - rate * each.grad());
    if (step % 10 == 0 || step + 1 == steps)
      std::cout << "step " << step << ", loss " << loss.data() << ", " << right << "% right\n";
  }
  draw(model, device);
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
