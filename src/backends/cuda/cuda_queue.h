// A stream whose recorded launches may overlap, with cuBLAS products.
#pragma once

#include <memory>

#include "backends/cuda/cublas.h"
#include "backends/gpu_runtime/gpu_queue.h"

namespace prism::cuda {

class CudaQueue final : public gpu::GpuQueue {
 public:
  // overlap: launches in a recording may start before the previous one has ended (programmatic
  // dependent launch).
  CudaQueue(std::shared_ptr<CudaContext> context, std::shared_ptr<Cublas> products, bool overlap);
  ~CudaQueue() override;

  void product(const ProductCall& call) override;
  using gpu::GpuQueue::stream;

 protected:
  Result submit(const gpu::GpuProgram& program, const LaunchCall& call, void** arguments,
                bool after_launch) override;
  std::shared_ptr<void> take_recorded() override;

 private:
  const Api& api_;
  std::shared_ptr<Cublas> products_;
  // Workspaces for immediate products and for the current recording, which takes ownership of its
  // own.
  std::shared_ptr<gpu::GpuMemory> workspace_, recorded_workspace_;
  bool overlap_;
};

}  // namespace prism::cuda
