// Converts devices and capabilities to JSON.
#include "cli/device_json.h"

#include "runtime/counted_device.h"

namespace prism::cli {
namespace {

Json capabilities_json(const ir::Capabilities& c) {
  Json fragments = Json::array();
  for (const ir::FragmentShape& shape : c.fragments) {
    fragments.push_back({{"operand", dtype_name(shape.operand)},
                         {"accumulator", dtype_name(shape.accumulator)},
                         {"m", shape.m},
                         {"n", shape.n},
                         {"k", shape.k}});
  }
  return {{"dialect", c.dialect},
          {"dialect_level", c.dialect_level},
          {"storage_8", c.storage_8},
          {"storage_16", c.storage_16},
          {"storage_f16", c.storage_f16},
          {"storage_bf16", c.storage_bf16},
          {"math_f16", c.math_f16},
          {"math_i64", c.math_i64},
          {"math_f64", c.math_f64},
          {"precise_math", c.precise_math},
          {"dot4", c.dot4},
          {"float_atomics", c.float_atomics},
          {"async_copy", c.async_copy},
          {"dependent_launch", c.dependent_launch},
          {"device_fence", c.device_fence},
          {"subgroup_size", c.subgroup_size},
          {"subgroup_sizes", c.subgroup_sizes},
          {"fragments", fragments},
          {"max_group_size", c.max_group_size},
          {"shared_bytes", c.shared_bytes},
          {"max_buffers", c.max_buffers},
          {"max_binding_bytes", c.max_binding_bytes},
          {"max_groups", c.max_groups}};
}

}  // namespace

Json bytes_json(uint64_t bytes) { return bytes == kUnknownBytes ? Json() : Json(bytes); }

Json device_json(DeviceDriver& device, const DeviceInfo& info) {
  return {{"id", info.id},
          {"name", info.name},
          {"vendor", info.vendor},
          {"card", info.card},
          {"driver", info.driver},
          {"total_bytes", bytes_json(info.total_bytes)},
          {"free_bytes", bytes_json(device.free_bytes())},
          {"unified", info.unified},
          {"software", info.software},
          {"compute_units", device.info().compute_units},
          {"capabilities", capabilities_json(info.capabilities)}};
}

}  // namespace prism::cli
