// Opens libobjc and Metal.
#include "backends/metal/metal_api.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/system/dynamic_library.h"

namespace prism::metal {
namespace {

// Neither is a file on disk: macOS provides both from the dyld cache.
constexpr const char* kObjc = "/usr/lib/libobjc.A.dylib";
constexpr const char* kMetal = "/System/Library/Frameworks/Metal.framework/Metal";

DynamicLibrary open(const char* variable, const char* usual, std::string* reason) {
  const char* named = std::getenv(variable);
  if (!named || !*named) named = usual;
  std::string said;
  DynamicLibrary library = DynamicLibrary::open_first({named}, &said);
  // Objective-C classes stay registered, so the libraries are never closed.
  library.keep_open();
  if (!library && said.size() > 2)
    *reason = fmt::format("{} cannot be opened ({})", named, said.substr(0, said.size() - 2));
  return library;
}

template <class Function>
void get(Function& function, const DynamicLibrary& library, const char* name, std::string* reason) {
  function = reinterpret_cast<Function>(library.symbol(name));
  if (!function && reason->empty()) *reason = fmt::format("{} has no {}", library.name(), name);
}

}  // namespace

std::shared_ptr<const Api> open_api(std::string* reason) {
  const DynamicLibrary objc = open("PRISM_OBJC_LIBRARY", kObjc, reason);
  const DynamicLibrary metal = open("PRISM_METAL_LIBRARY", kMetal, reason);
  if (!objc || !metal) return nullptr;
  Runtime runtime;
  get(runtime.send, objc, "objc_msgSend", reason);
#ifdef __x86_64__
  get(runtime.send_struct, objc, "objc_msgSend_stret", reason);
#endif
  get(runtime.register_name, objc, "sel_registerName", reason);
  get(runtime.get_class, objc, "objc_getClass", reason);
  get(runtime.push_pool, objc, "objc_autoreleasePoolPush", reason);
  get(runtime.pop_pool, objc, "objc_autoreleasePoolPop", reason);
  get(runtime.copy_all_devices, metal, "MTLCopyAllDevices", reason);
  if (!reason->empty()) return nullptr;
  runtime.library = metal.name();
  return std::make_shared<Api>(runtime);
}

std::string Api::text_of(Id string) const {
  const char* text = utf8(string);
  return text ? text : "";
}

std::string Api::error_text(Id of) const {
  const std::string text = text_of(description(of));
  return text.empty() ? "Metal gives no reason" : text;
}

}  // namespace prism::metal
