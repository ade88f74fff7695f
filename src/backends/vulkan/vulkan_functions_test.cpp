// Vulkan results are translated to errors that a program can act on.
#include "backends/vulkan/vulkan_functions.h"

#include <gtest/gtest.h>

#include "prism/error.h"

namespace prism::vulkan {
namespace {

ErrorCode code_of(VkResult result) {
  try {
    check(result, "vulkan:3", "waiting for launches (the last: softmax)");
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("vulkan:3: waiting for launches (the last: softmax)"), std::string::npos)
        << said;
    EXPECT_NE(said.find(result_name(result)), std::string::npos) << said;
    return error.code();
  }
  ADD_FAILURE() << result_name(result) << " went unnoticed";
  return ErrorCode::kIo;
}

TEST(VulkanResults, SayWhatAProgramCanActOn) {
  EXPECT_NO_THROW(check(VK_SUCCESS, "vulkan:3", "nothing"));
  EXPECT_EQ(code_of(VK_ERROR_DEVICE_LOST), ErrorCode::kDeviceLost);
  EXPECT_EQ(code_of(VK_ERROR_OUT_OF_DEVICE_MEMORY), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code_of(VK_ERROR_OUT_OF_HOST_MEMORY), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code_of(VK_ERROR_TOO_MANY_OBJECTS), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code_of(VK_ERROR_INITIALIZATION_FAILED), ErrorCode::kDriver);
  EXPECT_EQ(code_of(static_cast<VkResult>(-123456)), ErrorCode::kDriver);
}

}  // namespace
}  // namespace prism::vulkan
