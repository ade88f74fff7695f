// Finds the printer of a dialect, and defines typical capabilities for each dialect.
#include "print/printer.h"

#include <memory>
#include <set>

#include <fmt/format.h>

#include "print/c_family.h"
#include "print/spirv/spirv.h"
#include "prism/error.h"

namespace prism {

using ir::Capabilities;
using ir::Kernel;

namespace {

struct Dialect {
  const char* name;
  PrintedKernel (*print)(const Kernel&, const Capabilities&);
  std::unique_ptr<CFamily> (*make)(const Kernel&,
                                   const Capabilities&);  // null: one kernel per source
};

constexpr Dialect kDialects[] = {
    {"cuda", print_cuda, make_cuda_printer},
    {"hip", print_hip, make_hip_printer},
    {"opencl", print_opencl, make_opencl_printer},
    {"metal", print_metal, make_metal_printer},
    {"sycl", print_sycl, make_sycl_printer},
    {"wgsl", print_wgsl, nullptr},
    {"spirv", print_spirv, nullptr},
};

const Dialect& find_dialect(const std::string& name) {
  for (const Dialect& dialect : kDialects)
    if (name == dialect.name) return dialect;
  throw Error(ErrorCode::kNotFound, fmt::format("there is no printer \"{}\"; valid names: {}", name,
                                                fmt::join(dialects(), ", ")));
}

}  // namespace

const std::vector<std::string>& dialects() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Dialect& dialect : kDialects) result.emplace_back(dialect.name);
    return result;
  }();
  return names;
}

PrintedKernel print(const Kernel& lowered, const Capabilities& capabilities) {
  return find_dialect(capabilities.dialect).print(lowered, capabilities);
}

PrintedKernel print_cuda(const Kernel& lowered, const Capabilities& capabilities) {
  return print_alone(*make_cuda_printer(lowered, capabilities));
}

PrintedKernel print_hip(const Kernel& lowered, const Capabilities& capabilities) {
  return print_alone(*make_hip_printer(lowered, capabilities));
}

PrintedKernel print_opencl(const Kernel& lowered, const Capabilities& capabilities) {
  return print_alone(*make_opencl_printer(lowered, capabilities));
}

PrintedKernel print_metal(const Kernel& lowered, const Capabilities& capabilities) {
  return print_alone(*make_metal_printer(lowered, capabilities));
}

PrintedKernel print_sycl(const Kernel& lowered, const Capabilities& capabilities) {
  return print_alone(*make_sycl_printer(lowered, capabilities));
}

PrintedKernel print_wgsl(const Kernel& lowered, const Capabilities& capabilities) {
  return print_alone(*make_wgsl_printer(lowered, capabilities));
}

std::string print_together(const std::vector<Kernel>& lowered, const Capabilities& capabilities) {
  const Dialect& dialect = find_dialect(capabilities.dialect);
  if (!dialect.make)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("{} takes one kernel at a time; print each by itself", capabilities.dialect));
  std::string functions;
  std::vector<PreludeItem> prelude;
  std::set<std::string> entries;
  for (const Kernel& kernel : lowered) {
    const std::unique_ptr<CFamily> printer = dialect.make(kernel, capabilities);
    if (!entries.insert(printer->entry()).second)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("two kernels of one text would be called {}; give each its own name",
                              printer->entry()));
    functions += "\n" + printer->function();
    if (prelude.empty()) prelude = printer->prelude();
  }
  return used_prelude(prelude, functions) + functions;
}

Capabilities typical_capabilities(const std::string& dialect) {
  Capabilities c;
  c.dialect = find_dialect(dialect).name;
  c.storage_bf16 = true;
  c.math_i64 = true;
  c.max_buffers = 30;  // Metal's limit; the others allow more
  c.max_binding_bytes = uint64_t{1} << 40;
  c.max_groups = {0x7fffffffu, 65535, 65535};
  c.max_group_size = 1024;
  c.device_fence = dialect != "metal" && dialect != "wgsl";
  const auto subgroups = [&](std::initializer_list<uint32_t> sizes, uint32_t chosen) {
    c.subgroup_size = chosen;
    c.subgroup_sizes = sizes;
  };
  if (dialect == "cuda") {
    c.dialect_level = 90;
    c.math_f64 = c.precise_math = c.dot4 = c.float_atomics = c.async_copy = c.dependent_launch =
        true;
    subgroups({32}, 32);
    c.fragments = {{DType::f16, DType::f32, 16, 16, 16},
                   {DType::bf16, DType::f32, 16, 16, 16},
                   {DType::i8, DType::i32, 16, 16, 32}};
    c.fragment_layout = true;
    c.shared_bytes = 227 << 10;
  } else if (dialect == "hip") {
    c.math_f16 = c.math_f64 = c.float_atomics = true;
    subgroups({64}, 64);
    c.shared_bytes = 64 << 10;
  } else if (dialect == "opencl") {
    c.dialect_level = 300;
    c.math_f16 = c.math_f64 = c.float_atomics = c.dot4 = true;
    subgroups({8, 16, 32}, 16);
    c.shared_bytes = 64 << 10;
  } else if (dialect == "metal") {
    c.math_f16 = true;  // float atomics work on buffers only, so they are lowered
    subgroups({32}, 32);
    c.fragments = {{DType::f16, DType::f32, 16, 16, 16}, {DType::bf16, DType::f32, 16, 16, 16}};
    c.fragment_layout = true;
    c.shared_bytes = 32 << 10;
  } else if (dialect == "sycl") {
    c.math_f16 = c.math_f64 = c.float_atomics = true;
    subgroups({8, 16, 32}, 16);
    c.shared_bytes = 64 << 10;
  } else if (dialect == "spirv") {
    c.dialect_level = spirv::kRoundEven16 | spirv::kRoundEven32 | spirv::kPreserve16 |
                      spirv::kPreserve32 | spirv::kInt8 | spirv::kInt16 | spirv::kFusedMultiplyAdd;
    c.math_f16 = true;
    c.storage_bf16 = false;  // it has no such type: bf16 is lowered to moves of bits
    c.max_groups = {65535, 65535, 65535};
    subgroups({32}, 32);
    c.shared_bytes = 32 << 10;
  } else {  // wgsl
    c.storage_8 = c.storage_16 = c.storage_f16 = c.storage_bf16 = c.narrow_arrays = c.math_i64 =
        false;
    c.raw_atomic_buffers = true;
    c.max_groups = {65535, 65535, 65535};
    c.max_group_size = 256;
    c.max_buffers = 8;  // guaranteed by the interface
    c.max_binding_bytes = 128u << 20;
    c.shared_bytes = 32 << 10;  // the interface guarantees 16 KiB, nearly every adapter has 32
  }
  return c;
}

}  // namespace prism
