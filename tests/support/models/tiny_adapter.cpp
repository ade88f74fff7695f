// Writes adapters, and multiplies their factors out in float64.
#include "support/models/tiny_adapter.h"

#include <list>
#include <random>

#include "llm/gguf/gguf_writer.h"

namespace prism::test {

std::vector<std::string> adapted_tensors(const llm::GgufFile& model) {
  std::vector<std::string> names;
  for (const llm::GgufTensor& each : model.tensors())
    if (each.shape.rank() >= 2 && (each.name.starts_with("blk.") || each.name == "output.weight"))
      names.push_back(each.name);
  return names;
}

void write_adapter(const llm::GgufFile& model, const TinyAdapter& adapter, const std::string& path,
                   double scale, ReferenceModel& reference) {
  llm::GgufWriter out;
  out.set("general.type", "adapter");
  out.set("general.architecture", adapter.architecture.empty()
                                      ? model.string("general.architecture")
                                      : std::string_view(adapter.architecture));
  out.set("adapter.type", "lora");
  out.set("adapter.lora.alpha", static_cast<float>(adapter.alpha));
  std::mt19937 random(adapter.seed);
  std::normal_distribution<float> normal(0, 0.1f);
  std::list<std::vector<float>> kept;
  const auto factor = [&](const std::string& name, const Shape& shape) -> std::vector<float>& {
    std::vector<float>& values = kept.emplace_back(static_cast<size_t>(shape.elements()));
    for (float& each : values) each = normal(random);
    out.add_tensor(name, shape, DType::f32, std::as_bytes(std::span(values)));
    return values;
  };
  const double by = scale * adapter.alpha / static_cast<double>(adapter.rank);
  for (const std::string& name :
       adapter.tensors.empty() ? adapted_tensors(model) : adapter.tensors) {
    const Shape of = model.find_tensor(name)->shape;
    const int64_t rows = of[-2], columns = of[-1], rank = adapter.rank;
    const int64_t matrices = of.elements() / (rows * columns);
    const bool is_table = name == "token_embd.weight";  // the factors the other way round
    Shape a = of, b = of;
    a[-2] = rank, b[-1] = rank;
    if (is_table) a = {rows, rank}, b = {columns, rank};
    const std::vector<float>& first = factor(name + ".lora_a", a);
    const std::vector<float>& second = factor(name + ".lora_b", b);
    std::vector<double>& changed = reference.tensors.at(name);
    const auto at = [](const std::vector<float>& values, int64_t i) {
      return static_cast<double>(values[static_cast<size_t>(i)]);
    };
    for (int64_t m = 0; m < matrices; ++m)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          for (int64_t k = 0; k < rank; ++k)
            changed[static_cast<size_t>((m * rows + r) * columns + c)] +=
                by * (is_table ? at(first, r * rank + k) * at(second, c * rank + k)
                               : at(second, (m * rows + r) * rank + k) *
                                     at(first, (m * rank + k) * columns + c));
  }
  out.write(path);
}

}  // namespace prism::test
