// Saving and loading tensors: NumPy's .npy files and Hugging Face's .safetensors files.
//
//   save("weights.npy", randn({3, 4}));
//   Tensor w = load("weights.npy");
//   save_safetensors("model.safetensors", {{"w", w}, {"b", zeros({4})}});
//   Tensor b = load_safetensors("model.safetensors").at("b");
#pragma once

#include <map>
#include <string>

#include "prism/tensor.h"

#pragma GCC visibility push(default)
namespace prism {

// The extension selects the format: .npy, or .safetensors with one tensor named "tensor". The file
// appears under its name only when it is complete. Throws kInvalidArgument for block types, for
// bf16 in .npy and for other extensions, and kIo if the file cannot be written.
void save(const std::string& path, const Tensor& tensor);
// The content determines the format. A .safetensors file must hold one tensor. Throws kNotFound or
// kIo, kCorruptFile for malformed files, and kNotSupported for types that tensors lack.
Tensor load(const std::string& path, const Device& device = {});

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors);
std::map<std::string, Tensor> load_safetensors(const std::string& path, const Device& device = {});

}  // namespace prism
#pragma GCC visibility pop
