// Loads a WebGPU library, detects its flavour and lists its adapters.
#include "backends/webgpu/webgpu_api.h"

#include <fmt/format.h>

#include "base/system/dynamic_library.h"

namespace prism::webgpu {
namespace {

// Vulkan, Metal and Direct3D 12; OpenGL would list the same cards again.
constexpr uint64_t kInterfaces = 1 | 4 | 8;

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
  info.callback = reinterpret_cast<void*>(on_map);
  if (what == Asked::kObject) info.callback = reinterpret_cast<void*>(on_object);
  if (what == Asked::kWorkDone && !api.standard)  // has no message parameter in this flavour
    info.callback = reinterpret_cast<void*>(on_work_done);
  info.user1 = new std::shared_ptr<Answer>(answer);
  return info;
}

std::shared_ptr<const Api> load_api(const std::string& file, std::string* reason) {
  DynamicLibrary library = DynamicLibrary::open_first({file}, reason);
  if (!library) return nullptr;
  auto api = std::make_shared<Api>();
  api->standard = library.symbol("wgpuInstanceRequestAdapter2") == nullptr;
  FunctionTable get(library);
#define PRISM_F(name, ...) get(api->name, "wgpu" #name);
#define PRISM_C(name, ...) get(api->name, api->standard ? "wgpu" #name : "wgpu" #name "2");
#define PRISM_R(name) get(api->name##Release, "wgpu" #name "Release");
#define PRISM_O(name, ...) get(api->name, "wgpu" #name, false);
  PRISM_WEBGPU_FUNCTIONS(PRISM_F, PRISM_C, PRISM_O)
  PRISM_WEBGPU_OBJECTS(PRISM_R)
  if (!get.missing().empty()) {
    *reason =
        fmt::format("{} lacks {}: no WebGPU library, or one from before 2025", file, get.missing());
    return nullptr;
  }
  api->library = file.substr(file.find_last_of('/') + 1);
  if (const uint32_t version = api->GetVersion ? api->GetVersion() : 0)
    api->library +=
        fmt::format(" {}.{}.{}", version >> 24, version >> 16 & 255, version >> 8 & 255);
  library.keep_open();  // its threads outlive the last handle
  const InstanceExtras extras{.backends = kInterfaces};
  const InstanceDescriptor descriptor{&extras.chain};
  api->instance = api->own(api->CreateInstance(api->GetVersion ? &descriptor : nullptr));
  if (!api->instance) *reason = file + " cannot create a WebGPU instance";
  return api->instance ? api : nullptr;
}

std::vector<Adapter> Api::adapters() const {
  std::vector<Adapter> all;
  if (InstanceEnumerateAdapters) {
    const EnumerateOptions options{nullptr, kInterfaces};
    all.resize(InstanceEnumerateAdapters(instance.get(), &options, nullptr));
    all.resize(InstanceEnumerateAdapters(instance.get(), &options, all.data()));
  } else {
    const auto answer = std::make_shared<Answer>();
    InstanceRequestAdapter(instance.get(), nullptr, asking(*this, Asked::kObject, answer));
    for (int round = 0; !answer->done && round < 1'000'000; ++round) process_events();
    if (answer->object) all.push_back(static_cast<Adapter>(answer->object));
  }
  return all;
}

}  // namespace prism::webgpu
