// Cases of quantised tensors: devices must decode whole tensors and gathered rows exactly as the
// CPU does.
#include <vector>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "cpu/quantise/dequantise.h"
#include "cpu/quantise/quantise.h"
#include "prism/ops/index.h"
#include "prism/ops/quantise.h"

namespace prism {

namespace {

// Quantises and decodes each row with the functions of cpu/.
Values through_blocks(const ReferenceInput& x, BlockType type) {
  const std::vector<float> values(x.values.begin(), x.values.end());
  std::vector<std::byte> blocks(ElementType(type).row_bytes(values.size()));
  std::vector<float> decoded(values.size());
  const auto columns = static_cast<size_t>(x.shape[-1]);
  const uint64_t row_bytes = ElementType(type).row_bytes(columns);
  for (size_t first = 0; first < values.size(); first += columns) {
    std::byte* const row = blocks.data() + first / columns * row_bytes;
    cpu::quantise(type, values.data() + first, row, columns);
    cpu::dequantise(type, row, decoded.data() + first, columns);
  }
  return Values(decoded.begin(), decoded.end());
}

// Quantises on the CPU, so that the device only decodes.
Tensor uploaded(const Tensor& x, BlockType type) {
  return quantise(x.to(Device::cpu()), type).to(x.device());
}

void add_type(std::vector<OpCase>& cases, CaseRandom& random, BlockType type) {
  const ElementType element(type);
  const auto block = static_cast<int64_t>(element.block_elements());
  const std::vector<Shape> shapes = {
      {1, block}, {7, 2 * block}, {2, 3, block}, {0, block}, {3 * block}};
  for (const Shape& shape : shapes) {
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      OpCase test;
      test.op = "dequantise";
      test.what = fmt::format("{} {} to {}", element.name(), shape.text(), ElementType(to).name());
      test.inputs = {{shape, DType::f32, random.normal(shape.elements()), nullptr, false}};
      test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {dequantise(uploaded(in[0], type), to)};
      };
      test.reference = [=](std::span<const ReferenceInput> in) {
        return std::vector<Values>{through_blocks(in[0], type)};
      };
      test.tolerance = to == DType::f32 ? Tolerance::exact() : Tolerance::elementwise(to);
      cases.push_back(std::move(test));
    }
  }
  OpCase on_device;
  on_device.op = "quantise";
  on_device.what = fmt::format("{} of f16", element.name());
  on_device.inputs = {random.input({5, 2 * block}, DType::f16)};
  on_device.inputs[0].differentiable = false;
  on_device.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {dequantise(quantise(in[0], type))};
  };
  on_device.reference = [=](std::span<const ReferenceInput> in) {
    return std::vector<Values>{through_blocks(in[0], type)};
  };
  on_device.tolerance = Tolerance::exact();
  cases.push_back(std::move(on_device));

  for (const DType index_type : {DType::i32, DType::i64}) {
    OpCase test;
    test.op = "gather_rows";
    test.what = fmt::format("{} by {}", element.name(), ElementType(index_type).name());
    const int64_t rows = 11;
    test.inputs = {{{rows, block}, DType::f32, random.normal(rows * block), nullptr, false},
                   random.input({3, 5}, index_type, 0, static_cast<double>(rows - 1))};
    test.inputs[1].differentiable = false;
    test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {gather_rows(uploaded(in[0], type), in[1])};
    };
    test.reference = [=](std::span<const ReferenceInput> in) {
      const Values table = through_blocks(in[0], type);
      Values y;
      for (const double index : in[1].values) {
        const auto first = table.begin() + static_cast<std::ptrdiff_t>(index) * block;
        y.insert(y.end(), first, first + block);
      }
      return std::vector<Values>{y};
    };
    test.tolerance = Tolerance::exact();
    cases.push_back(std::move(test));
  }
}

}  // namespace

void add_quantise_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (int code = 0; code < kBlockTypeCount; ++code) {
    const auto type = static_cast<BlockType>(code);
    if (cpu::can_quantise(type)) add_type(cases, random, type);
  }
}

}  // namespace prism
