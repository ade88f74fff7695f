// `prism kernel list`, and the parent of the kernel commands.
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "sample_kernels/sample_library.h"

namespace prism::cli {
namespace {

std::string arguments_text(const ir::Kernel& kernel) {
  std::string text;
  for (const uint32_t index : kernel.buffers()) {
    const ir::Memory& memory = kernel.memories[index];
    text += fmt::format("{}{}{}:{}", text.empty() ? "" : " ",
                        memory.access == ir::Access::read ? "" : "&", memory.name,
                        dtype_name(memory.element));
  }
  for (const ir::Param& param : kernel.params)
    text += fmt::format(" {}={}", param.name, dtype_name(param.type));
  return text;
}

Json kernel_json(const SampleKernel& entry) {
  const ir::Kernel kernel = entry.make();
  Json buffers = Json::array(), params = Json::array();
  for (const uint32_t index : kernel.buffers()) {
    const ir::Memory& memory = kernel.memories[index];
    buffers.push_back({{"name", memory.name},
                       {"type", dtype_name(memory.element)},
                       {"written", memory.access != ir::Access::read}});
  }
  for (const ir::Param& param : kernel.params)
    params.push_back({{"name", param.name}, {"type", dtype_name(param.type)}});
  return {{"name", entry.name},
          {"summary", entry.summary},
          {"group_size", kernel.group_size},
          {"shared_bytes", kernel.shared_bytes()},
          {"buffers", buffers},
          {"params", params}};
}

int list_kernels(bool json) {
  if (json) {
    Json all = Json::array();
    for (const SampleKernel& entry : sample_kernels()) all.push_back(kernel_json(entry));
    std::cout << Json{{"kernels", all}}.dump(2) << "\n";
    return kRight;
  }
  std::vector<std::vector<std::string>> rows;
  for (const SampleKernel& entry : sample_kernels())
    rows.push_back({entry.name, arguments_text(entry.make()), entry.summary});
  std::cout << table({"kernel", "buffers (& written) and parameters", "what it does"}, rows);
  return kRight;
}

}  // namespace

void add_kernel_command(const Command& program) {
  const Command group =
      program.subcommand("kernel", "list, print and run the kernels Prism ships with");
  group.needs_subcommand();
  group.footer(
      "Examples:\n  prism kernel list\n  prism kernel show sum_rows --lang opencl\n  prism kernel "
      "run copy --device cpu");
  const Command list = group.subcommand("list", "every kernel, its arguments and what it does");
  auto json = std::make_shared<bool>(false);
  list.flag("--json", *json, "print JSON");
  list.run([json] { return list_kernels(*json); });
  add_kernel_show_command(group);
  add_kernel_run_command(group);
}

}  // namespace prism::cli
