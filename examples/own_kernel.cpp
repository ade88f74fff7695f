// A kernel of your own with shared memory, checked against a plain loop: own_kernel
// [cpu|gpu|vulkan:0|...].
//
// Each group smooths 256 samples: it brings them and one neighbour on each side into shared memory
// once, waits, and then every lane reads three of them.
#include <prism/prism.h>
#include <cmath>
#include <iostream>

namespace {

constexpr uint32_t kGroup = 256;

prism::Kernel smooth() {
  using namespace prism::dsl;
  return kernel("smooth", kGroup, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto tile = shared(f32, kGroup + 2);
    auto lane = local_id();
    auto i = global_id();
    // tile[k] holds sample group * 256 + k - 1; beyond the ends it holds 0.
    tile[lane + 1] = x.load_if(i < count, i);
    if_(lane == 0, [&] { tile[0] = x.load_if(i > 0 && i <= count, i - 1); });
    if_(lane == kGroup - 1, [&] { tile[kGroup + 1] = x.load_if(i + 1 < count, i + 1); });
    barrier();
    if_(i < count, [&] {
      auto sum = tile.load(lane) + tile.load(lane + 1) + tile.load(lane + 2);
      y[i] = sum * (1.0f / 3.0f);
    });
  });
}

}  // namespace

int main(int count, char** words) try {
  const prism::Device device = prism::Device::named(count > 1 ? words[1] : "auto");
  std::cout << "device: " << device.id() << " (" << device.name() << "), " << device.why() << "\n";

  std::vector<float> samples(1000);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = std::sin(static_cast<float>(i) * 0.1f);
  const auto x = device.upload(samples);
  const auto y = device.allocate(samples.size() * sizeof(float));
  const auto size = static_cast<uint32_t>(samples.size());
  device.queue().launch(device.compile(smooth()), (size + kGroup - 1) / kGroup, {x, y}, {size});
  const std::vector<float> smoothed = device.download<float>(y);

  float worst = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const float left = i > 0 ? samples[i - 1] : 0,
                right = i + 1 < samples.size() ? samples[i + 1] : 0;
    worst = std::max(worst, std::abs((left + samples[i] + right) * (1.0f / 3.0f) - smoothed[i]));
  }
  std::cout << "largest difference from a plain loop: " << worst << "\n";
  return worst < 1e-6f ? 0 : 1;
} catch (const prism::Error& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 2;
}
