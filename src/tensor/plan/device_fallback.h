// Moves tensors away from a device that was given up (runtime/fallback.h): they and their values
// move to the replacement device when next used.
#pragma once

#include <memory>

#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism {

// Updates the node's device. Its values may still be on the device that failed.
void settle(Node& node);

// Moves the node's values to the node's device: copied from the old device while it still answers,
// otherwise from the host data they came from. Drops values that can be recomputed. Throws
// kDeviceLost, naming the tensor, if they cannot be recovered.
void bring_values(Node& node);

// The values of an evaluated tensor, on the tensor's device.
const std::shared_ptr<Storage>& values_of(const Tensor& tensor);

// Records that the host holds the same values, if their device may be given up. Only for data and
// files: a result computed on the host would be held in memory for this purpose alone.
void keep_origin(Storage& values, const std::shared_ptr<Storage>& source, ElementType type,
                 const Layout& layout);

}  // namespace prism
