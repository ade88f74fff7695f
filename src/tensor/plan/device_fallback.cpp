// Moves the values of tensors from a failed device to its replacement.
#include "tensor/plan/device_fallback.h"

#include <mutex>

#include <fmt/format.h>

#include "prism/error.h"
#include "runtime/fallback.h"
#include "tensor/relayout.h"

namespace prism {

namespace {

std::recursive_mutex& fallback_mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

const HostOrigin* origin_of(const Storage& storage) {
  if (!storage.origin || storage.origin->source->changes != storage.origin->changes) return nullptr;
  return &*storage.origin;
}

// Copies the values to the device; returns null if they cannot be read.
std::shared_ptr<Storage> moved(const Storage& from, const Spec& spec, const Device& to) {
  auto fresh = allocate_storage(to, storage_bytes(spec.shape, spec.type, to));
  if (const HostOrigin* origin = origin_of(from)) {
    transfer(*origin->source, 0, {0, origin->type, origin->layout}, *fresh, 0);
    fresh->origin = *origin;
    return fresh;
  }
  try {
    transfer(from, 0, {0, spec.type, Layout::dense(spec.shape)}, *fresh, 0);
  } catch (const DeviceFailure& failure) {
    if (failure.device() != from.device) throw;
    return nullptr;
  }
  return fresh;
}

}  // namespace

void settle(Node& node) {
  if (!node.device.is_given_up()) return;
  const std::scoped_lock lock(fallback_mutex());
  node.device = node.device.current();
}

void bring_values(Node& node) {
  settle(node);
  for (size_t i = 0; i < node.storage.size(); ++i) {
    if (!node.storage[i] || node.storage[i]->device == node.device) continue;
    const std::scoped_lock lock(fallback_mutex());
    std::shared_ptr<Storage> storage = node.storage[i];
    // Another tensor over the same memory may have moved it already.
    while (storage->moved) storage = storage->moved;
    if (storage->device != node.device) {
      const Device failed = storage->device;
      storage->moved = moved(*storage, node.outputs[i], node.device);
      storage = storage->moved;
      if (!storage && node.op && node.op->changed_inputs() == 0) return node.storage.clear();
      if (!storage) {
        throw Error(
            ErrorCode::kDeviceLost,
            fmt::format("the values of a tensor {}{} were on {} alone, which was lost; "
                        "create it again from its data, or compute it again",
                        node.outputs[i].type.name(), node.outputs[i].shape.text(), failed.id()));
      }
    }
    node.storage[i] = storage;
  }
}

const std::shared_ptr<Storage>& values_of(const Tensor& tensor) {
  bring_values(*tensor.node());
  if (!tensor.is_evaluated()) tensor.eval();
  return tensor.node()->storage[tensor.output()];
}

void keep_origin(Storage& values, const std::shared_ptr<Storage>& source, ElementType type,
                 const Layout& layout) {
  if (!source->is_host() || !source->given || !may_fall_back(values.device)) return;
  values.origin = HostOrigin{source, type, layout, source->changes};
}

}  // namespace prism
