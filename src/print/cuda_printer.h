// CudaPrinter, shared by its files: the language, the functions that kernels call, and matrix
// fragments.
#pragma once

#include <string>
#include <vector>

#include "print/fragment_printer.h"

namespace prism {

class CudaPrinter final : public FragmentPrinter {
 public:
  CudaPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
  std::vector<PreludeItem> prelude() const override;

 protected:
  std::string signature() override;
  bool restricted(const ir::Memory& memory) const override;
  std::string leaf(Op op, uint32_t axis) override;
  std::string barrier() override { return "__syncthreads();"; }
  std::string device_fence() override { return "prism_device_fence();"; }
  std::string shared_memory() override;
  std::string shared_array(const ir::Memory& memory, const std::string& name) override;
  std::string bitcast(Type to, Type from, const std::string& text) override;
  std::string load_scalar(const ir::Memory& memory, const std::string& name,
                          const std::string& index) override;
  std::string load_vector_of_words(const ir::Memory& memory, uint32_t width,
                                   const std::string& address) override;
  std::string subgroup_function(const std::string& name, DType type) const override;
  bool special(const Inst& inst) override;
  bool load_at_once(const Inst& inst, const std::string& index, const std::string& stride) override;

 private:
  void async_copy(const Inst& inst);

  bool overlaps_ = false;  // the kernel may start before the previous launch ends
};

// The functions that kernels may call. level: ten times the compute capability.
std::vector<PreludeItem> cuda_prelude(const CTable& table, uint32_t level);
// Those of fragments, from level 80 on. They use functions of cuda_prelude().
std::vector<PreludeItem> cuda_fragment_prelude(const std::string& qualifier);

}  // namespace prism
