// Streams the elements of a converted file's tensors.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "llm/convert/planned_tensors.h"
#include "prism/element_type.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

// Gives the elements, encoded as `type`, to the sink in order, some megabytes at a time.
void produce(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
             const std::function<void(std::span<const std::byte>)>& sink);

}  // namespace prism::llm
