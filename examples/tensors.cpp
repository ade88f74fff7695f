// Tensors and a gradient. Usage: example_tensors [DEVICE]
#include <prism/prism.h>
#include <iostream>

using namespace prism;

int main(int count, char** words) {
  set_default_device(Device::named(count > 1 ? words[1] : "auto"));
  const Tensor x = from_vector({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  Tensor w = full({2, 2}, 0.5).set_requires_grad();
  const Tensor loss = (matmul(x, w) - 1.0).square().mean();
  loss.backward();
  std::cout << "loss " << loss.item() << ", gradient\n" << w.grad() << "\n";
}
