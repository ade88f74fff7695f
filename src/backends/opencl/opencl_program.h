// A kernel compiled for one device, from its text or from the binary of an earlier run.
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
  // program: of one text, which may hold other kernels too.
  Program(std::shared_ptr<Context> context, std::shared_ptr<const Handle<cl_program>> program,
          std::string entry, bool from_cache);
  // A kernel object with arguments of its own, for a recorded launch.
  Handle<cl_kernel> make_kernel() const;
  cl_kernel kernel() const { return kernel_.get(); }
  // Held from the first argument to the enqueue: a kernel object has one set of arguments.
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

inline constexpr const char* kProgramCache = "opencl";  // the kind of its files in the cache folder

// What a binary is kept under: everything its content depends on.
std::string program_key(const DeviceFacts& facts, const std::string& text);

std::unique_ptr<Program> compile_program(const std::shared_ptr<Context>& context,
                                         const ir::Kernel& lowered);

// Kernels of different names, in one text.
std::vector<std::unique_ptr<ProgramDriver>> compile_programs(
    const std::shared_ptr<Context>& context, std::span<const ir::Kernel> lowered);

// Builds a text; null with *log when the compiler refuses it.
Handle<cl_program> build_text(const Context& context, const std::string& text, std::string* log);

}  // namespace prism::opencl
