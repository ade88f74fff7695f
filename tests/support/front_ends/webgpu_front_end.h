// WebGpu: one device of a WebGPU library loaded at run time, with modules, pipelines, buffers and
// synchronous dispatch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/webgpu/webgpu_abi.h"
#include "support/shared_library.h"

namespace prism::test {

namespace webgpu = prism::webgpu;

// Owns one WebGPU object and releases it.
template <typename Object>
class WebGpuHandle {
 public:
  using Release = void (*)(Object);

  WebGpuHandle() = default;
  WebGpuHandle(Object object, Release release) : object_(object), release_(release) {}
  WebGpuHandle(WebGpuHandle&& other) noexcept { *this = std::move(other); }
  WebGpuHandle& operator=(WebGpuHandle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~WebGpuHandle() {
    if (object_ != nullptr) release_(object_);
  }

  Object get() const { return object_; }

 private:
  Object object_ = nullptr;
  Release release_ = nullptr;
};

class WebGpu {
 public:
  // Opens the library and its first adapter, with every limit the adapter offers and, if available,
  // f16 and subgroups. Throws std::runtime_error with the reason if there is no library or device.
  explicit WebGpu(const std::string& library_path);
  ~WebGpu();
  WebGpu(const WebGpu&) = delete;
  WebGpu& operator=(const WebGpu&) = delete;

  const std::string& device_name() const { return device_name_; }
  bool has_f16() const { return has_f16_; }
  bool has_subgroups() const { return has_subgroups_; }
  uint64_t max_binding_bytes() const { return limits_.max_storage_binding_bytes; }
  uint32_t max_shared_bytes() const;
  uint32_t max_group_size() const;

  using ShaderModule = WebGpuHandle<webgpu::ShaderModule>;
  using ComputePipeline = WebGpuHandle<webgpu::ComputePipeline>;
  using BindGroupLayout = WebGpuHandle<webgpu::BindGroupLayout>;
  using Buffer = WebGpuHandle<webgpu::Buffer>;

  // Runs `work` and returns every error it raised, in the library's words; empty if there was none.
  // Objects from a failed call are invalid; using them raises more errors, never a crash.
  std::string errors_of(const std::function<void()>& work);

  ShaderModule make_module(const std::string& wgsl);
  BindGroupLayout make_layout(const std::vector<webgpu::BindingType>& bindings);
  // layout: null derives it from the entry point.
  ComputePipeline make_pipeline(const ShaderModule& module, const std::string& entry,
                                const BindGroupLayout* layout);
  // The size is rounded up to whole words, at least one: WebGPU copies and binds nothing smaller.
  Buffer make_buffer(uint64_t bytes, uint64_t usage);
  void write(const Buffer& buffer, const std::vector<uint8_t>& bytes);
  // Binds the buffers in order, runs the groups, and waits.
  void dispatch(const ComputePipeline& pipeline, const BindGroupLayout& layout,
                const std::vector<Buffer>& buffers, std::array<uint32_t, 3> groups);
  std::vector<uint8_t> read(const Buffer& buffer, uint64_t bytes);

 private:
  struct Functions;

  void open_adapter();
  void open_device();
  // Runs callbacks until `done`; throws std::runtime_error after a minute.
  void wait_until(const bool& done, const char* what);
  void submit(const std::function<void(webgpu::CommandEncoder)>& record);

  SharedLibrary library_;
  webgpu::Flavour flavour_;
  std::unique_ptr<Functions> call_;
  webgpu::Limits limits_;
  std::string device_name_;
  bool has_f16_ = false;
  bool has_subgroups_ = false;
  bool subgroups_need_no_enable_ = false;
  std::vector<uint32_t> features_;
  std::string uncaptured_;
  WebGpuHandle<webgpu::Instance> instance_;
  WebGpuHandle<webgpu::Adapter> adapter_;
  WebGpuHandle<webgpu::Device> device_;
  WebGpuHandle<webgpu::Queue> queue_;
};

}  // namespace prism::test
