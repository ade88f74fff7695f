// Filters as trees of conditions, and their bitmaps.
#pragma once

#include <memory>
#include <vector>

#include "search/segment.h"

namespace prism::search {

struct Filter::Node {
  enum class Kind { all_of, one_of, none_of, compare, one_of_values, ids, predicate };
  enum class Order { equal, unequal, less, less_equal, greater, greater_equal };
  Kind kind;
  std::vector<std::shared_ptr<const Node>> parts = {};
  std::string field = {};
  Order order = Order::equal;
  std::vector<FieldValue> values = {};  // of compare (one) and one_of_values
  std::vector<Id> sorted_ids = {};
  std::function<bool(const Id&)> predicate = {};
};

// The rows of a segment that are alive and that the filter allows, as a bitmap.
std::vector<uint32_t> allowed_rows(const Segment& segment, const Filter& filter);

// Appends the names of the fields that the filter's conditions compare.
void add_field_names(const Filter& filter, std::vector<std::string>& names);

}  // namespace prism::search
