// Indexing and assignment with integers, slices, None, ellipsis, lists, masks and index tensors, by
// NumPy's rules.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/ops.h"

namespace prism::python {
namespace {

constexpr int64_t kLargestI32 = 2147483647;

// Indices along one axis of a view.
struct AxisIndices {
  int axis = 0;
  Tensor indices;
};

[[noreturn]] void out_of_range(int64_t index, int axis, int64_t length) {
  throw nb::index_error(("index " + std::to_string(index) + " is out of range for axis " +
                         std::to_string(axis) + " with length " + std::to_string(length))
                            .c_str());
}

bool is_mask(const Tensor& tensor) { return tensor.dtype() == DType::b1; }

bool is_plain_index(nb::handle item) {
  return item.is_none() || item.ptr() == Py_Ellipsis || PySlice_Check(item.ptr()) ||
         (PyIndex_Check(item.ptr()) && !PyBool_Check(item.ptr()) && !nb::isinstance<Tensor>(item) &&
          !is_array(item));
}

// An integer as itself; lists, arrays, tensors and bools as tensors of indices or masks.
struct Item {
  nb::object plain;  // an integer, a slice, None or Ellipsis
  Tensor array;
  int axes() const {
    if (array) return is_mask(array) ? array.ndim() : 1;
    return plain.is_none() || plain.ptr() == Py_Ellipsis ? 0 : 1;
  }
  bool is_integer() const { return !array && PyIndex_Check(plain.ptr()); }
};

Item read_item(nb::handle given, const Device& device) {
  Item item;
  if (is_plain_index(given)) {
    item.plain = nb::borrow(given);
    return item;
  }
  if (nb::isinstance<nb::str>(given) || nb::isinstance<nb::dict>(given))
    throw nb::type_error(
        "index: give integers, slices, None, ..., or lists, masks and tensors of indices");
  item.array = make_tensor(given, std::nullopt, device, false).to(device);
  const ElementType type = item.array.dtype();
  if (item.array.size() == 0 && !is_mask(item.array))
    item.array = item.array.astype(DType::i32);
  else if (type.is_block() || is_float(type.plain()))
    throw nb::index_error(
        "an index must be an integer, a slice, None, ..., or a tensor or list of integers or "
        "bools");
  else if (!(type == DType::i32) && !(type == DType::i64) && !is_mask(item.array))
    item.array = item.array.astype(DType::i32);
  return item;
}

// The items with an ellipsis replaced by as many whole slices as there are axes left.
std::vector<Item> read_items(nb::handle index, const Tensor& tensor) {
  std::vector<Item> items;
  if (nb::isinstance<nb::tuple>(index))
    for (nb::handle each : index) items.push_back(read_item(each, tensor.device()));
  else
    items.push_back(read_item(index, tensor.device()));
  int used = 0;
  auto ellipsis = items.end();
  for (auto each = items.begin(); each != items.end(); ++each) {
    used += each->axes();
    if (!each->array && each->plain.ptr() == Py_Ellipsis) {
      if (ellipsis != items.end()) throw nb::index_error("an index has at most one ellipsis");
      ellipsis = each;
    }
  }
  if (used > tensor.ndim())
    throw nb::index_error(("too many indices: " + std::to_string(used) + " for a tensor with " +
                           std::to_string(tensor.ndim()) + " axes")
                              .c_str());
  Item whole;
  whole.plain = nb::slice(nb::none(), nb::none(), nb::none());
  const auto missing = static_cast<size_t>(tensor.ndim() - used);
  if (ellipsis != items.end()) items.insert(items.erase(ellipsis), missing, whole);
  return items;
}

Tensor sliced(const Tensor& view, int axis, nb::handle slice) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) < 0) nb::raise_python_error();
  const Py_ssize_t length = view.size(axis);
  PySlice_AdjustIndices(length, &start, &stop, step);
  // A stop before the first element has no non-negative form.
  if (step < 0 && stop < 0) stop = -length - 1;
  return view.slice(axis, start, stop, step);
}

int64_t checked_index(nb::handle given, const Tensor& view, int axis) {
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number) nb::raise_python_error();
  const auto index = nb::cast<int64_t>(number);
  const int64_t length = view.size(axis);
  if (index < -length || index >= length) out_of_range(index, axis, length);
  return index < 0 ? index + length : index;
}

// The places where a mask is true: one tensor of indices for each of its axes.
std::vector<Tensor> true_places(const Tensor& mask) {
  const std::vector<uint8_t> truth = mask.to_vector<uint8_t>();
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(mask.ndim()));
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (int axis = mask.ndim(); axis-- > 0; rest /= mask.size(axis))
      places[static_cast<size_t>(axis)].push_back(rest % mask.size(axis));
  }
  std::vector<Tensor> result;
  for (const auto& each : places)
    result.push_back(from_vector(each, {static_cast<int64_t>(each.size())}, mask.device()));
  return result;
}

// Negative indices count from the end. On the CPU values that are known are checked here, so that
// the error names them.
Tensor from_start(const Tensor& indices, int axis, int64_t length) {
  if (indices.is_evaluated() && indices.device().info().is_cpu) {
    bool has_negative = false;
    for (const double each : indices.to_doubles()) {
      const auto index = static_cast<int64_t>(each);
      if (index < -length || index >= length) out_of_range(index, axis, length);
      has_negative = has_negative || index < 0;
    }
    if (!has_negative) return indices;
  }
  return where(indices < 0.0, indices + static_cast<double>(length), indices);
}

bool is_consecutive(const std::vector<AxisIndices>& chosen) {
  for (size_t i = 1; i < chosen.size(); ++i)
    if (chosen[i].axis != chosen[i - 1].axis + 1) return false;
  return true;
}

// view with the axes of `chosen` replaced by the axes of the broadcast indices, which stand in
// their place if they are consecutive and in front otherwise.
Tensor gathered(const Tensor& view, const std::vector<AxisIndices>& chosen) {
  Shape shape;
  for (const AxisIndices& each : chosen) shape = broadcast("indices", shape, each.indices.shape());
  std::vector<int> order;
  Shape front{1};
  Tensor linear;
  for (const AxisIndices& each : chosen) {
    const int64_t length = view.size(each.axis);
    const Tensor from = from_start(each.indices, each.axis, length);
    linear = linear ? linear * static_cast<double>(length) + from : from;
    front[0] *= length;
    order.push_back(each.axis);
  }
  for (int axis = 0; axis < view.ndim(); ++axis)
    if (std::find(order.begin(), order.end(), axis) == order.end()) {
      order.push_back(axis);
      front.append(view.size(axis));
    }
  const Tensor rows =
      gather_rows(view.permute(order).reshape(front), linear.expand(shape).contiguous());
  if (!is_consecutive(chosen) || chosen[0].axis == 0) return rows;
  std::vector<int> back;
  for (int i = 0; i < chosen[0].axis; ++i) back.push_back(shape.rank() + i);
  for (int i = 0; i < shape.rank(); ++i) back.push_back(i);
  for (int i = shape.rank() + chosen[0].axis; i < rows.ndim(); ++i) back.push_back(i);
  return rows.permute(back);
}

Tensor get(const Tensor& tensor, nb::handle index) {
  if (PyLong_CheckExact(index.ptr()) && tensor.ndim() > 0)  // the usual case, quickly
    return tensor.select(0, checked_index(index, tensor, 0));
  const std::vector<Item> items = read_items(index, tensor);
  const bool has_arrays = std::any_of(
      items.begin(), items.end(), [](const Item& each) { return static_cast<bool>(each.array); });
  Tensor view = tensor;
  std::vector<AxisIndices> chosen;
  int axis = 0;
  for (const Item& item : items) {
    if (item.array && is_mask(item.array)) {
      for (int i = 0; i < item.array.ndim(); ++i)
        if (item.array.size(i) != view.size(axis + i))
          throw nb::index_error(("a mask of shape " + item.array.shape().text() + " does not fit " +
                                 tensor.shape().text())
                                    .c_str());
      if (item.array.ndim() == 0) {  // x[True]: a new axis of length 1 or 0
        view = view.unsqueeze(axis);
        view = view.slice(axis, 0, item.array.item() != 0 ? 1 : 0);
        ++axis;
        continue;
      }
      for (const Tensor& places : true_places(item.array)) chosen.push_back({axis++, places});
    } else if (item.array) {
      chosen.push_back({axis++, item.array});
    } else if (item.plain.is_none()) {
      view = view.unsqueeze(axis++);
    } else if (PySlice_Check(item.plain.ptr())) {
      view = sliced(view, axis, item.plain);
      ++axis;
    } else if (has_arrays) {  // an integer beside arrays is an array of one
      const int64_t place = checked_index(item.plain, view, axis);
      chosen.push_back({axis++, from_vector({place}, {}, tensor.device())});
    } else {
      view = view.select(axis, checked_index(item.plain, view, axis));
    }
  }
  return chosen.empty() ? view : gathered(view, chosen);
}

// The same elements as get(), replaced. The tensor becomes a new one: others keep their values.
void set(Tensor& tensor, nb::handle index, nb::handle given) {
  const Tensor value =
      make_tensor(given, tensor.dtype(), tensor.device(), false).to(tensor.device());
  if (nb::isinstance<Tensor>(index) && is_mask(*nb::inst_ptr<Tensor>(index)) && value.ndim() == 0 &&
      nb::inst_ptr<Tensor>(index)->shape() == tensor.shape()) {
    tensor = where(*nb::inst_ptr<Tensor>(index), value, tensor);
    return;
  }
  const int64_t count = tensor.size();
  const DType type = count > kLargestI32 ? DType::i64 : DType::i32;
  const Tensor places = get(arange(count, type, tensor.device()).reshape(tensor.shape()), index);
  const Shape shape = places.shape();
  Tensor values = value;
  while (values.ndim() > shape.rank() && values.size(0) == 1) values = values.squeeze(0);
  if (places.size() == 0) return;
  tensor = scatter_rows(tensor.flatten(), places.flatten(), values.expand(shape).flatten())
               .reshape(tensor.shape());
}

}  // namespace

void bind_indexing(nb::class_<Tensor>& type, nb::module_& m) {
  type.def("__getitem__", &get, nb::arg("index").none(),
           nb::sig("def __getitem__(self, index: Index) -> Tensor"));
  type.def("__setitem__", &set, nb::arg("index").none(), nb::arg("value"),
           nb::sig("def __setitem__(self, index: Index, value: object) -> None"));
  type.def(
      "__iter__",
      [](const Tensor& t) {
        if (t.ndim() == 0) throw nb::type_error("a tensor without axes has no items");
        nb::list rows;
        for (int64_t i = 0; i < t.size(0); ++i) rows.append(t.select(0, i));
        return nb::iter(rows);
      },
      nb::sig("def __iter__(self) -> Iterator[Tensor]"));
  m.def(
      "nonzero",
      [](const Tensor& x) {
        nb::list places;
        for (const Tensor& each : true_places(x.astype(DType::b1))) places.append(each);
        return nb::tuple(places);
      },
      nb::arg("x"), nb::sig("def nonzero(x: Tensor) -> tuple[Tensor, ...]"),
      "The places of elements that are not zero: int64 indices for each axis.");
  m.def(
      "take",
      [](const Tensor& x, const Tensor& indices, nb::handle axis) {
        if (axis.is_none()) return gathered(x.flatten(), {{0, indices}});
        return gathered(x, {{checked_axis("take", nb::cast<int>(axis), x.ndim()), indices}});
      },
      nb::arg("x"), nb::arg("indices"), nb::arg("axis") = nb::none(),
      nb::sig("def take(x: Tensor, indices: Tensor, axis: int | None = None) -> Tensor"),
      "The elements at the indices along an axis.");
}

}  // namespace prism::python
