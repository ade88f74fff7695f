// A user's program whose own headers come first on the include path, under names that Prism uses
// inside. It is compiled with hidden visibility, as many are: an exception of Prism is caught by
// its type all the same.
#include <base/error.h>
#include <ops/index.h>
#include <prism/prism.h>
#include <tensor/shape.h>

#include <iostream>

int main() {
  if (kOwnError + kOwnIndex + kOwnShape != 66) return 1;
  const prism::Tensor x = prism::ones({2, 3}, prism::DType::f32, prism::Device::cpu());
  const std::vector<float> sums = prism::sum(x + x, {-1}).to_vector<float>();
  if (sums != std::vector<float>{6, 6}) return 2;
  try {
    prism::Device::named("quantum");
    return 3;
  } catch (const prism::Error& error) {
    if (error.code() != prism::ErrorCode::kNotFound) return 4;
    std::cout << "own headers first: " << error.what() << "\n";
  }
}
