// One SYCL device: its capabilities, memory and programs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sycl/sycl.hpp>

#include "runtime/counted_device.h"

namespace prism::sycl_plugin {

// A device and the context shared by all objects on it. Never freed: SYCL shuts down before the
// last device.
struct Opened {
  sycl::device device;
  std::optional<sycl::context> context;
  sycl::context& shared() {
    if (!context) context.emplace(device);
    return *context;
  }
};

class Device final : public CountedDevice {
 public:
  Device(const sycl::device& device, size_t number);
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::vector<std::unique_ptr<ProgramDriver>> compile_together(
      std::span<const ir::Kernel> lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;

  Opened& opened() const { return opened_; }
  // Runs the work and converts SYCL exceptions to errors. doing: "launching add".
  template <class Work>
  auto call(const std::string& doing, const Work& work) const {
    try {
      return work();
    } catch (const sycl::exception& error) {
      throw error_of(error, doing);
    }
  }

 protected:
  std::unique_ptr<MemoryDriver> take(uint64_t bytes, std::string* why) override;
  uint64_t told_free_bytes() override;

 private:
  Error error_of(const sycl::exception& error, const std::string& doing) const;
  Opened& opened_;
};

struct Memory final : CountedMemory {
  Memory(Device& device, uint64_t bytes, void* the_address)
      : CountedMemory(device, bytes),
        opened(device.opened()),
        address(static_cast<std::byte*>(the_address)) {}
  ~Memory() override { sycl::free(address, opened.shared()); }
  Opened& opened;
  std::byte* address;
};

struct Program final : ProgramDriver {
  explicit Program(sycl::kernel the_kernel) : kernel(std::move(the_kernel)) {}
  sycl::kernel kernel;
};

}  // namespace prism::sycl_plugin
