// The table of switchable capabilities and their descriptions.
#include "runtime/capability_switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "lower/lower.h"
#include "prism/error.h"

namespace prism {
namespace {

using ir::Capabilities;

struct Switch {
  const char* name;
  bool (*is_on)(const Capabilities&);
  void (*turn_off)(Capabilities&);
};

// Fragments and async copies read memory in the device's storage format. Where storage is emulated
// with words, they must be lowered too.
void without_storage(Capabilities& capabilities, bool& storage) {
  storage = false;
  capabilities.fragments.clear();
  capabilities.async_copy = false;
}

// Narrow capabilities first: switching off subgroups also switches off fragments.
constexpr Switch kSwitches[] = {
    {"fragments", [](const Capabilities& c) { return !c.fragments.empty(); },
     [](Capabilities& c) { c.fragments.clear(); }},
    {"dot4", [](const Capabilities& c) { return c.dot4; }, [](Capabilities& c) { c.dot4 = false; }},
    {"async_copy", [](const Capabilities& c) { return c.async_copy; },
     [](Capabilities& c) { c.async_copy = false; }},
    {"dependent_launch", [](const Capabilities& c) { return c.dependent_launch; },
     [](Capabilities& c) { c.dependent_launch = false; }},
    {"device_fence", [](const Capabilities& c) { return c.device_fence; },
     [](Capabilities& c) { c.device_fence = false; }},
    {"float_atomics", [](const Capabilities& c) { return c.float_atomics; },
     [](Capabilities& c) { c.float_atomics = false; }},
    {"precise_math", [](const Capabilities& c) { return c.precise_math; },
     [](Capabilities& c) { c.precise_math = false; }},
    {"math_f16", [](const Capabilities& c) { return c.math_f16; },
     [](Capabilities& c) { c.math_f16 = false; }},
    {"storage_f16", [](const Capabilities& c) { return c.storage_f16; },
     [](Capabilities& c) { without_storage(c, c.storage_f16); }},
    {"storage_bf16", [](const Capabilities& c) { return c.storage_bf16; },
     [](Capabilities& c) { without_storage(c, c.storage_bf16); }},
    {"storage_8", [](const Capabilities& c) { return c.storage_8; },
     [](Capabilities& c) { without_storage(c, c.storage_8); }},
    {"storage_16", [](const Capabilities& c) { return c.storage_16; },
     [](Capabilities& c) { without_storage(c, c.storage_16); }},
    {"subgroups", [](const Capabilities& c) { return c.subgroup_size != 0; },
     [](Capabilities& c) {
       c.subgroup_size = 0;
       c.subgroup_sizes.clear();
       c.fragments.clear();
     }},
};

}  // namespace

std::vector<std::string> switchable_capabilities(const Capabilities& capabilities) {
  std::vector<std::string> names;
  for (const Switch& entry : kSwitches) {
    if (entry.is_on(capabilities)) names.emplace_back(entry.name);
  }
  return names;
}

bool is_switchable(const std::string& name) {
  return std::ranges::any_of(kSwitches, [&](const Switch& entry) { return name == entry.name; });
}

void switch_off_capability(Capabilities& capabilities, const std::string& name) {
  std::vector<std::string> names;
  for (const Switch& entry : kSwitches) {
    if (name == entry.name) return entry.turn_off(capabilities);
    names.emplace_back(entry.name);
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("switch_off: \"{}\" is not a capability that can be switched off; use one of {}",
                  name, fmt::join(names, ", ")));
}

bool capability_matters(const ir::Kernel& kernel, const Capabilities& capabilities,
                        const std::string& name) {
  Capabilities without = capabilities;
  switch_off_capability(without, name);
  try {
    return ir::to_text(lower(kernel, capabilities)) != ir::to_text(lower(kernel, without));
  } catch (const Error&) {  // the kernel needs it, or cannot run at all
    return false;
  }
}

std::vector<std::string> describe_capabilities(const Capabilities& c) {
  std::vector<std::string> words;
  const auto add = [&](bool has, const char* text) {
    if (has) words.emplace_back(text);
  };
  add(c.math_f16, "f16 arithmetic");
  add(c.math_i64, "64-bit integers");
  add(c.math_f64, "f64 arithmetic");
  add(c.storage_f16, "f16 storage");
  add(c.storage_bf16, "bf16 storage");
  add(c.storage_8, "8-bit storage");
  add(c.storage_16, "16-bit storage");
  add(c.precise_math, "precise math");
  add(c.dot4, "int8 dot products");
  add(c.float_atomics, "float atomics");
  add(c.async_copy, "async copy");
  add(c.dependent_launch, "dependent launches");
  add(c.device_fence, "device fences");
  if (c.subgroup_size) {
    std::string text = fmt::format("subgroups of {}", c.subgroup_size);
    if (c.subgroup_sizes.size() > 1)
      text += fmt::format(" (offered: {})", fmt::join(c.subgroup_sizes, ", "));
    words.push_back(text);
  }
  if (!c.fragments.empty()) {
    const ir::FragmentShape& first = c.fragments.front();
    words.push_back(fmt::format("{} fragment shapes ({} {}x{}x{} first)", c.fragments.size(),
                                dtype_name(first.operand), first.m, first.n, first.k));
  }
  words.push_back(fmt::format("groups of up to {}", c.max_group_size));
  words.push_back(fmt::format("{} KiB shared memory", c.shared_bytes / 1024));
  return words;
}

}  // namespace prism
