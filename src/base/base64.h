// Decodes base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace prism {

// Nothing if a character is none of base64's. Padding and line feeds are left out.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace prism
