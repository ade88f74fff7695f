// Device facts from SYCL, and kernels as text for its run-time compiler, which caches its output in
// the cache folder.
#include "backends/sycl/plugin/sycl_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::sycl_plugin {
namespace {

namespace experimental = sycl::ext::oneapi::experimental;

// Best first. 16 comes before 32 because Intel's CPU compiler multiplies wrongly in subgroups of 32
// (seen in 2026.22: 21168 * 31 in the kernel many_groups).
constexpr uint32_t kPreferredSubgroups[] = {16, 32, 8, 64};

// PCI address or "uuid:..." if SYCL reports it, else the id.
std::string card_of(const sycl::device& device, const std::string& id) {
  if (device.has(sycl::aspect::ext_intel_pci_address))
    return device.get_info<sycl::ext::intel::info::device::pci_address>();
  if (!device.is_gpu() || !device.has(sycl::aspect::ext_intel_device_info_uuid)) return id;
  std::string text = "uuid:";
  for (const unsigned char byte : device.get_info<sycl::ext::intel::info::device::uuid>())
    text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

Device::Device(const sycl::device& device, size_t number) : opened_(*new Opened{device, {}}) {
  namespace told = sycl::info::device;
  info_.id = fmt::format("sycl:{}", number);
  info_.backend = "sycl";
  info_.name = device.get_info<told::name>();
  info_.vendor = device.get_info<told::vendor>();
  info_.card = card_of(device, info_.id);
  info_.driver = fmt::format("{} {}", device.get_platform().get_info<sycl::info::platform::name>(),
                             device.get_info<told::driver_version>());
  info_.total_bytes = device.get_info<told::global_mem_size>();
  info_.unified = info_.software = device.is_cpu();
  info_.compute_units = device.get_info<told::max_compute_units>();
  ir::Capabilities& c = info_.capabilities;
  c.dialect = "sycl";
  c.storage_bf16 = c.math_i64 = c.float_atomics = c.precise_math = true;
  c.math_f16 = device.has(sycl::aspect::fp16);
  c.math_f64 = device.has(sycl::aspect::fp64);
  c.device_fence = std::ranges::count(device.get_info<told::atomic_fence_scope_capabilities>(),
                                      sycl::memory_scope::device) > 0;
  c.max_group_size =
      static_cast<uint32_t>(std::min<size_t>(device.get_info<told::max_work_group_size>(), 1024));
  c.shared_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(device.get_info<told::local_mem_size>(), 1 << 20));
  c.max_buffers = 64;  // 8 bytes each, in at least 1 KiB of arguments
  c.max_binding_bytes = device.get_info<told::max_mem_alloc_size>();
  c.max_groups = {0x7fffffffu / std::max(1u, c.max_group_size), 65535, 65535};
  for (const size_t size : device.get_info<told::sub_group_sizes>())
    c.subgroup_sizes.push_back(static_cast<uint32_t>(size));
  for (const uint32_t size : kPreferredSubgroups)
    if (c.subgroup_size == 0 && std::ranges::count(c.subgroup_sizes, size)) c.subgroup_size = size;
}

Error Device::error_of(const sycl::exception& error, const std::string& doing) const {
  ErrorCode code = ErrorCode::kDriver;
  const std::string words = error.what();
  if (error.code() == sycl::errc::memory_allocation) code = ErrorCode::kOutOfMemory;
  if (words.find("DEVICE_LOST") != std::string::npos) code = ErrorCode::kDeviceLost;
  return Error(code, fmt::format("{}: {}: {}", label(), doing, words));
}

uint64_t Device::told_free_bytes() {
  return call("asking for its free memory", [&]() -> uint64_t {
    if (!opened_.device.has(sycl::aspect::ext_intel_free_memory)) return 0;
    return opened_.device.get_info<sycl::ext::intel::info::device::free_memory>();
  });
}

std::unique_ptr<MemoryDriver> Device::take(uint64_t bytes, std::string* why) {
  void* const address = call(fmt::format("allocating {} bytes", bytes), [&] {
    return sycl::malloc_device(bytes, opened_.device, opened_.shared());
  });
  if (address) return std::make_unique<Memory>(*this, bytes, address);
  *why = "SYCL gives none";
  return nullptr;
}

std::vector<std::unique_ptr<ProgramDriver>> Device::compile_together(
    std::span<const ir::Kernel> lowered) {
  if (lowered.empty()) return {};
  const bool one = lowered.size() == 1;
  const std::string printed =
      one ? print(lowered[0], info_.capabilities).text
          : print_together({lowered.begin(), lowered.end()}, info_.capabilities);
  const KernelText text = kernel_text(info_, lowered[0], printed, "sycl.cpp");
  // The compiler ignores the pragma against contraction. Its SYCL header is precompiled once
  // instead of for every text, which reduces the time per kernel from 2 s to 1.35 s.
  std::vector<std::string> options = {"-ffp-contract=off"};
  if (const auto cached = cache_subfolder("sycl"); !cached.empty())
    options.push_back("--persistent-auto-pch=" + cached.string());
  // The CPU compiler's pass for values that live across barriers drops float negations and integer
  // complements (seen in 2026.22).
  if (info_.software) options.emplace_back("-DPRISM_HIDE_NEGATIONS");
  std::string log;
  std::vector<std::unique_ptr<ProgramDriver>> programs;
  const auto build = [&] {
    auto source = experimental::create_kernel_bundle_from_source(
        opened_.shared(), experimental::source_language::sycl, text.text);
    auto bundle = experimental::build(source, std::vector<sycl::device>{opened_.device},
                                      experimental::properties{experimental::build_options{options},
                                                               experimental::save_log{&log}});
    for (const ir::Kernel& kernel : lowered)
      programs.push_back(std::make_unique<Program>(
          bundle.ext_oneapi_get_kernel(print(kernel, info_.capabilities).entry)));
  };
  try {
    build();
  } catch (const sycl::exception& error) {
    log += error.what();
    dump_log(text, log);
    if (error.code() == sycl::errc::build) throw compile_error(info_, lowered[0], text, log);
    throw error_of(error, "compiling " + lowered[0].name);
  }
  dump_log(text, log);
  return programs;
}

std::unique_ptr<ProgramDriver> Device::compile(const ir::Kernel& lowered) {
  return std::move(compile_together(std::span(&lowered, 1))[0]);
}

}  // namespace prism::sycl_plugin
