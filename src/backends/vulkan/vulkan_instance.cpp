// Opens the Vulkan library and creates an instance, or reports why that failed.
#include "backends/vulkan/vulkan_instance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::vulkan {
namespace {

std::vector<std::string> loader_names() {
#if defined(_WIN32)
  return {"vulkan-1.dll"};
#elif defined(__APPLE__)
  return {"libvulkan.1.dylib",
          "libvulkan.dylib",
          "/usr/local/lib/libvulkan.1.dylib",
          "/opt/homebrew/lib/libvulkan.1.dylib",
          "libMoltenVK.dylib",
          "/usr/local/lib/libMoltenVK.dylib",
          "/opt/homebrew/lib/libMoltenVK.dylib"};
#else
  return {"libvulkan.so.1", "libvulkan.so"};
#endif
}

bool has_layer(PFN_vkGetInstanceProcAddr find, const char* name) {
  const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
      find(nullptr, "vkEnumerateInstanceLayerProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (enumerate(&count, layers.data()) < 0) return false;
  return std::ranges::any_of(
      layers, [&](const auto& layer) { return std::strcmp(layer.layerName, name) == 0; });
}

bool has_extension(PFN_vkGetInstanceProcAddr find, const char* layer, const char* name) {
  const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
      find(nullptr, "vkEnumerateInstanceExtensionProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(layer, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkExtensionProperties> extensions(count);
  if (enumerate(layer, &count, extensions.data()) < 0) return false;
  return std::ranges::any_of(extensions, [&](const auto& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

enum class Validation { off, calls, synchronisation };

Validation wanted_validation() {
  const char* value = std::getenv("PRISM_VULKAN_VALIDATION");
  if (!value || !*value || std::strcmp(value, "0") == 0) return Validation::off;
  if (std::strcmp(value, "sync") == 0) return Validation::synchronisation;
  if (std::strcmp(value, "1") == 0) return Validation::calls;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("PRISM_VULKAN_VALIDATION is \"{}\"; use 0, 1 or sync", value));
}

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr const char* kPortability = "VK_KHR_portability_enumeration";
constexpr VkInstanceCreateFlags kEnumeratePortability =
    0x1;  // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR

}  // namespace

VKAPI_ATTR VkBool32 VKAPI_CALL
Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                     const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto* self = static_cast<Instance*>(user);
  const std::scoped_lock lock(self->mutex_);
  self->complaints_.emplace_back(data->pMessage ? data->pMessage : "");
  return VK_FALSE;
}

std::shared_ptr<Instance> Instance::create(const std::vector<std::string>& libraries,
                                           Absence* absence) {
  auto self = std::make_shared<Instance>();
  std::string said;
  const std::vector<std::string> names = libraries.empty() ? loader_names() : libraries;
  self->library_ = DynamicLibrary::open_first(names, &said);
  if (!self->library_) {
    absence->reason = fmt::format("{} cannot be opened", names.front());
    absence->next_step =
        "install the Vulkan loader and a driver (Debian/Ubuntu: apt install libvulkan1 "
        "mesa-vulkan-drivers)";
    return nullptr;
  }
  self->library_.keep_open();
  const auto find = self->library_.function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr");
  const auto create =
      find ? reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"))
           : PFN_vkCreateInstance{};
  if (!create) {
    absence->reason = fmt::format("{} is not a Vulkan library", self->library_.name());
    absence->next_step = "reinstall the Vulkan loader";
    return nullptr;
  }

  uint32_t version = VK_API_VERSION_1_0;
  if (const auto ask = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
          find(nullptr, "vkEnumerateInstanceVersion")))
    ask(&version);
  self->found_ = fmt::format("{} {}.{}.{}", self->library_.name(), VK_API_VERSION_MAJOR(version),
                             VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
  if (version < VK_API_VERSION_1_1) {
    absence->reason = fmt::format("{} is older than Vulkan 1.1", self->found_);
    absence->next_step = "update the Vulkan loader and the driver";
    return nullptr;
  }

  std::vector<const char*> layers, extensions;
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "prism";
  // The newest version that Prism supports; a device may offer less.
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (has_extension(find, nullptr, kPortability)) {
    extensions.push_back(kPortability);
    info.flags |= kEnumeratePortability;
  }
  const Validation wanted = wanted_validation();
  const bool validate = wanted != Validation::off && has_layer(find, kValidationLayer);
  const VkValidationFeatureEnableEXT synchronisation =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  if (validate) {
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  if (validate && wanted == Validation::synchronisation) {
    extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &synchronisation;
    info.pNext = &features;
  }
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  VkInstance instance = VK_NULL_HANDLE;
  const VkResult result = create(&info, nullptr, &instance);
  if (result != VK_SUCCESS) {
    const bool none = result == VK_ERROR_INCOMPATIBLE_DRIVER;
    absence->reason =
        none ? fmt::format("{} finds no driver", self->found_)
             : fmt::format("{}: making an instance failed: {}", self->found_, result_name(result));
    absence->next_step = none ? "install your GPU's Vulkan driver (Debian/Ubuntu: apt install "
                                "mesa-vulkan-drivers, or "
                                "the vendor's own)"
                              : "run vulkaninfo to see what the loader says";
    return nullptr;
  }
  try {
    self->call_.load(find, instance);
  } catch (const Error& error) {
    absence->reason = error.what();
    absence->next_step = "update the Vulkan loader";
    return nullptr;
  }
  Instance* raw = self.get();
  self->instance_ =
      Handle<VkInstance>(instance, [raw](VkInstance i) { raw->call_.DestroyInstance(i, nullptr); });

  if (validate && self->call_.CreateDebugUtilsMessengerEXT) {
    VkDebugUtilsMessengerCreateInfoEXT messages{};
    messages.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messages.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messages.pfnUserCallback = &Instance::on_message;
    messages.pUserData = raw;
    VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
    if (self->call_.CreateDebugUtilsMessengerEXT(instance, &messages, nullptr, &messenger) ==
        VK_SUCCESS) {
      self->messenger_ =
          Handle<VkDebugUtilsMessengerEXT>(messenger, [raw, instance](VkDebugUtilsMessengerEXT m) {
            raw->call_.DestroyDebugUtilsMessengerEXT(instance, m, nullptr);
          });
    }
  }
  return self;
}

std::vector<VkPhysicalDevice> Instance::physical_devices() const {
  uint32_t count = 0;
  if (call_.EnumeratePhysicalDevices(instance_.get(), &count, nullptr) < 0) return {};
  std::vector<VkPhysicalDevice> devices(count);
  if (call_.EnumeratePhysicalDevices(instance_.get(), &count, devices.data()) < 0) return {};
  devices.resize(count);
  return devices;
}

void Instance::throw_complaints() {
  std::vector<std::string> complaints;
  {
    const std::scoped_lock lock(mutex_);
    complaints.swap(complaints_);
  }
  if (complaints.empty()) return;
  throw Error(ErrorCode::kDriver, fmt::format("the validation layer found {} errors, the first: {}",
                                              complaints.size(), complaints.front()));
}

}  // namespace prism::vulkan
