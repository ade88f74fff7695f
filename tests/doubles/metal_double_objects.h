// The double's objects and their message dispatch.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "doubles/metal_double.h"

namespace prism::test::metal_double {

using UInteger = unsigned long;
using Selector = const char*;  // one pointer per name

struct Size {
  UInteger width, height, depth;
};

struct Class;

struct Object {
  explicit Object(const Class& of);
  virtual ~Object();
  const Class& isa;
  long references = 1;
};

struct Class {
  std::string name;
  const char* counted;  // the counter of its live objects
  std::map<std::string, void*> methods;
};

template <class Result, class... Arguments>
void* method(Result (*function)(Arguments...)) {
  return reinterpret_cast<void*>(function);
}

using Lock = std::lock_guard<std::recursive_mutex>;
std::recursive_mutex& mutex();

void retain(Object* object);
void release(Object* object);  // nil is allowed
template <class T>
T* autorelease(T* object);
Object* autorelease_object(Object* object);
template <class T>
T* autorelease(T* object) {
  autorelease_object(object);
  return object;
}

struct String : Object {
  explicit String(std::string content = "");
  std::string text;
};

struct Error : Object {
  Error(long number, std::string words);
  long code;
  std::string text;
};

// Sets *error, if the caller passed one, to an error that lives as long as the pool.
void tell(Object** error, long code, const std::string& text);

void misuse(const char* what);  // counted, and reported on stderr

}  // namespace prism::test::metal_double
