// What the files of the bindings share: one function for each subject, and conversions of
// arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/ops/elementwise.h"
#include "prism/tensor.h"

namespace prism::python {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void bind_types(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_tensors(nb::module_& m);
void bind_creation(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_nearest(nb::module_& m);
void bind_indexing(nb::class_<Tensor>& type, nb::module_& m);
void bind_exchange(nb::class_<Tensor>& type, nb::module_& m);
void bind_gradients(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_models(nb::module_& m);
void bind_search(nb::module_& m);
void bind_scalars(nb::module_& m);
void bind_modules(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_training(nb::module_& m);
void bind_lora(nb::module_& m);
void bind_program(nb::module_& m);

// --- arguments
// A DType, a name ("float32", "f32", "q4_k"), Python's float, int or bool, or a dtype of NumPy.
// Throws TypeError or ValueError.
ElementType element_type(nb::handle given);
std::optional<ElementType> optional_type(nb::handle given);  // None: nothing
const char* numpy_name(ElementType type);                    // "float32"; block types keep theirs
// A Device, a name, or None for the default device (an empty handle).
Device device_argument(nb::handle given);
Shape shape_argument(nb::handle given);  // an int or a sequence of ints
// A shape given as *args: one sequence, or the lengths themselves.
std::vector<int64_t> lengths_argument(const nb::args& given);
// None: no axes, which means all of them.
Axes axes_argument(nb::handle given);

// A tensor of the data: numbers, nested sequences, tensors, and arrays of others, which share their
// memory if it can be used in place and copy is false.
Tensor make_tensor(nb::handle data, std::optional<ElementType> type, const Device& device,
                   bool copy);
// An array with __dlpack__ or __array__ as a tensor without a copy.
Tensor import_array(nb::handle array);
bool is_array(nb::handle object);

// The second operand of a function. A number may widen `tensor`: a float makes integers floats.
// Nothing if the object is no operand.
std::optional<TensorOrNumber> operand(Tensor& tensor, nb::handle other);

// a - floor(a / b) * b. The sign is that of b, also of zeros and for infinite b.
Tensor remainder(const Tensor& a, const TensorOrNumber& b);

std::string tensor_repr(const Tensor& tensor);
nb::object tensor_item(const Tensor& tensor);

// Turns the warnings that the library gave since the last call into Python's.
void deliver_warnings();

}  // namespace prism::python
