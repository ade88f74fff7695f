// Compiles and runs WGSL text on a WebGPU device.
#include "support/front_ends/wgsl_front_end.h"

#include <cstring>
#include <map>
#include <memory>

namespace prism::test {

WebGpu& webgpu_device(const std::string& library_variable) {
  // Never destroyed: the libraries' threads outlive main.
  static auto* devices = new std::map<std::string, std::unique_ptr<WebGpu>>;
  std::unique_ptr<WebGpu>& device = (*devices)[library_variable];
  if (!device) device = std::make_unique<WebGpu>(require_front_end(library_variable));
  return *device;
}

CompileResult compile_wgsl(const std::string& library_variable, const std::string& text,
                           const std::vector<std::string>& entries) {
  WebGpu& gpu = webgpu_device(library_variable);
  CompileResult result;
  result.log = gpu.errors_of([&] {
    const WebGpu::ShaderModule module = gpu.make_module(text);
    for (const std::string& entry : entries) gpu.make_pipeline(module, entry, nullptr);
  });
  result.ok = result.log.empty();
  return result;
}

CompileResult run_wgsl(const std::string& library_variable, const std::string& text,
                       const std::string& entry, std::array<uint32_t, 3> group_counts,
                       std::vector<WgslBuffer>& buffers, const std::vector<uint32_t>& params) {
  WebGpu& gpu = webgpu_device(library_variable);
  std::vector<webgpu::BindingType> bindings;
  for (const WgslBuffer& buffer : buffers) {
    bindings.push_back(buffer.writable ? webgpu::BindingType::kStorage
                                       : webgpu::BindingType::kReadOnlyStorage);
  }
  if (!params.empty()) bindings.push_back(webgpu::BindingType::kUniform);

  CompileResult result;
  WebGpu::BindGroupLayout layout;
  WebGpu::ComputePipeline pipeline;
  result.log = gpu.errors_of([&] {
    layout = gpu.make_layout(bindings);
    pipeline = gpu.make_pipeline(gpu.make_module(text), entry, &layout);
  });
  if (!result.log.empty()) return result;

  std::vector<WebGpu::Buffer> bound;
  result.log = gpu.errors_of([&] {
    for (const WgslBuffer& buffer : buffers) {
      // Multiples of four words, as Prism's devices allocate them.
      bound.push_back(gpu.make_buffer(
          (buffer.bytes.size() + 15) / 16 * 16,
          webgpu::kUsageStorage | webgpu::kUsageCopySource | webgpu::kUsageCopyTarget));
      gpu.write(bound.back(), buffer.bytes);
    }
    if (!params.empty()) {
      // A uniform block's size is a multiple of 16 bytes.
      std::vector<uint8_t> block((params.size() * 4 + 15) / 16 * 16);
      std::memcpy(block.data(), params.data(), params.size() * 4);
      bound.push_back(
          gpu.make_buffer(block.size(), webgpu::kUsageUniform | webgpu::kUsageCopyTarget));
      gpu.write(bound.back(), block);
    }
    gpu.dispatch(pipeline, layout, bound, group_counts);
  });
  if (!result.log.empty()) return result;

  result.log = gpu.errors_of([&] {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].writable) buffers[i].bytes = gpu.read(bound[i], buffers[i].bytes.size());
    }
  });
  result.ok = result.log.empty();
  return result;
}

}  // namespace prism::test
