// A kernel compiled for one device, from its text or from a cached binary.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/opencl/opencl_device.h"

namespace prism::opencl {

class Program final : public ProgramDriver {
 public:
  // program: built from one text, which may contain other kernels too.
  Program(std::shared_ptr<Context> context, std::shared_ptr<const Handle<cl_program>> program,
          std::string entry, bool from_cache);
  // A new kernel object with its own arguments, for a recorded launch.
  Handle<cl_kernel> make_kernel() const;
  cl_kernel kernel() const { return kernel_.get(); }
  // Held from the first argument to the enqueue, because a kernel object has only one set of
  // arguments.
  std::mutex& arguments_lock() { return arguments_lock_; }
  bool from_cache() const { return from_cache_; }

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<const Handle<cl_program>> program_;
  std::string entry_;
  Handle<cl_kernel> kernel_;
  std::mutex arguments_lock_;
  bool from_cache_;
};

inline constexpr const char* kProgramCache = "opencl";  // subfolder of the cache folder

// The cache key of a binary: everything that its content depends on.
std::string program_key(const DeviceFacts& facts, const std::string& text);

std::unique_ptr<Program> compile_program(const std::shared_ptr<Context>& context,
                                         const ir::Kernel& lowered);

// Compiles kernels with distinct names as one text.
std::vector<std::unique_ptr<ProgramDriver>> compile_programs(
    const std::shared_ptr<Context>& context, std::span<const ir::Kernel> lowered);

// Builds a text; returns null and sets *log if the compiler fails.
Handle<cl_program> build_text(const Context& context, const std::string& text, std::string* log);

}  // namespace prism::opencl
