// Handle: a move-only owner of one driver handle, parameterised by its type and its free function.
#pragma once

#include <functional>
#include <utility>

namespace prism {

// Free: void(T). A zero value means "no handle".
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(T value, std::function<void(T)> free) : value_(value), free_(std::move(free)) {}
  Handle(Handle&& other) noexcept
      : value_(std::exchange(other.value_, T{})), free_(std::move(other.free_)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, T{});
      free_ = std::move(other.free_);
    }
    return *this;
  }
  ~Handle() { reset(); }
  void reset() {
    if (value_ != T{} && free_) free_(value_);
    value_ = T{};
  }
  T get() const { return value_; }
  explicit operator bool() const { return value_ != T{}; }

 private:
  T value_{};
  std::function<void(T)> free_;
};

}  // namespace prism
