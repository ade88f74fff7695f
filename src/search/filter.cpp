// Evaluates filters over the columns of a segment.
#include "search/filter.h"

#include <algorithm>

namespace prism::search {

namespace {

using Node = Filter::Node;
using Kind = Node::Kind;
using Order = Node::Order;
using Bitmap = std::vector<uint32_t>;

Bitmap empty_bitmap(uint64_t rows) { return Bitmap((rows + 31) / 32); }

template <class Test>
void set_where(Bitmap& bitmap, uint64_t rows, const Test& test) {
  for (uint64_t row = 0; row < rows; ++row) bitmap[row / 32] |= uint32_t{test(row)} << (row % 32);
}

template <class T>
bool holds(Order order, const T& a, const T& b) {
  switch (order) {
    case Order::equal:
      return a == b;
    case Order::unequal:
      return a != b;
    case Order::less:
      return a < b;
    case Order::less_equal:
      return a <= b;
    case Order::greater:
      return a > b;
    default:
      return a >= b;
  }
}

// Compares an integer with a number of either kind.
bool holds(Order order, int64_t a, const FieldValue& b) {
  if (const auto* integer = std::get_if<int64_t>(&b)) return holds(order, a, *integer);
  return holds(order, static_cast<double>(a), std::get<double>(b));
}
bool holds(Order order, double a, const FieldValue& b) {
  if (const auto* integer = std::get_if<int64_t>(&b))
    return holds(order, a, static_cast<double>(*integer));
  return holds(order, a, std::get<double>(b));
}

bool is_number(const FieldValue& value) { return value.index() < 2; }

// Whether one of the items of a list, each ended by a zero byte, is the text.
bool has_item(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t end = std::min(list.find('\0'), list.size());
    if (list.substr(0, end) == item) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// Sets the rows whose field compares with the value. Other types than the column's never match.
void compare(const Column& column, Order order, const FieldValue& value, uint64_t rows,
             Bitmap& bitmap) {
  if (column.type == FieldType::integer && is_number(value)) {
    const auto* const values = column.values.as<int64_t>();
    set_where(bitmap, rows,
              [&](uint64_t row) { return column.has(row) && holds(order, values[row], value); });
  } else if (column.type == FieldType::number && is_number(value)) {
    const auto* const values = column.values.as<double>();
    set_where(bitmap, rows,
              [&](uint64_t row) { return column.has(row) && holds(order, values[row], value); });
  } else if (column.type == FieldType::text && !is_number(value)) {
    const std::string_view text = std::get<std::string>(value);
    set_where(bitmap, rows, [&](uint64_t row) {
      return column.has(row) && holds(order, column.text(row), text);
    });
  } else if (column.type == FieldType::list && !is_number(value)) {
    const std::string_view text = std::get<std::string>(value);
    if (order != Order::equal && order != Order::unequal) return;
    set_where(bitmap, rows, [&](uint64_t row) {
      return column.has(row) && has_item(column.text(row), text) == (order == Order::equal);
    });
  }
}

Bitmap bitmap_of(const Node& node, const Segment& segment) {
  const uint64_t rows = segment.rows();
  Bitmap bitmap = empty_bitmap(rows);
  switch (node.kind) {
    case Kind::all_of:
      bitmap.assign(bitmap.size(), ~uint32_t{0});
      for (const auto& part : node.parts) {
        const Bitmap other = bitmap_of(*part, segment);
        for (size_t i = 0; i < bitmap.size(); ++i) bitmap[i] &= other[i];
      }
      return bitmap;
    case Kind::one_of:
      for (const auto& part : node.parts) {
        const Bitmap other = bitmap_of(*part, segment);
        for (size_t i = 0; i < bitmap.size(); ++i) bitmap[i] |= other[i];
      }
      return bitmap;
    case Kind::none_of:
      bitmap = bitmap_of(*node.parts[0], segment);
      for (uint32_t& word : bitmap) word = ~word;
      return bitmap;
    case Kind::compare:
    case Kind::one_of_values:
      if (const Column* const column = segment.column(node.field))
        for (const FieldValue& value : node.values)
          compare(*column, node.order, value, rows, bitmap);
      return bitmap;
    case Kind::ids:
      set_where(bitmap, rows, [&](uint64_t row) {
        return std::ranges::binary_search(node.sorted_ids, segment.id(row));
      });
      return bitmap;
    default:
      set_where(bitmap, rows, [&](uint64_t row) { return node.predicate(segment.id(row)); });
      return bitmap;
  }
}

Filter joined(Kind kind, const Filter& a, const Filter& b) {
  Node node{kind};
  for (const Filter* each : {&a, &b})
    node.parts.push_back(std::make_shared<const Node>(*each->node()));
  return Filter(std::make_shared<const Node>(std::move(node)));
}

void add_names(const Node& node, std::vector<std::string>& names) {
  if (node.kind == Kind::compare || node.kind == Kind::one_of_values) names.push_back(node.field);
  for (const auto& part : node.parts) add_names(*part, names);
}

}  // namespace

void add_field_names(const Filter& filter, std::vector<std::string>& names) {
  if (!filter.is_empty()) add_names(*filter.node(), names);
}

std::vector<uint32_t> allowed_rows(const Segment& segment, const Filter& filter) {
  std::vector<uint32_t> allowed = segment.alive();
  if (filter.is_empty()) return allowed;
  const Bitmap bitmap = bitmap_of(*filter.node(), segment);
  for (size_t i = 0; i < allowed.size(); ++i) allowed[i] &= bitmap[i];
  return allowed;
}

Filter Filter::ids(std::vector<Id> ids) {
  std::ranges::sort(ids);
  Node node{Kind::ids};
  node.sorted_ids = std::move(ids);
  return Filter(std::make_shared<const Node>(std::move(node)));
}

Filter Filter::where(std::function<bool(const Id&)> predicate) {
  Node node{Kind::predicate};
  node.predicate = std::move(predicate);
  return Filter(std::make_shared<const Node>(std::move(node)));
}

Filter Filter::all_of(const Filter& a, const Filter& b) {
  if (a.is_empty() || b.is_empty()) return a.is_empty() ? b : a;
  return joined(Kind::all_of, a, b);
}

Filter Filter::one_of(const Filter& a, const Filter& b) {
  if (a.is_empty() || b.is_empty()) return {};
  return joined(Kind::one_of, a, b);
}

Filter Filter::none_of(const Filter& a) {
  if (a.is_empty()) return Filter::ids({});  // the opposite of all vectors
  Node node{Kind::none_of};
  node.parts.push_back(a.node_);
  return Filter(std::make_shared<const Node>(std::move(node)));
}

}  // namespace prism::search
