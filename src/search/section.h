// Section: bytes of an index, in memory or in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/huge_pages.h"

namespace prism::search {

// Grown in memory by additions, or a part of a mapped file.
class Section {
 public:
  Section() = default;
  Section(std::shared_ptr<const std::byte> mapped, uint64_t bytes)
      : mapped_(std::move(mapped)), bytes_(bytes) {}
  // A copy of bytes.
  template <class Values>
  static Section of(const Values& values) {
    Section made;
    made.append(std::as_bytes(std::span(values)));
    return made;
  }
  const std::byte* data() const { return mapped_ ? mapped_.get() : own_.data(); }
  bool is_mapped() const { return mapped_ != nullptr; }
  // Points to mapped bytes; copies own ones.
  std::shared_ptr<const std::byte> shared() const {
    if (mapped_) return mapped_;
    const auto copy = std::make_shared<const decltype(own_)>(own_);
    return {copy, copy->data()};
  }
  uint64_t bytes() const { return mapped_ ? bytes_ : own_.size(); }
  std::span<const std::byte> span() const { return {data(), bytes()}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data()), bytes()}; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data());
  }
  template <class T>
  uint64_t count() const {
    return bytes() / sizeof(T);
  }
  void append(std::span<const std::byte> more) {
    own_.insert(own_.end(), more.begin(), more.end());
  }
  template <class T>
  void push(const T& value) {
    append(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  T* change() {  // of own bytes
    return reinterpret_cast<T*>(own_.data());
  }
  void resize(uint64_t bytes, std::byte filled = {}) { own_.resize(bytes, filled); }

 private:
  std::shared_ptr<const std::byte> mapped_;
  uint64_t bytes_ = 0;
  std::vector<std::byte, HugePageAllocator<std::byte>> own_;
};

struct NamedSection {
  std::string name;
  Section section;
};

}  // namespace prism::search
