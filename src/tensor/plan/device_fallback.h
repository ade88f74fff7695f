// Tensors of a device that was given up (runtime/fallback.h): they and their values go to the one
// in its place when they are next asked for.
#pragma once

#include <memory>

#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism {

// The node says where it belongs now. Its values may still lie on the device that failed.
void settle(Node& node);

// Values that the node had are where it belongs: copied from the device while that answers, else
// from the host data they were made from. What can be computed again has none after this. Throws
// kDeviceLost, with what is lost, where nothing is left of them.
void bring_values(Node& node);

// The values of a tensor that has some, where it belongs.
const std::shared_ptr<Storage>& values_of(const Tensor& tensor);

// Keeps in mind that these values lie on the host as well, where that may ever be needed. Of data
// and files only: what was computed on the host would be held in memory for this alone.
void keep_origin(Storage& values, const std::shared_ptr<Storage>& source, ElementType type,
                 const Layout& layout);

}  // namespace prism
