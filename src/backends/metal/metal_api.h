// The Objective-C runtime and the Metal framework, opened at run time; messages appear as C++
// calls.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "backends/metal/metal_abi.h"
#include "base/handle.h"

namespace prism::metal {

// One message with its argument types; calls objc_msgSend through the matching function type.
template <class Result, class... Arguments>
class Message {
 public:
  Message(const Runtime& runtime, const char* name)
      : send_(runtime.send), selector_(runtime.register_name(name)) {
#ifdef __x86_64__
    constexpr bool kInMemory = sizeof(std::conditional_t<std::is_void_v<Result>, int, Result>) > 16;
    if (kInMemory) send_ = runtime.send_struct;
#endif
  }
  Result operator()(Id to, Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Id, Selector, Arguments...)>(send_)(to, selector_,
                                                                           arguments...);
  }

 private:
  void* send_;
  Selector selector_;
};

struct Api : Messages<Message> {
  using Messages::Messages;

  Handle<Id> own(Id object) const {
    return {object, [this](Id o) { release(o); }};
  }
  // Autoreleased results live until the enclosing pool ends, unless they are kept.
  Handle<void*> pool() const { return {runtime.push_pool(), runtime.pop_pool}; }
  Handle<Id> keep(Id object) const { return own(retain(object)); }
  Handle<Id> make_string(const std::string& text) const {
    return own(init_text(allocate(runtime.get_class("NSString")), text.c_str()));
  }
  std::string text_of(Id string) const;
  std::string error_text(Id of) const;
  bool can(Id object, const char* message) const {
    return responds(object, runtime.register_name(message));
  }
};

// Opens both libraries: the system's, or those named by PRISM_OBJC_LIBRARY and PRISM_METAL_LIBRARY.
// Returns null and sets *reason on failure.
std::shared_ptr<const Api> open_api(std::string* reason);

}  // namespace prism::metal
