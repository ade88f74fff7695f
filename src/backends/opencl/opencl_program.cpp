// Programs: text, binary and kernel object.
#include "backends/opencl/opencl_program.h"

#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::opencl {
namespace {

Handle<cl_program> owned(const Context& context, cl_program program) {
  return {program, [api = context.api](cl_program p) { api->clReleaseProgram(p); }};
}

std::string build_log(const Context& context, cl_program program) {
  size_t bytes = 0;
  context.api->clGetProgramBuildInfo(program, context.device, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                                     &bytes);
  std::string log(bytes, '\0');
  if (bytes == 0 ||
      context.api->clGetProgramBuildInfo(program, context.device, CL_PROGRAM_BUILD_LOG, bytes,
                                         log.data(), nullptr) != CL_SUCCESS)
    return "";
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n' || log.back() == ' '))
    log.pop_back();
  return log;
}

// Empty if the driver rejects the binary (another version, or truncated).
Handle<cl_program> build_binary(const Context& context, std::span<const std::byte> binary) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t length = binary.size();
  cl_int accepted = CL_SUCCESS, code = CL_SUCCESS;
  auto program = owned(
      context, context.api->clCreateProgramWithBinary(context.context.get(), 1, &context.device,
                                                      &length, &bytes, &accepted, &code));
  if (code != CL_SUCCESS || accepted != CL_SUCCESS || !program) return {};
  code = context.api->clBuildProgram(program.get(), 1, &context.device,
                                     context.facts.build_options.c_str(), nullptr, nullptr);
  return code == CL_SUCCESS ? std::move(program) : Handle<cl_program>();
}

std::vector<std::byte> binary_of(const Context& context, cl_program program) {
  size_t bytes = 0;
  if (context.api->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes,
                                    nullptr) != CL_SUCCESS ||
      bytes == 0)
    return {};
  std::vector<std::byte> binary(bytes);
  auto* target = reinterpret_cast<unsigned char*>(binary.data());
  if (context.api->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(target), &target,
                                    nullptr) != CL_SUCCESS)
    return {};
  return binary;
}

void check_group_size(const Context& context, const Program& program, const ir::Kernel& lowered) {
  if (context.facts.keeps_group_size) return;
  size_t largest = 0;
  const cl_int code = context.api->clGetKernelWorkGroupInfo(program.kernel(), context.device,
                                                            CL_KERNEL_WORK_GROUP_SIZE,
                                                            sizeof(largest), &largest, nullptr);
  if (code != CL_SUCCESS || largest >= lowered.group_size) return;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: kernel {} has groups of {}; its registers or shared memory allow "
                          "at most {} on this device",
                          context.label(), lowered.name, lowered.group_size, largest));
}

}  // namespace

Program::Program(std::shared_ptr<Context> context,
                 std::shared_ptr<const Handle<cl_program>> program, std::string entry,
                 bool from_cache)
    : context_(std::move(context)),
      program_(std::move(program)),
      entry_(std::move(entry)),
      kernel_(make_kernel()),
      from_cache_(from_cache) {}

Handle<cl_kernel> Program::make_kernel() const {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = context_->api->clCreateKernel(program_->get(), entry_.c_str(), &code);
  check(code, context_->label() + ": looking up kernel " + entry_);
  return {kernel, [api = context_->api](cl_kernel k) { api->clReleaseKernel(k); }};
}

std::string program_key(const DeviceFacts& facts, const std::string& text) {
  return hash_text(facts.identity + "\n" + facts.build_options + "\n" + text);
}

Handle<cl_program> build_text(const Context& context, const std::string& text, std::string* log) {
  const char* begin = text.data();
  const size_t length = text.size();
  cl_int code = CL_SUCCESS;
  auto program = owned(context, context.api->clCreateProgramWithSource(context.context.get(), 1,
                                                                       &begin, &length, &code));
  check(code, context.label() + ": handing over a program");
  code = context.api->clBuildProgram(program.get(), 1, &context.device,
                                     context.facts.build_options.c_str(), nullptr, nullptr);
  *log = build_log(context, program.get());
  if (code == CL_SUCCESS) return program;
  if (code == CL_BUILD_PROGRAM_FAILURE) return {};
  if (log->empty()) *log = fmt::format("{} ({})", code_name(code), code);
  return {};
}

namespace {

// Calls `use` with the text's program: built from a cached binary (cached is true), else from the
// text. If use throws for a binary that lacks a kernel, the text is built.
template <class Use>
void build_cached(const Context& context, const KernelText& text, const ir::Kernel& first,
                  const Use& use) {
  const std::string key = program_key(context.facts, text.text);
  if (const auto cached = read_cached(kProgramCache, key)) {
    try {
      if (auto built = build_binary(context, *cached))
        return use(std::make_shared<const Handle<cl_program>>(std::move(built)), true);
    } catch (const Error&) {
    }
  }
  std::string log;
  auto built = build_text(context, text.text, &log);
  dump_log(text, log);
  if (!built) throw compile_error(context.facts.info, first, text, log);
  if (const auto binary = binary_of(context, built.get()); !binary.empty())
    write_cached(kProgramCache, key, binary);
  use(std::make_shared<const Handle<cl_program>>(std::move(built)), false);
}

}  // namespace

std::unique_ptr<Program> compile_program(const std::shared_ptr<Context>& context,
                                         const ir::Kernel& lowered) {
  const DeviceInfo& info = context->facts.info;
  const PrintedKernel printed = print(lowered, info.capabilities);
  std::unique_ptr<Program> program;
  build_cached(*context, kernel_text(info, lowered, printed.text, "cl"), lowered,
               [&](const auto& built, bool cached) {
                 program = std::make_unique<Program>(context, built, printed.entry, cached);
               });
  check_group_size(*context, *program, lowered);
  return program;
}

std::vector<std::unique_ptr<ProgramDriver>> compile_programs(
    const std::shared_ptr<Context>& context, std::span<const ir::Kernel> lowered) {
  if (lowered.empty()) return {};
  const ir::Capabilities& capabilities = context->facts.info.capabilities;
  const std::string text = print_together({lowered.begin(), lowered.end()}, capabilities);
  std::vector<std::unique_ptr<Program>> programs;
  build_cached(*context, kernel_text(context->facts.info, lowered[0], text, "cl"), lowered[0],
               [&](const auto& built, bool cached) {
                 programs.clear();
                 for (const ir::Kernel& kernel : lowered)
                   programs.push_back(std::make_unique<Program>(
                       context, built, print(kernel, capabilities).entry, cached));
               });
  for (size_t i = 0; i < lowered.size(); ++i) check_group_size(*context, *programs[i], lowered[i]);
  return {std::make_move_iterator(programs.begin()), std::make_move_iterator(programs.end())};
}

}  // namespace prism::opencl
