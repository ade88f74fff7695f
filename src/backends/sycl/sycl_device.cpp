// Memory, and kernels as text for SYCL's run-time compiler, which keeps what it made in the cache
// folder.
#include "backends/sycl/sycl_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cache.h"
#include "base/host_memory.h"
#include "print/printer.h"
#include "runtime/compile_error.h"

namespace prism::sycl_backend {

Device::Device(std::shared_ptr<const Plugin> plugin, size_t number, DeviceInfo info)
    : plugin_(std::move(plugin)), number_(number), info_(std::move(info)) {}

void Device::check(int code, const std::string& doing) const {
  if (code == kPrismSyclDone) return;
  const ErrorCode kind = code == kPrismSyclMemory ? ErrorCode::kOutOfMemory
                         : code == kPrismSyclLost ? ErrorCode::kDeviceLost
                                                  : ErrorCode::kDriver;
  throw Error(kind, fmt::format("{} ({}): {}: {}", info_.id, info_.name, doing, api().message()));
}

uint64_t Device::free_bytes() {
  if (const uint64_t told = api().free_bytes(number_)) return told;
  const uint64_t used = std::min(info_.total_bytes, allocated_bytes.load());
  const uint64_t left = info_.total_bytes - used;
  return info_.unified ? std::min(left, host_memory().available_bytes) : left;
}

std::unique_ptr<MemoryDriver> Device::allocate(uint64_t bytes) {
  // Buffers are read in words and in fours of them, whatever their length.
  const uint64_t rounded = std::max<uint64_t>(16, (bytes + 15) / 16 * 16);
  void* address = nullptr;
  const int code =
      rounded > free_bytes() ? kPrismSyclMemory : api().allocate(number_, rounded, &address);
  if (code == kPrismSyclMemory)
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("allocate on {} ({}): {} bytes asked, {} bytes free of {}", info_.id,
                            info_.name, bytes, free_bytes(), info_.total_bytes));
  check(code, fmt::format("allocating {} bytes", bytes));
  allocated_bytes += bytes;
  return std::make_unique<Memory>(shared_from_this(), address, bytes);
}

Memory::Memory(std::shared_ptr<Device> device, void* address, uint64_t bytes)
    : device_(std::move(device)), address_(address), bytes_(bytes) {}

Memory::~Memory() {
  device_->api().release_memory(device_->number(), address_);
  device_->allocated_bytes -= bytes_;
}

std::vector<std::unique_ptr<ProgramDriver>> Device::compile_together(
    std::span<const ir::Kernel> lowered) {
  if (lowered.empty()) return {};
  const bool one = lowered.size() == 1;
  const std::string printed =
      one ? print(lowered[0], info_.capabilities).text
          : print_together({lowered.begin(), lowered.end()}, info_.capabilities);
  const KernelText text = kernel_text(info_, lowered[0], printed, "sycl.cpp");
  std::vector<std::string> entries;
  for (const ir::Kernel& kernel : lowered)
    entries.push_back(print(kernel, info_.capabilities).entry);
  std::vector<const char*> names;
  for (const std::string& entry : entries) names.push_back(entry.c_str());
  // The compiler overlooks the pragma against contraction. SYCL's header, which it would read anew
  // for every text, is kept in its compiled form: 1.35 s for a kernel where it was 2.
  const std::string kept = "--persistent-auto-pch=" + (cache_folder() / "sycl").string();
  // The CPU's pass over values that live across barriers loses a float's negation and an integer's
  // complement (seen in 2026.22).
  const char* const options[] = {"-ffp-contract=off", kept.c_str(),
                                 info_.software ? "-DPRISM_HIDE_NEGATIONS" : nullptr, nullptr};
  std::vector<void*> kernels(entries.size(), nullptr);
  const char* log = "";
  const int code = api().compile(number_, text.text.c_str(), options, names.data(), names.size(),
                                 kernels.data(), &log);
  std::string words = log;
  if (code == kPrismSyclBuild) words += api().message();
  dump_log(text, words);
  if (code == kPrismSyclBuild) throw compile_error(info_, lowered[0], text, words);
  check(code, "compiling " + lowered[0].name);
  std::vector<std::unique_ptr<ProgramDriver>> programs;
  for (void* kernel : kernels)
    programs.push_back(std::make_unique<Program>(shared_from_this(), kernel));
  return programs;
}

std::unique_ptr<ProgramDriver> Device::compile(const ir::Kernel& lowered) {
  return std::move(compile_together(std::span(&lowered, 1))[0]);
}

std::unique_ptr<QueueDriver> Device::make_queue() { return make_sycl_queue(shared_from_this()); }

}  // namespace prism::sycl_backend
