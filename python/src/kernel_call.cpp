// Calls of kernels with buffers and parameters by name.
#include "kernel_call.h"

#include <cstring>

#include <nanobind/stl/string.h>

#include "ir/interpreter/interpreter.h"
#include "prism/error.h"

namespace prism::python {
namespace {

// The type of tensors with a buffer's bytes: unsigned integers that tensors lack become signed.
DType tensor_type(const ir::Memory& memory) {
  switch (memory.element) {
    case DType::u16:
      return DType::i16;
    case DType::u32:
      return DType::i32;
    case DType::u64:
      return DType::i64;
    case DType::b1:
      throw Error(ErrorCode::kNotSupported,
                  "kernel: buffer " + memory.name + " has elements of type b1; use u8 or u32");
    default:
      return memory.element;
  }
}

bool is_written(const ir::Memory& memory) { return memory.access != ir::Access::read; }

struct Argument {
  const ir::Memory* memory = nullptr;
  Shape shape;
  std::vector<std::byte> bytes;
};

struct Call {
  std::vector<Argument> buffers;
  std::vector<ParamValue> params;
  std::array<uint32_t, 3> groups = {1, 1, 1};
};

Argument buffer_argument(const ir::Memory& memory, nb::handle given) {
  Argument argument;
  argument.memory = &memory;
  const DType type = tensor_type(memory);
  const bool is_size = PyIndex_Check(given.ptr()) || nb::isinstance<nb::tuple>(given);
  if (memory.access == ir::Access::write && is_size && !nb::isinstance<Tensor>(given)) {
    argument.shape = shape_argument(given);
    argument.bytes.resize(static_cast<size_t>(argument.shape.elements()) * dtype_bytes(type));
    return argument;
  }
  const Tensor values = make_tensor(given, std::nullopt, {}, false);
  argument.shape = values.shape();
  argument.bytes = (values.dtype() == type ? values : values.astype(type)).to_bytes();
  return argument;
}

ParamValue param_argument(const ir::Param& param, nb::handle given) {
  if (param.type == DType::f32) return ParamValue(static_cast<float>(nb::cast<double>(given)));
  if (param.type == DType::i32) return ParamValue(nb::cast<int32_t>(given));
  return ParamValue(nb::cast<uint32_t>(given));
}

std::string signature(const Kernel& kernel) {
  std::string text;
  const auto add = [&](const std::string& name) { text += (text.empty() ? "" : ", ") + name; };
  for (const uint32_t index : kernel.buffers()) add(kernel.memories[index].name);
  for (const ir::Param& each : kernel.params) add(each.name);
  return text;
}

[[noreturn]] void wrong_argument(const Kernel& kernel, const std::string& what) {
  throw nb::type_error(
      ("kernel " + kernel.name + ": " + what + "; its arguments are " + signature(kernel)).c_str());
}

nb::handle take(const Kernel& kernel, const nb::kwargs& arguments, const std::string& name) {
  if (!arguments.contains(name.c_str())) wrong_argument(kernel, "argument " + name + " is missing");
  return PyDict_GetItemString(arguments.ptr(), name.c_str());
}

Call read_call(const Kernel& kernel, nb::handle groups, const nb::kwargs& arguments) {
  Call call;
  const Shape grid = shape_argument(groups);
  if (grid.rank() > 3) throw nb::value_error("kernel: a grid has at most 3 axes");
  for (int axis = 0; axis < grid.rank(); ++axis)
    call.groups[static_cast<size_t>(axis)] = static_cast<uint32_t>(grid[axis]);
  for (const uint32_t index : kernel.buffers()) {
    const ir::Memory& memory = kernel.memories[index];
    call.buffers.push_back(buffer_argument(memory, take(kernel, arguments, memory.name)));
  }
  for (const ir::Param& each : kernel.params)
    call.params.push_back(param_argument(each, take(kernel, arguments, each.name)));
  if (arguments.size() != call.buffers.size() + call.params.size())
    for (const auto& [name, value] : arguments) {
      const std::string text = nb::cast<std::string>(name);
      const std::string known = ", " + signature(kernel) + ", ";
      if (known.find(", " + text + ", ") == std::string::npos)
        wrong_argument(kernel, "there is no argument " + text);
    }
  return call;
}

nb::object written(const Call& call) {
  nb::list results;
  for (const Argument& each : call.buffers)
    if (is_written(*each.memory))
      results.append(from_bytes(each.bytes, each.shape, tensor_type(*each.memory), Device::cpu()));
  return results.size() == 1 ? nb::object(results[0]) : nb::object(nb::tuple(results));
}

}  // namespace

nb::object run_kernel(const Kernel& kernel, nb::handle groups, const Device& given,
                      const nb::kwargs& arguments) {
  Call call = read_call(kernel, groups, arguments);
  const Device device = given ? given : default_device();
  std::vector<Buffer> buffers;
  for (const Argument& each : call.buffers) {
    buffers.push_back(device.allocate(each.bytes.size()));
    device.queue().write(buffers.back(), each.bytes);
  }
  device.queue().launch(device.compile(kernel), call.groups, std::span<const Buffer>(buffers),
                        call.params);
  for (size_t i = 0; i < buffers.size(); ++i)
    if (is_written(*call.buffers[i].memory)) device.queue().read(buffers[i], call.buffers[i].bytes);
  device.queue().wait();
  deliver_warnings();
  return written(call);
}

nb::object interpret_kernel(const Kernel& kernel, nb::handle groups, const nb::kwargs& arguments) {
  Call call = read_call(kernel, groups, arguments);
  std::vector<ir::HostBuffer> buffers;
  for (Argument& each : call.buffers) buffers.push_back({each.bytes.data(), each.bytes.size()});
  std::vector<uint32_t> params;
  for (const ParamValue& each : call.params) params.push_back(each.bits);
  ir::interpret(kernel, call.groups, buffers, params);
  return written(call);
}

}  // namespace prism::python
