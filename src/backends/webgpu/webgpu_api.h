// A WebGPU library opened at run time: its functions, and the names and numbers that differ between
// its two flavours.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backends/webgpu/webgpu_abi.h"
#include "base/handle.h"

namespace prism::webgpu {

struct Api {
#define PRISM_F(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
#define PRISM_R(name)                            \
  void (*name##Release)(webgpu::name) = nullptr; \
  Handle<webgpu::name> own(webgpu::name object) const { return {object, name##Release}; }
  PRISM_WEBGPU_FUNCTIONS(PRISM_F, PRISM_F, PRISM_F)
  PRISM_WEBGPU_OBJECTS(PRISM_R)
#undef PRISM_F
#undef PRISM_R

  bool standard = true;  // Flavour::kStandard, else Flavour::kDawn2025
  std::string library;   // file, and version if reported
  Handle<Instance> instance;
  void process_events() const { InstanceProcessEvents(instance.get()); }
  // All adapters that wgpu-native lists, or else the library's default adapter.
  std::vector<Adapter> adapters() const;
};

// Returns null and sets *reason if the file does not open, lacks a function or gives no instance.
std::shared_ptr<const Api> load_api(const std::string& file, std::string* reason);

// The result of a callback. Shared with the library, which may answer after the caller gave up.
struct Answer {
  std::atomic<bool> done{false};
  uint32_t status = 0;
  void* object = nullptr;
  std::string message;
};
enum class Asked { kObject, kMap, kWorkDone };
// The callback for one call; it fills the answer.
CallbackInfo asking(const Api& api, Asked what, const std::shared_ptr<Answer>& answer);

std::string text_of(StringView view);
inline StringView view_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace prism::webgpu
