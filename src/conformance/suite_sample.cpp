// Orders the cases of a run and limits the programs that they compile.
#include "conformance/suite_sample.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace prism {

namespace {

// The shape, strides and offset of the view that the op gets.
std::string layout_text(const CaseInput& input) {
  if (!input.view) return input.shape.text();
  const Layout layout = input.view(empty(input.shape, input.type, Device::cpu())).layout();
  std::string text = fmt::format("{}+{}", layout.shape.text(), layout.offset);
  for (int axis = 0; axis < layout.shape.rank(); ++axis)
    text += fmt::format(":{}", layout.stride(axis));
  return text;
}

SampleItem item_of(const OpCase& test, bool gradient) {
  SampleItem item{&test, gradient, {}, {}, {}};
  std::string layouts, forms;
  for (const CaseInput& input : test.inputs) {
    item.types += fmt::format("{}{}", item.types.empty() ? "" : " ", input.type.name());
    layouts += " " + layout_text(input);
    // For dense tensors the shape is a kernel parameter; only vectors of four change the kernel.
    const bool fours = input.shape.rank() > 0 && input.shape[-1] % 4 == 0;
    forms += input.view ? " " + layout_text(input)
                        : fmt::format(" {}{}{}", input.shape.rank(), fours ? "v" : "",
                                      input.shape == test.inputs[0].shape ? "" : "b");
  }
  if (test.inputs.empty()) item.types = test.what.substr(0, test.what.find(' '));
  item.form = fmt::format("{}{} {}{}", test.op, gradient ? " gradient" : "", item.types, forms);
  item.fine = fmt::format("{}{} {}{}", test.op, gradient ? " gradient" : "", test.what, layouts);
  return item;
}

// Whether f32 is the only float type; integers may occur too.
bool is_plain_f32(const std::string& types) {
  const auto has = [&](const char* type) { return types.find(type) != std::string::npos; };
  return has("f32") && !has("f16") && !has("f64") && !has("q") && !has("fp4");
}

}  // namespace

std::vector<SampleItem> sample_order(const std::vector<OpCase>& cases, uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<SampleItem> items;
  for (const OpCase& test : cases) {
    items.push_back(item_of(test, false));
    if (test.gradient) items.push_back(item_of(test, true));
  }
  std::ranges::shuffle(items, draw);

  // First one case of each op, in f32 if possible; then the others from three lists in turn.
  std::vector<SampleItem> ordered;
  std::set<std::string> opened;
  std::vector<std::vector<SampleItem>> lists(3);
  for (const bool plain : {true, false}) {
    for (SampleItem& item : items) {
      if (item.test == nullptr || item.gradient) continue;
      if (is_plain_f32(item.types) != plain || !opened.insert(item.test->op).second) continue;
      ordered.push_back(std::move(item));
      item.test = nullptr;
    }
  }
  for (SampleItem& item : items) {
    if (item.test == nullptr) continue;
    lists[item.gradient ? 0 : is_plain_f32(item.types) ? 1 : 2].push_back(std::move(item));
  }
  for (size_t i = 0; ordered.size() < items.size(); ++i) {
    for (std::vector<SampleItem>& list : lists)
      if (i < list.size()) ordered.push_back(std::move(list[i]));
  }
  return ordered;
}

bool ProgramBudget::takes(const SampleItem& item, size_t compiled) {
  if (programs_ != 0 && ops_.contains(item.test->op)) {
    // A case may need several programs, gradients the most.
    if (compiled + 16 >= programs_ && !fine_.contains(item.fine)) return false;
    if (compiled * 6 >= programs_ * 5 && !forms_.contains(item.form)) return false;
  }
  forms_.insert(item.form);
  ops_.insert(item.test->op);
  fine_.insert(item.fine);
  return true;
}

}  // namespace prism
