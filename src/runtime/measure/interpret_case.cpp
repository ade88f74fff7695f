// Runs one case of a library kernel in the interpreter.
#include "ir/interpreter/interpreter.h"
#include "runtime/measure/case_run.h"

namespace prism {

Contents interpret_case(const ir::Kernel& kernel, const KernelCase& one, uint32_t subgroup_size) {
  Contents contents = one.buffers;
  std::vector<ir::HostBuffer> buffers;
  for (auto& content : contents) buffers.push_back({content.data(), content.size()});
  ir::InterpretOptions options;
  options.subgroup_size = subgroup_size;
  ir::interpret(kernel, one.groups, buffers, one.params, options);
  return contents;
}

}  // namespace prism
