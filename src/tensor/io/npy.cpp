// The .npy format of NumPy: a header, then the elements.
#include <array>

#include "base/system/output_file.h"
#include "tensor/io/npy_header.h"
#include "tensor/io/tensor_file.h"

namespace prism {

Tensor read_npy(const TensorFile& file, const Device& device) {
  const NpyHeader header = parse_npy(file.path, file.text());
  const std::string_view elements = file.text().substr(header.elements_at);
  if (!header.fortran_order) return tensor_from(file, elements, header.shape, header.type, device);
  Shape reversed;
  std::array<int, kMaxRank> axes = {};
  for (int axis = header.shape.rank(); axis-- > 0;) {
    axes[static_cast<size_t>(reversed.rank())] = axis;
    reversed.append(header.shape[axis]);
  }
  const auto rank = static_cast<size_t>(reversed.rank());
  return tensor_from(file, elements, reversed, header.type, device)
      .permute(std::span<const int>(axes.data(), rank));
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::string start = npy_header_text(path, tensor.dtype(), tensor.shape());
  const std::vector<std::byte> values = tensor.to_bytes();
  OutputFile file(path);
  file.write(std::as_bytes(std::span(start)));
  file.write(values);
  file.commit();
}

}  // namespace prism
