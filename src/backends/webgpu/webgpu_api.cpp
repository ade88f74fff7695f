#include "backends/webgpu/webgpu_api.h"

#include <fmt/format.h>

#include "base/dynamic_library.h"

namespace prism::webgpu {
namespace {

void fill(void* user, uint32_t status, void* object, StringView message) {
  const std::unique_ptr<std::shared_ptr<Answer>> held(static_cast<std::shared_ptr<Answer>*>(user));
  Answer& answer = **held;
  answer.status = status;
  answer.object = object;
  answer.message = text_of(message);
  answer.done = true;
}

void on_object(uint32_t status, void* object, StringView message, void* user, void*) {
  fill(user, status, object, message);
}
void on_error_scope(uint32_t, uint32_t type, StringView message, void* user, void*) {
  fill(user, type, nullptr, message);
}
void on_map(uint32_t status, StringView message, void* user, void*) {
  fill(user, status, nullptr, message);
}
void on_work_done(uint32_t status, void* user, void*) { fill(user, status, nullptr, {}); }

}  // namespace

std::string text_of(StringView view) {
  if (!view.data) return "";
  return view.length == SIZE_MAX ? std::string(view.data) : std::string(view.data, view.length);
}

CallbackInfo asking(const Api& api, Asked what, const std::shared_ptr<Answer>& answer) {
  CallbackInfo info;
  if (what == Asked::kObject) info.callback = reinterpret_cast<void*>(on_object);
  if (what == Asked::kErrorScope) info.callback = reinterpret_cast<void*>(on_error_scope);
  if (what == Asked::kMap) info.callback = reinterpret_cast<void*>(on_map);
  if (what == Asked::kWorkDone)  // got a message later, and so became like a map's
    info.callback = reinterpret_cast<void*>(on_map);
  if (what == Asked::kWorkDone && !api.standard())
    info.callback = reinterpret_cast<void*>(on_work_done);
  info.user1 = new std::shared_ptr<Answer>(answer);
  return info;
}

std::shared_ptr<const Api> load_api(const std::string& file, std::string* reason) {
  DynamicLibrary library = DynamicLibrary::open_first({file}, reason);
  if (!library) return nullptr;
  auto api = std::make_shared<Api>();
  const bool dawn2025 = library.symbol("wgpuInstanceRequestAdapter2") != nullptr;
  api->flavour = dawn2025 ? Flavour::kDawn2025 : Flavour::kStandard;
  std::string missing;
  const auto load = [&](auto& member, std::string name, const char* suffix, bool needed) {
    name = "wgpu" + name + suffix;
    member = library.function<std::remove_reference_t<decltype(member)>>(name.c_str());
    if (!member && needed && missing.empty()) missing = name;
  };
#define PRISM_F(name, ...) load(api->name, #name, "", true);
#define PRISM_C(name, ...) load(api->name, #name, dawn2025 ? "2" : "", true);
#define PRISM_R(name) load(api->name##Release, #name, "Release", true);
#define PRISM_O(name, ...) load(api->name, #name, "", false);
  PRISM_WEBGPU_FUNCTIONS(PRISM_F, PRISM_C, PRISM_O)
  PRISM_WEBGPU_OBJECTS(PRISM_R)
  if (!missing.empty()) {
    *reason = fmt::format("{} lacks {}: no WebGPU library, or one from before 2025", file, missing);
    return nullptr;
  }
  api->library = file.substr(file.find_last_of('/') + 1);
  if (api->GetVersion) {
    const uint32_t version = api->GetVersion();
    api->library +=
        fmt::format(" {}.{}.{}", version >> 24, version >> 16 & 255, version >> 8 & 255);
  }
  library.keep_open();  // its threads outlive the last handle
  return api;
}

}  // namespace prism::webgpu
