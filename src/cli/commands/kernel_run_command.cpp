// `prism kernel run`: runs one kernel on one device, compares it with the interpreter and times it.
#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "ir/interpreter/interpreter.h"
#include "prism/error.h"
#include "runtime/measure/case_run.h"

namespace prism::cli {
namespace {

struct Options {
  std::string name;
  std::string device = "auto";
  uint64_t seed = 1;
  bool full = false;
  bool checked = false;
  bool json = false;
};

struct CaseResult {
  std::string name;
  std::string wrong;        // difference from the reference; empty: none
  bool same_bits = false;   // the outputs equal the interpreter's bit by bit
  std::string interpreter;  // the interpreter's difference from the reference; empty: none
  double microseconds = 0;
  double gigabytes_per_second = 0;
  double gigaflops = 0;
  bool right() const { return wrong.empty() && interpreter.empty(); }
};

// Compares only the buffers that the kernel writes.
bool same_outputs(const ir::Kernel& kernel, const Contents& a, const Contents& b) {
  const std::vector<uint32_t> buffers = kernel.buffers();
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (kernel.memories[buffers[i]].access != ir::Access::read && a[i] != b[i]) return false;
  }
  return true;
}

CaseResult run_one(const Device& device, const ir::Kernel& kernel, const KernelCase& one) {
  CaseResult result;
  result.name = one.name;
  const Contents ours = run_case(device, kernel, one);
  result.wrong = compare(one, kernel, ours);
  const uint32_t subgroup = std::max(1u, device.info().capabilities.subgroup_size);
  const Contents theirs = interpret_case(kernel, one, subgroup == 1 ? 32 : subgroup);
  result.interpreter = compare(one, kernel, theirs);
  result.same_bits = same_outputs(kernel, ours, theirs);

  const Program program = device.compile(kernel);
  const std::vector<Buffer> buffers = upload_case(device, one);
  const std::vector<ParamValue> params = case_params(kernel, one);
  const double seconds = seconds_each(
      device.queue(), [&] { device.queue().launch(program, one.groups, buffers, params); });
  result.microseconds = seconds * 1e6;
  result.gigabytes_per_second = one.work_bytes / seconds * 1e-9;
  result.gigaflops = one.work_operations / seconds * 1e-9;
  return result;
}

std::string verdict(const CaseResult& result) {
  if (!result.interpreter.empty()) return "the interpreter is wrong: " + result.interpreter;
  if (!result.wrong.empty()) return "WRONG: " + result.wrong;
  return result.same_bits ? "right, every bit as the interpreter"
                          : "right, within the tolerance of the reference";
}

void print_text(const Device& device, const std::vector<CaseResult>& results) {
  std::vector<std::vector<std::string>> rows;
  for (const CaseResult& r : results) {
    rows.push_back({r.name, number_text(r.microseconds),
                    r.gigabytes_per_second > 0 ? number_text(r.gigabytes_per_second) : "-",
                    r.gigaflops > 0 ? number_text(r.gigaflops) : "-", verdict(r)});
  }
  std::cerr << fmt::format("{} ({}): {}\n", device.id(), device.name(), device.why());
  std::cout << table({"case", "us", "GB/s", "GFLOP/s", "result"}, rows,
                     [](const std::string& cell, const std::string& padded) {
                       return cell.starts_with("WRONG") ? paint(Colour::red, padded) : padded;
                     });
}

void print_json(const Options& options, const Device& device,
                const std::vector<CaseResult>& results, bool right) {
  Json cases = Json::array();
  for (const CaseResult& r : results) {
    cases.push_back({{"case", r.name},
                     {"right", r.right()},
                     {"detail", r.right() ? "" : verdict(r)},
                     {"same_bits_as_interpreter", r.same_bits},
                     {"microseconds", r.microseconds},
                     {"gigabytes_per_second", r.gigabytes_per_second},
                     {"gigaflops", r.gigaflops}});
  }
  const Json all = {
      {"kernel", options.name}, {"device", device.id()}, {"right", right}, {"cases", cases}};
  std::cout << all.dump(2) << "\n";
}

// Only the CPU's interpreter can check kernels, so "auto" means the CPU here.
Device checking_device(const std::string& name) {
  ir::check_kernels(true);
  const Device device = Device::named(name == "auto" ? "cpu" : name);
  if (!device.info().is_cpu)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel run --checked: {} cannot check kernels, only the CPU can; use "
                            "--device cpu or leave out --checked",
                            device.id()));
  return device;
}

int run_kernel(const Options& options) {
  const SampleKernel& entry = kernel_named(options.name);
  const Device device =
      options.checked ? checking_device(options.device) : Device::named(options.device);
  const ir::Kernel kernel = entry.make();
  std::vector<CaseResult> results;
  for (const KernelCase& one : entry.cases(options.seed, !options.full)) {
    progress(fmt::format("{} on {}: {}", entry.name, device.id(), one.name));
    results.push_back(run_one(device, kernel, one));
  }
  end_progress();
  const bool right = std::ranges::all_of(results, &CaseResult::right);
  if (options.json)
    print_json(options, device, results, right);
  else
    print_text(device, results);
  return right ? kRight : kFailed;
}

}  // namespace

void add_kernel_run_command(const Command& kernel) {
  const Command command =
      kernel.subcommand("run", "run a kernel, compare it with the interpreter, time it");
  auto options = std::make_shared<Options>();
  command.option("name", options->name, "the kernel (`prism kernel list`)").required();
  command
      .option("--device,-d", options->device,
              "auto, cpu, gpu, a backend, or one device such as vulkan:0")
      .shows_default();
  command.option("--seed", options->seed, "of the random inputs").shows_default();
  command.flag("--full", options->full, "the large sizes too; the interpreter takes its time");
  command.flag(
      "--checked", options->checked,
      "on the CPU, and a fault in the kernel is an error that names its line: an index out "
      "of bounds, a read of unwritten memory, a race on shared memory, a barrier that not "
      "all lanes reach");
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "Examples:\n  prism kernel run row_softmax\n  prism kernel run matmul_f32 --device opencl:0 "
      "--json\n  prism kernel run sum_rows --checked");
  command.run([options] { return run_kernel(*options); });
}

}  // namespace prism::cli
