// Implements keys of kernels and their cache.
#include "runtime/kernel_key.h"

#include <mutex>
#include <unordered_map>

#include "base/cache_folder.h"

namespace prism {
namespace {

struct Keys {
  std::mutex mutex;
  std::unordered_map<const ir::Kernel*, std::string> of;
};

Keys& keys() {
  static auto& keys = *new Keys;
  return keys;
}

std::string hash_of(const ir::Kernel& kernel) { return hash_text(ir::to_text(kernel)); }

}  // namespace

std::string kernel_key(const ir::Kernel& kernel) {
  {
    const std::scoped_lock lock(keys().mutex);
    if (const auto known = keys().of.find(&kernel); known != keys().of.end()) return known->second;
  }
  return hash_of(kernel);
}

void remember_key(const ir::Kernel& kernel) {
  std::string key = hash_of(kernel);
  const std::scoped_lock lock(keys().mutex);
  keys().of.emplace(&kernel, std::move(key));
}

}  // namespace prism
