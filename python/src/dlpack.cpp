// Exchange of arrays with other libraries by DLPack, without a copy on the CPU.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "prism/error.h"
#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::python {
namespace {

nb::dlpack::dtype dlpack_type(ElementType type) {
  if (type.is_block())
    throw Error(ErrorCode::kInvalidArgument,
                std::string("export: a tensor of type ") + type.name() +
                    "; other libraries have no quantised types: dequantise() it first");
  const auto bits = static_cast<uint8_t>(8 * type.block_bytes());
  const auto make = [&](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), bits, 1};
  };
  if (type == DType::b1) return make(nb::dlpack::dtype_code::Bool);
  if (type == DType::bf16) return make(nb::dlpack::dtype_code::Bfloat);
  if (is_float(type.plain())) return make(nb::dlpack::dtype_code::Float);
  return make(is_signed_int(type.plain()) ? nb::dlpack::dtype_code::Int
                                          : nb::dlpack::dtype_code::UInt);
}

ElementType type_of(nb::dlpack::dtype type) {
  for (const DType each : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8,
                           DType::i16, DType::i32, DType::i64, DType::b1})
    if (type.lanes == 1 && dlpack_type(each) == type) return each;
  throw nb::type_error(
      ("import: elements of " + std::to_string(type.bits) + " bits with DLPack's type code " +
       std::to_string(type.code) +
       "; tensors hold float16, bfloat16, float32, float64, int8 to int64, uint8 and bool")
          .c_str());
}

// A view of the tensor's memory on the CPU, which the view keeps alive.
template <class... Settings>
nb::ndarray<Settings...> view_of(const Tensor& given) {
  const Tensor tensor = given.device().info().is_cpu ? given : given.to(Device::cpu());
  tensor.eval();
  deliver_warnings();
  const std::shared_ptr<Storage> storage = tensor.node()->storage[tensor.output()];
  const nb::capsule owner(new std::shared_ptr<Storage>(storage), [](void* held) noexcept {
    delete static_cast<std::shared_ptr<Storage>*>(held);
  });
  const Layout& layout = tensor.layout();
  std::vector<size_t> shape(layout.shape.begin(), layout.shape.end());
  const std::vector<int64_t> strides(layout.strides.begin(),
                                     layout.strides.begin() + layout.shape.rank());
  std::byte* const data =
      storage->host.get() + layout.offset * static_cast<int64_t>(tensor.dtype().block_bytes());
  return nb::ndarray<Settings...>(data, shape.size(), shape.data(), owner, strides.data(),
                                  dlpack_type(tensor.dtype()), nb::device::cpu::value, 0);
}

nb::object to_numpy(const Tensor& tensor) {
  // NumPy has no bfloat16.
  const Tensor known = tensor.dtype() == DType::bf16 ? tensor.astype(DType::f32) : tensor;
  return nb::cast(view_of<nb::numpy, nb::ro>(known), nb::rv_policy::reference);
}

nb::object as_array(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  nb::object array = to_numpy(tensor);
  if (!dtype.is_none()) array = array.attr("astype")(dtype, nb::arg("copy") = false);
  if (!copy.is_none() && nb::cast<bool>(copy)) array = array.attr("copy")();
  return array;
}

nb::object to_dlpack(const Tensor& tensor, nb::kwargs options) {
  if (!tensor.device().info().is_cpu)
    throw nb::buffer_error(("__dlpack__: the tensor is on " + tensor.device().id() +
                            "; only tensors on the CPU are exported: use .cpu()")
                               .c_str());
  const nb::object view =
      nb::cast(view_of<nb::array_api, nb::ro>(tensor), nb::rv_policy::reference);
  return view.attr("__dlpack__")(**options);
}

}  // namespace

bool is_array(nb::handle object) {
  return nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__array__");
}

Tensor import_array(nb::handle given) {
  if (nb::isinstance<Tensor>(given)) return nb::cast<Tensor>(given);
  if (!is_array(given))
    throw nb::type_error("import: the object has neither __dlpack__ nor __array__");
  const nb::object array =
      nb::hasattr(given, "__dlpack__") ? nb::borrow(given) : nb::object(given.attr("__array__")());
  nb::ndarray<nb::ro> view;
  if (!nb::try_cast(array, view))
    throw nb::type_error("import: the object does not give its array by DLPack");
  const ElementType type = type_of(view.dtype());
  if (view.device_type() != nb::device::cpu::value)
    throw Error(ErrorCode::kNotSupported,
                "import: the array is on a GPU, and only memory of the CPU is shared; copy it to "
                "the CPU first");
  if (view.ndim() > kMaxRank) throw nb::value_error("import: a tensor has at most 8 axes");
  Layout layout;
  int64_t first = 0, last = 0;
  for (size_t axis = 0; axis < view.ndim(); ++axis) {
    const auto length = static_cast<int64_t>(view.shape(axis));
    layout.strides[axis] = view.stride(axis);
    layout.shape.append(length);
    (view.stride(axis) < 0 ? first : last) += (length - 1) * view.stride(axis);
  }
  if (layout.shape.elements() == 0) return empty(layout.shape, type, Device::cpu());
  layout.offset = -first;
  const auto* start = static_cast<const std::byte*>(static_cast<const void*>(view.data())) +
                      first * static_cast<int64_t>(type.block_bytes());
  // Letting the array go needs Python's lock, which nanobind takes.
  const std::shared_ptr<const std::byte> memory(start,
                                                [view](const std::byte*) mutable { view = {}; });
  const Tensor all = from_host_memory(memory, Shape{last - first + 1}, type);
  return Tensor(all.node(), all.output(), layout);
}

void bind_exchange(nb::class_<Tensor>& type, nb::module_& m) {
  type.def("numpy", &to_numpy, nb::sig("def numpy(self) -> typing.Any"),
           "The values as a read-only array of NumPy, without a copy on the CPU. bfloat16 becomes "
           "float32.");
  type.def(
      "__array__", &as_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig(
          "def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any"));
  type.def("__dlpack__", &to_dlpack,
           nb::sig("def __dlpack__(self, **kwargs: typing.Any) -> typing.Any"),
           "The memory as a DLPack capsule. CPU only.");
  type.def(
      "__dlpack_device__",
      [](const Tensor& t) {
        if (!t.device().info().is_cpu)
          throw nb::buffer_error(
              "__dlpack_device__: only tensors on the CPU are exported: use .cpu()");
        return nb::make_tuple(nb::device::cpu::value, 0);
      },
      nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
  m.def(
      "from_dlpack",
      [](nb::handle x, nb::handle device, nb::handle copy) {
        const Device place = device_argument(device);
        const Tensor shared = import_array(x);
        if (!copy.is_none() && nb::cast<bool>(copy))
          return from_bytes(shared.to_bytes(), shared.shape(), shared.dtype(),
                            place ? place : Device::cpu());
        return place ? shared.to(place) : shared;
      },
      nb::arg("x"), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig("def from_dlpack(x: object, device: DeviceLike | None = None, copy: bool | None = "
              "None) -> Tensor"),
      "A tensor over the memory of another library's array, without a copy.");
  m.def(
      "from_numpy", [](nb::handle array) { return import_array(array); }, nb::arg("array"),
      "A tensor over the memory of an array, without a copy.");
}

}  // namespace prism::python
