// Copies tensors between devices through the host. Block-quantised types are converted between the
// block layout of files and the CPU and the plane layout of all other devices.
#pragma once

#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism {

// Copies all elements of `view`, which must be contiguous, between storages; offsets in bytes.
// Waits for the copy.
void transfer(const Storage& from, uint64_t from_offset, const DeviceView& view, const Storage& to,
              uint64_t to_offset);

}  // namespace prism
