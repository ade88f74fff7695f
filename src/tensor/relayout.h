// Moving tensors between devices: through the host, and for block-quantised types between the
// blocks of files and the CPU and the planes of all other devices.
#pragma once

#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism {

// All of view's elements, which lie dense, from one storage to the other; offsets in bytes. Waits.
void transfer(const Storage& from, uint64_t from_offset, const DeviceView& view, const Storage& to,
              uint64_t to_offset);

}  // namespace prism
