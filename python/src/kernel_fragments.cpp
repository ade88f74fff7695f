// Matrix fragments, asynchronous copies and text for one dialect, for kernels written in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kernel_handles.h"

namespace prism::python {
namespace {

using dsl::Fragment;

dsl::Layout layout_of(const std::string& name) {
  if (name == "row_major") return dsl::Layout::row_major;
  if (name == "column_major") return dsl::Layout::column_major;
  throw nb::value_error(
      ("kernel: no layout '" + name + "'; use row_major or column_major").c_str());
}

dsl::FragmentSize size_of(const std::vector<uint16_t>& given) {
  if (given.size() != 3)
    throw nb::value_error("kernel: the size of a fragment is (m, n, k), for example (16, 16, 16)");
  return {given[0], given[1], given[2]};
}

// The value that a function of Python returns for these arguments.
template <class... Arguments>
Value result_of(const nb::callable& f, const Arguments&... arguments) {
  return operand_of(f(arguments...)).value();
}

void bind_fragment(nb::module_& m) {
  nb::class_<Fragment> type(m, "KernelFragment",
                            "A tile of a matrix, held by a whole subgroup: accumulator(m x n) += "
                            "a(m x k) * b(k x n).");
  type.def(
      "fill", [](const Fragment& f, nb::handle value) { f.fill(operand_of(value), here()); },
      nb::arg("value"), "Sets all elements.");
  type.def(
      "load",
      [](const Fragment& f, const dsl::Array& memory, nb::handle index, nb::handle stride,
         const std::string& layout) {
        f.load(memory, operand_of(index), operand_of(stride), layout_of(layout), here());
      },
      nb::arg("memory"), nb::arg("index"), nb::arg("stride"), nb::arg("layout") = "row_major",
      "Loads the tile whose first element is at the index; stride: the elements between two rows.");
  type.def(
      "store",
      [](const Fragment& f, const dsl::Array& memory, nb::handle index, nb::handle stride,
         const std::string& layout) {
        f.store(memory, operand_of(index), operand_of(stride), layout_of(layout), here());
      },
      nb::arg("memory"), nb::arg("index"), nb::arg("stride"), nb::arg("layout") = "row_major",
      "Stores an accumulator.");
  type.def(
      "multiply",
      [](const Fragment& f, const Fragment& a, const Fragment& b) { f.multiply(a, b, here()); },
      nb::arg("a"), nb::arg("b"), "Adds a @ b to this accumulator.");
  type.def(
      "map",
      [](const Fragment& f, const nb::callable& function, nb::handle sources) {
        if (sources.is_none())
          return f.map([&](Value element, Value row,
                           Value column) { return result_of(function, element, row, column); },
                       here());
        f.map(
            nb::cast<std::vector<Fragment>>(sources),
            [&](const std::vector<Value>& elements, Value row, Value column) {
              return result_of(function, elements, row, column);
            },
            here());
      },
      nb::arg("function"), nb::arg("sources") = nb::none(),
      nb::sig("def map(self, function: Callable[..., object], sources: Sequence[KernelFragment] | "
              "None = None) -> None"),
      "Sets each element to function(element, row, column), or with sources to "
      "function([elements of the sources], row, column).");
  type.def(
      "row_reduce",
      [](const Fragment& f, const std::string& op, const Fragment& source) {
        f.row_reduce(reduce_op(op), source, here());
      },
      nb::arg("op"), nb::arg("source"),
      "Sets each element to the sum (add), min or max of its row in the source.");
  type.def(
      "make",
      [](const Fragment& f, const nb::callable& function) {
        f.make([&](Value row, Value k) { return result_of(function, row, k); }, here());
      },
      nb::arg("function"), nb::sig("def make(self, function: Callable[..., object]) -> None"),
      "Fills an a operand of f16 or bf16: function(row, k), for even k, gives the elements k (low "
      "half of a u32) and k + 1 (high half).");
  type.def(
      "convert", [](const Fragment& f, const Fragment& from) { f.convert(from, here()); },
      nb::arg("accumulator"), "Makes an operand from an accumulator.");
}

void bind_makers(nb::class_<KernelHandle>& type) {
  using Maker = Fragment (*)(DType, dsl::FragmentSize, Where);
  const std::tuple<const char*, Maker, const char*> makers[] = {
      {"fragment_a", &dsl::fragment_a, "An m x k operand of f16, bf16 or i8; size: (m, n, k)."},
      {"fragment_b", &dsl::fragment_b, "A k x n operand of f16, bf16 or i8; size: (m, n, k)."},
      {"accumulator", &dsl::accumulator, "An m x n sum of f32 or i32; size: (m, n, k)."}};
  for (const auto& [name, function, doc] : makers)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle dtype,
                              const std::vector<uint16_t>& size) {
          k.check_open();
          return function(kernel_type(dtype), size_of(size), here());
        },
        nb::arg("dtype"), nb::arg("size") = std::vector<uint16_t>{16, 16, 16}, doc);
}

void bind_copies(nb::class_<KernelHandle>& type) {
  type.def(
      "async_copy",
      [](const KernelHandle& k, const dsl::Array& to, nb::handle to_index, const dsl::Array& from,
         nb::handle from_index, uint32_t elements) {
        k.check_open();
        dsl::async_copy(to, operand_of(to_index), from, operand_of(from_index), elements, here());
      },
      nb::arg("to_shared"), nb::arg("to_index"), nb::arg("from_buffer"), nb::arg("from_index"),
      nb::arg("elements"),
      "Starts to copy 4, 8 or 16 bytes from a buffer to a shared array. They are there after "
      "async_commit, async_wait and barrier.");
  type.def(
      "async_copy_if",
      [](const KernelHandle& k, nb::handle predicate, const dsl::Array& to, nb::handle to_index,
         const dsl::Array& from, nb::handle from_index, uint32_t elements) {
        k.check_open();
        dsl::async_copy_if(operand_of(predicate), to, operand_of(to_index), from,
                           operand_of(from_index), elements, here());
      },
      nb::arg("predicate"), nb::arg("to_shared"), nb::arg("to_index"), nb::arg("from_buffer"),
      nb::arg("from_index"), nb::arg("elements"), "Writes zeros where the predicate is false.");
  type.def(
      "async_wait",
      [](const KernelHandle& k, uint32_t still_under_way) {
        k.check_open();
        dsl::async_wait(still_under_way, here());
      },
      nb::arg("still_under_way") = 0,
      "Waits until at most this many committed groups of copies are under way.");
}

void bind_raw(nb::class_<KernelHandle>& type) {
  type.def(
      "raw",
      [](const KernelHandle& k, const std::string& dialect, const std::string& text,
         nb::sequence arguments, nb::handle dtype, const nb::callable& meaning) {
        k.check_open();
        std::vector<Value> values;
        for (const nb::handle each : arguments) values.push_back(operand_of(each).value());
        return dsl::raw_with(
            dialect, text, values, kernel_vector_type(dtype), [&] { return result_of(meaning); },
            here());
      },
      nb::arg("dialect"), nb::arg("text"), nb::arg("arguments"), nb::arg("dtype"),
      nb::arg("meaning"),
      nb::sig("def raw(self, dialect: str, text: str, arguments: Sequence[object], dtype: object, "
              "meaning: Callable[[], object]) -> KernelValue"),
      "Code for one dialect, with {0}, {1} for the arguments and {r} for the result; meaning() "
      "writes the same for all others.");
}

}  // namespace

void bind_kernel_fragments(nb::module_& m) { bind_fragment(m); }

void bind_fragment_functions(nb::class_<KernelHandle>& type) {
  bind_makers(type);
  bind_copies(type);
  bind_raw(type);
}

}  // namespace prism::python
