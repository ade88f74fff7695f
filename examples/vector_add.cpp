// Adds two vectors on the best device of this machine, or on the one named: vector_add
// [cpu|gpu|vulkan:0|...].
#include <prism/prism.h>
#include <iostream>

int main(int count, char** words) {
  using namespace prism::dsl;
  const prism::Kernel add = kernel("add", 256, [] {
    auto a = in("a", f32), b = in("b", f32);
    auto y = out("y", f32);
    auto i = global_id();
    if_(i < param("count", u32), [&] { y[i] = a[i] + b[i]; });
  });
  const auto device = prism::Device::named(count > 1 ? words[1] : "auto");
  const auto a = device.upload<float>({1, 2, 3}), b = device.upload<float>({10, 20, 30});
  const auto y = device.allocate(3 * sizeof(float));
  device.queue().launch(device.compile(add), 1, {a, b, y}, {3});
  for (const float value : device.download<float>(y)) std::cout << value << " ";
  std::cout << "on " << device.id() << "\n";
}
