#include "grad/suite_sample.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include <fmt/format.h>

namespace prism {

namespace {

// Shape, strides and offset of what the op sees of an input.
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
  std::string layouts;
  for (const CaseInput& input : test.inputs) {
    item.types += fmt::format("{}{}", item.types.empty() ? "" : " ", input.type.name());
    layouts += " " + layout_text(input);
  }
  if (test.inputs.empty()) item.types = test.what.substr(0, test.what.find(' '));
  item.coarse = fmt::format("{}{} {}", test.op, gradient ? " gradient" : "", item.types);
  item.fine = fmt::format("{} {}{}", item.coarse, test.what, layouts);
  return item;
}

// f32 alone, beside whole numbers.
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

  // The kinds of each op, f32 first, the others as they came after shuffling.
  std::map<std::string, std::vector<std::string>> kinds;
  std::map<std::string, size_t> turn;  // of a kind
  for (const bool plain : {true, false}) {
    for (const SampleItem& item : items) {
      const bool first = is_plain_f32(item.types) && !item.gradient;
      if (first != plain || turn.contains(item.coarse)) continue;
      std::vector<std::string>& of_op = kinds[item.test->op];
      turn[item.coarse] = of_op.size();
      of_op.push_back(item.coarse);
    }
  }
  std::map<std::string, bool> opened;
  std::vector<std::tuple<bool, size_t, size_t>> keys;
  std::vector<size_t> order;
  for (size_t i = 0; i < items.size(); ++i) {
    const SampleItem& item = items[i];
    const size_t its_turn = turn[item.coarse];
    const bool opens = its_turn == 0 && !std::exchange(opened[item.test->op], true);
    keys.emplace_back(!opens, its_turn, i);
    order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](size_t i) { return keys[i]; });
  std::vector<SampleItem> ordered;
  for (const size_t i : order) ordered.push_back(std::move(items[i]));
  return ordered;
}

bool ProgramBudget::takes(const SampleItem& item, size_t compiled) {
  if (programs_ != 0 && compiled > 0) {
    // A case may need a handful of programs, gradients most.
    if (compiled + 8 >= programs_) {
      if (!fine_.contains(item.fine) && ops_.contains(item.test->op)) return false;
    } else if (compiled * 5 >= programs_ * 4) {
      if (!coarse_.contains(item.coarse) && ops_.contains(item.test->op)) return false;
    }
  }
  ops_.insert(item.test->op);
  coarse_.insert(item.coarse);
  fine_.insert(item.fine);
  return true;
}

}  // namespace prism
