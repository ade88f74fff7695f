// Programmatic dependent launches and the workspace of products.
#include "backends/cuda/cuda_queue.h"

#include <utility>

#include <fmt/format.h>

namespace prism::cuda {

CudaQueue::CudaQueue(std::shared_ptr<CudaContext> context, std::shared_ptr<Cublas> products,
                     bool overlap)
    : GpuQueue(context), api_(context->api()), products_(std::move(products)), overlap_(overlap) {}

CudaQueue::~CudaQueue() {  // the workspace is in use until then
  if (workspace_)
    quietly(context(), [&](const gpu::Api& api) { api.stream_synchronize(stream()); });
}

Result CudaQueue::submit(const gpu::GpuProgram& program, const LaunchCall& call, void** arguments,
                         bool after_launch) {
  // A launch recorded directly after another may start early: the kernel itself waits before
  // reading. A launch after a copy, or the first of a recording, depends on its predecessor as a
  // whole.
  if (!overlap_ || !after_launch || !program.waits())
    return GpuQueue::submit(program, call, arguments, after_launch);
  LaunchAttribute attribute;
  attribute.id = kProgrammaticStreamSerialization;
  attribute.value.programmatic_serialization = 1;
  const LaunchConfig config{{call.groups[0], call.groups[1], call.groups[2]},
                            {call.kernel->group_size, 1, 1},
                            program.dynamic_shared_bytes(),
                            stream(),
                            &attribute,
                            1};
  return api_.launch_ex(&config, program.function(), arguments, nullptr);
}

void CudaQueue::product(const ProductCall& call) {
  const Current current(context());
  std::shared_ptr<gpu::GpuMemory>& workspace = recording() ? recorded_workspace_ : workspace_;
  if (!workspace) {
    DevicePointer pointer = 0;
    gpu::check(api_, api_.memory_allocate(&pointer, kProductWorkspace),
               "allocating the workspace of products");
    workspace = std::make_shared<gpu::GpuMemory>(shared_context(), pointer, kProductWorkspace);
  }
  const int status =
      products_->run(call.product, gpu::address(*call.a.memory, call.a.offset),
                     gpu::address(*call.b.memory, call.b.offset),
                     gpu::address(*call.c.memory, call.c.offset), workspace->pointer(), stream());
  const std::string work = "the product of " + describe(call.product);
  std::optional<Error> failure;
  if (status != 0)
    failure = Error(ErrorCode::kDriver, fmt::format("{}: {}: cuBLASLt answered status {}",
                                                    context().device(), work, status));
  done(work, std::move(failure));
}

std::shared_ptr<void> CudaQueue::take_recorded() {
  return std::exchange(recorded_workspace_, nullptr);
}

}  // namespace prism::cuda
