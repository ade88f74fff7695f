// Exchange of arrays with other libraries by DLPack, without a copy on the CPU and on GPUs whose
// memory they can address.
#include <algorithm>
#include <mutex>

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "prism/error.h"
#include "tensor/exchange.h"

namespace prism::python {
namespace {

constexpr int kPinnedMemory = 3;  // DLPack's type of the host memory that CUDA has locked

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

// A view of the tensor's memory, which the view keeps alive. On a GPU the stream waits for it.
template <class... Settings>
nb::ndarray<Settings...> view_of(const Tensor& tensor, std::optional<uintptr_t> stream = {}) {
  LentMemory lent = lend(tensor, stream);
  deliver_warnings();
  const nb::capsule owner(
      new std::shared_ptr<void>(std::move(lent.owner)),
      [](void* held) noexcept { delete static_cast<std::shared_ptr<void>*>(held); });
  const Layout& layout = tensor.layout();
  std::vector<size_t> shape(layout.shape.begin(), layout.shape.end());
  const std::vector<int64_t> strides(layout.strides.begin(),
                                     layout.strides.begin() + layout.shape.rank());
  return nb::ndarray<Settings...>(lent.data, shape.size(), shape.data(), owner, strides.data(),
                                  dlpack_type(tensor.dtype()), lent.device.type,
                                  lent.device.ordinal);
}

Tensor on_cpu(const Tensor& tensor) {
  return tensor.device().info().is_cpu ? tensor : tensor.to(Device::cpu());
}

nb::object to_numpy(const Tensor& tensor) {
  // NumPy has no bfloat16.
  const Tensor known = tensor.dtype() == DType::bf16 ? tensor.astype(DType::f32) : tensor;
  return nb::cast(view_of<nb::numpy, nb::ro>(on_cpu(known)), nb::rv_policy::reference);
}

nb::object as_array(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  nb::object array = to_numpy(tensor);
  if (!dtype.is_none()) array = array.attr("astype")(dtype, nb::arg("copy") = false);
  if (!copy.is_none() && nb::cast<bool>(copy)) array = array.attr("copy")();
  return array;
}

DlpackDevice exported_device(const Tensor& tensor) {
  if (const auto device = dlpack_device(tensor.device())) return *device;
  throw nb::buffer_error(("__dlpack__: the tensor is on " + tensor.device().id() +
                          ", whose memory other libraries cannot address; use .cpu()")
                             .c_str());
}

// The stream that waits for the values. DLPack: None is the default stream, -1 none at all.
std::optional<uintptr_t> stream_argument(nb::handle given) {
  if (given.is_none()) return kLegacyStream;
  if (!nb::isinstance<nb::int_>(given))
    throw nb::type_error("__dlpack__: stream must be None or an int");
  const auto stream = nb::cast<int64_t>(given);
  if (stream == -1) return std::nullopt;
  if (stream <= 0)
    throw nb::value_error(
        "__dlpack__: stream 0 is ambiguous; use 1 (the default stream), 2 (the thread's own), -1 "
        "(no wait) or a handle");
  return static_cast<uintptr_t>(stream);
}

// PyTorch ends the process for such a tensor.
bool has_negative_strides(const Tensor& tensor) {
  const Layout& layout = tensor.layout();
  return std::any_of(layout.strides.begin(), layout.strides.begin() + layout.shape.rank(),
                     [](int64_t stride) { return stride < 0; });
}

nb::object to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, nb::handle copy) {
  const bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  const bool may_copy = copy.is_none() || must_copy;
  Tensor exported = tensor;
  if (!dl_device.is_none()) {
    const auto [type, ordinal] = nb::cast<std::pair<int, int>>(dl_device);
    if (type == kDlpackCpu && may_copy) exported = on_cpu(tensor);
    if (exported_device(exported) != DlpackDevice{type, ordinal})
      throw nb::buffer_error(("__dlpack__: the tensor is on " + tensor.device().id() +
                              ", which is not the wanted device; use .to()")
                                 .c_str());
  }
  const bool is_cpu = exported_device(exported).type == kDlpackCpu;
  const auto waiting = is_cpu ? std::nullopt : stream_argument(stream);
  const bool is_reversed = has_negative_strides(exported);
  if (is_reversed && !may_copy)
    throw nb::buffer_error("__dlpack__: the tensor has negative strides; use .contiguous()");
  bool is_new = !(exported.device() == tensor.device());
  if (!is_new && (must_copy || is_reversed)) {
    exported = from_bytes(tensor.to_bytes(), tensor.shape(), tensor.dtype(), tensor.device());
    is_new = true;
  }
  // Only a copy may be changed: tensors are values.
  const nb::object view =
      is_new
          ? nb::cast(view_of<nb::array_api>(exported, waiting), nb::rv_policy::reference)
          : nb::cast(view_of<nb::array_api, nb::ro>(exported, waiting), nb::rv_policy::reference);
  return view.attr("__dlpack__")(nb::arg("max_version") = max_version);
}

// --- import
// Arrays of other libraries whose memory we no longer need. A device drops them while it holds its
// lock, under which nothing may wait for Python's lock: a thread that has it may want the device's.
std::mutex& dropped_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::vector<nb::ndarray<nb::ro>*>& dropped() {
  static auto& arrays = *new std::vector<nb::ndarray<nb::ro>*>;
  return arrays;
}

int release_dropped(void*) {
  std::vector<nb::ndarray<nb::ro>*> arrays;
  {
    const std::scoped_lock lock(dropped_mutex());
    arrays.swap(dropped());
  }
  for (const auto* each : arrays) delete each;
  return 0;
}

void drop_later(nb::ndarray<nb::ro>* array) {
  {
    const std::scoped_lock lock(dropped_mutex());
    dropped().push_back(array);
  }
  Py_AddPendingCall(&release_dropped, nullptr);  // if its list is full, the next import does it
}

// The device that holds an array, as its library names it.
DlpackDevice device_of_array(nb::handle array) {
  if (!nb::hasattr(array, "__dlpack_device__")) return {kDlpackCpu, 0};
  const nb::object named = array.attr("__dlpack_device__")();
  const DlpackDevice device{nb::cast<int>(named[0]), nb::cast<int>(named[1])};
  return device.type == kPinnedMemory ? DlpackDevice{kDlpackCpu, 0} : device;
}

// The array as a capsule of DLPack whose values our stream waits for.
nb::object capsule_for(nb::handle array, uintptr_t stream) {
  const nb::object method = array.attr("__dlpack__");
  try {
    return method(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;  // a library that knows no versions
  }
  return method(nb::arg("stream") = stream);
}

nb::ndarray<nb::ro> view_of_array(nb::handle array, const Device& device) {
  nb::ndarray<nb::ro> view;
  const bool is_cpu = device.info().is_cpu;
  if (nb::try_cast(is_cpu ? nb::borrow(array) : capsule_for(array, stream_of(device)), view))
    return view;
  array.attr("__dlpack__")();  // raises the other library's reason, if it has one
  throw nb::type_error("import: the object does not give its array by DLPack");
}

}  // namespace

bool is_array(nb::handle object) {
  return nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__array__");
}

Tensor import_array(nb::handle given) {
  release_dropped(nullptr);
  if (nb::isinstance<Tensor>(given)) return nb::cast<Tensor>(given);
  if (!is_array(given))
    throw nb::type_error("import: the object has neither __dlpack__ nor __array__");
  nb::object array =
      nb::hasattr(given, "__dlpack__") ? nb::borrow(given) : nb::object(given.attr("__array__")());
  // Gradients of other libraries end here.
  if (nb::getattr(array, "requires_grad", nb::bool_(false)).is(nb::bool_(true)))
    array = array.attr("detach")();
  const DlpackDevice place = device_of_array(array);
  const Device device = find_device(place);
  if (!device)
    throw Error(ErrorCode::kNotSupported,
                "import: the array is on device " + std::to_string(place.ordinal) +
                    " of DLPack's type " + std::to_string(place.type) +
                    ", and Prism shares memory with no such device; copy it to the CPU first");
  nb::ndarray<nb::ro> view = view_of_array(array, device);
  const ElementType type = type_of(view.dtype());
  if (view.ndim() > kMaxRank) throw nb::value_error("import: a tensor has at most 8 axes");
  Layout layout;
  int64_t first = 0, last = 0;
  for (size_t axis = 0; axis < view.ndim(); ++axis) {
    const auto length = static_cast<int64_t>(view.shape(axis));
    layout.strides[axis] = view.stride(axis);
    layout.shape.append(length);
    (view.stride(axis) < 0 ? first : last) += (length - 1) * view.stride(axis);
  }
  if (layout.shape.elements() == 0) return empty(layout.shape, type, device);
  const auto* start = static_cast<const std::byte*>(static_cast<const void*>(view.data())) +
                      first * static_cast<int64_t>(type.block_bytes());
  const int64_t elements = last - first + 1;
  const bool is_cpu = device.info().is_cpu;
  Tensor all;
  if (is_cpu && reinterpret_cast<uintptr_t>(start) % type.block_bytes() != 0) {
    all = from_bytes({start, static_cast<size_t>(elements) * type.block_bytes()}, Shape{elements},
                     type, device);  // kernels need aligned elements
  } else if (is_cpu) {
    // Letting the array go needs Python's lock, which nanobind takes.
    all = borrow(device, {start, [view](const std::byte*) mutable { view = {}; }}, elements, type);
  } else {
    auto* kept = new nb::ndarray<nb::ro>(view);
    all = borrow(device, {start, [kept](const std::byte*) { drop_later(kept); }}, elements, type);
  }
  layout.offset = all.layout().offset - first;
  return Tensor(all.node(), all.output(), layout);
}

void bind_exchange(nb::class_<Tensor>& type, nb::module_& m) {
  type.def(
          "is_contiguous", [](const Tensor& t) { return t.layout().is_dense(); },
          "Whether the values are row by row without gaps.")
      .def(
          "stride",
          [](const Tensor& t) {
            const Layout& layout = t.layout();
            nb::list strides;
            for (int axis = 0; axis < layout.shape.rank(); ++axis)
              strides.append(layout.stride(axis));
            return nb::tuple(strides);
          },
          nb::sig("def stride(self) -> tuple[int, ...]"),
          "The distances between the elements of each axis, in elements.");
  type.def("numpy", &to_numpy, nb::sig("def numpy(self) -> typing.Any"),
           "The values as a read-only array of NumPy, without a copy on the CPU. bfloat16 becomes "
           "float32.");
  type.def(
      "__array__", &as_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig(
          "def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any"));
  type.def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, "
                   "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                   "None = None) -> typing.Any"),
           "The memory as a DLPack capsule, without a copy, on the CPU and on CUDA devices. The "
           "stream waits for the values: a handle, 1 for CUDA's default stream, -1 for none.");
  type.def(
      "__dlpack_device__",
      [](const Tensor& t) {
        const DlpackDevice device = exported_device(t);
        return nb::make_tuple(device.type, device.ordinal);
      },
      nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
      "DLPack's type and number of the tensor's device.");
  m.def(
      "from_dlpack",
      [](nb::handle x, nb::handle device, nb::handle copy) {
        const Device place = device_argument(device);
        const Tensor shared = import_array(x);
        if (!copy.is_none() && nb::cast<bool>(copy))
          return from_bytes(shared.to_bytes(), shared.shape(), shared.dtype(),
                            place ? place : shared.device());
        if (!copy.is_none() && place && !(place == shared.device()))
          throw nb::value_error(("from_dlpack: the array is on " + shared.device().id() +
                                 "; it cannot be on " + place.id() + " without a copy")
                                    .c_str());
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
