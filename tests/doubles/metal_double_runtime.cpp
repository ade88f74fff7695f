// The double's Objective-C runtime: messages, classes, reference counts, autorelease pools.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>
#include <vector>

#include "doubles/metal_double_objects.h"

namespace prism::test::metal_double {
namespace {

struct State {
  Settings settings;
  std::map<std::string, long long> counters;
  std::set<Object*> living;
  std::set<std::string> selectors;
};

void apply(Settings* to, const std::string& text) {
  const std::map<std::string, int*> numbers = {{"devices", &to->devices},
                                               {"family", &to->family},
                                               {"unified", &to->unified},
                                               {"macos", &to->macos},
                                               {"lanes", &to->lanes},
                                               {"threads", &to->threads},
                                               {"fail_compile", &to->fail_compile},
                                               {"wrong_results", &to->wrong_results}};
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "1" : part.substr(equals + 1);
    const size_t last = value.rfind('/');  // message names contain colons
    if (name == "memory")
      to->memory = to->max_buffer = std::atoll(value.c_str());
    else if (name == "max_buffer")
      to->max_buffer = std::atoll(value.c_str());
    else if (name == "crash")
      to->crash_name = value;
    else if (name == "fail")
      to->fail_name = value.substr(0, last), to->fail_nth = std::atoi(value.c_str() + last + 1);
    else if (name == "fail_commands")
      to->fail_commands = std::atoi(value.c_str()),
      to->fail_code = std::atoi(value.c_str() + last + 1);
    else if (numbers.count(name))
      *numbers.at(name) = std::atoi(value.c_str());
    else
      std::abort();  // the test requests an unknown setting
  }
}

State& state() {
  static State& the_state = *[] {
    auto* fresh = new State;  // never destroyed: handles are released late
    if (const char* text = std::getenv("PRISM_METAL_DOUBLE")) apply(&fresh->settings, text);
    return fresh;
  }();
  return the_state;
}

std::vector<std::vector<Object*>>& pools() {
  thread_local std::vector<std::vector<Object*>> own;
  return own;
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "double of Metal: %s\n", why.c_str());
  std::abort();
}

bool has_method(const Object& object, const std::string& name) {
  if (name.rfind("setMath", 0) == 0 && settings().macos < 15) return false;
  if (name == "architecture") return settings().macos >= 14;
  return object.isa.methods.count(name) != 0;
}

// Messages that every object supports.
Object* do_retain(Object* self, Selector) {
  retain(self);
  return self;
}
void do_release(Object* self, Selector) { release(self); }
bool do_responds(Object* self, Selector, Selector name) {
  const Lock lock(mutex());
  return has_method(*self, name);
}

UInteger answer_nil() { return 0; }
Object* answer_error(Object*, Selector, Object*, Object** error) {
  tell(error, 1, "the double was told to fail");
  return nullptr;
}
Object* answer_library_error(Object* self, Selector name, Object* source, Object*, Object** error) {
  return answer_error(self, name, source, error);
}

Object* make_string(Object*, Selector) { return new String; }
Object* init_string(String* self, Selector, const char* text) {
  self->text = text;
  return self;
}
const char* string_text(String* self, Selector) { return self->text.c_str(); }
Object* error_description(Error* self, Selector) { return autorelease(new String(self->text)); }
long error_code(Error* self, Selector) { return self->code; }

const Class& string_class() {
  static const Class& the_class = *new Class{
      "NSString",
      "live_objects",
      {{"initWithUTF8String:", method(init_string)}, {"UTF8String", method(string_text)}}};
  return the_class;
}
const Class& error_class() {
  static const Class& the_class = *new Class{
      "NSError",
      "live_objects",
      {{"localizedDescription", method(error_description)}, {"code", method(error_code)}}};
  return the_class;
}

Object* process_info(Object* self, Selector) { return self; }
Object* system_version(Object*, Selector) {
  return autorelease(
      new String("Version " + std::to_string(settings().macos) + ".1 (Build of the double)"));
}

}  // namespace

Object* make_compile_options(Object*, Selector);  // defined in metal_double_device.cpp

namespace {

// Classes looked up by name, as objects that receive messages.
Object* find_class(const std::string& name) {
  static auto& classes = *new std::map<std::string, Object*>;
  static auto& isas = *new std::map<std::string, Class>{
      {"NSString", {"class NSString", "classes", {{"alloc", method(make_string)}}}},
      {"MTLCompileOptions",
       {"class MTLCompileOptions", "classes", {{"new", method(make_compile_options)}}}},
      {"NSProcessInfo",
       {"class NSProcessInfo",
        "classes",
        {{"processInfo", method(process_info)},
         {"operatingSystemVersionString", method(system_version)}}}}};
  const auto isa = isas.find(name);
  if (isa == isas.end()) return nullptr;
  auto& object = classes[name];
  if (!object) object = new Object(isa->second);
  return object;
}

}  // namespace

std::recursive_mutex& mutex() {
  static auto& the_mutex = *new std::recursive_mutex;
  return the_mutex;
}
Settings& settings() { return state().settings; }
long long& counter(const std::string& what) { return state().counters[what]; }

void misuse(const char* what) {
  std::fprintf(stderr, "double of Metal: misuse: %s\n", what);
  ++counter("misuses");
}

Object::Object(const Class& of) : isa(of) {
  const Lock lock(mutex());
  state().living.insert(this);
  ++counter(isa.counted);
}
Object::~Object() {
  state().living.erase(this);
  --counter(isa.counted);
}

void retain(Object* object) {
  const Lock lock(mutex());
  if (object) ++object->references;
}
void release(Object* object) {
  const Lock lock(mutex());
  if (object && --object->references == 0) delete object;
}
Object* autorelease_object(Object* object) {
  if (!object) return nullptr;
  if (pools().empty())
    misuse("an object is autoreleased with no pool in place");
  else
    pools().back().push_back(object);
  return object;
}

String::String(std::string content) : Object(string_class()), text(std::move(content)) {}
Error::Error(long number, std::string words)
    : Object(error_class()), code(number), text(std::move(words)) {}

void tell(Object** error, long code, const std::string& text) {
  if (error) *error = autorelease(new Error(code, text));
}

}  // namespace prism::test::metal_double

using namespace prism::test::metal_double;

extern "C" {

// Finds the method; called by the two functions below with the message's registers preserved.
__attribute__((visibility("hidden"))) void* prism_metal_double_find(Object* self, Selector name) {
  if (!self) return reinterpret_cast<void*>(&answer_nil);
  const Lock lock(mutex());
  if (!state().living.count(self))
    die(std::string("message ") + name + " to an object that is gone");
  ++counter(std::string("calls_") + name);
  Settings& told = settings();
  if (told.crash_name == name) std::raise(SIGSEGV);
  if (told.fail_nth && told.fail_name == name && --told.fail_nth == 0) {
    if (std::strcmp(name, "newLibraryWithSource:options:error:") == 0)
      return method(answer_library_error);
    if (std::strcmp(name, "newComputePipelineStateWithFunction:error:") == 0)
      return method(answer_error);
    return reinterpret_cast<void*>(&answer_nil);
  }
  if (std::strcmp(name, "retain") == 0) return method(do_retain);
  if (std::strcmp(name, "release") == 0) return method(do_release);
  if (std::strcmp(name, "respondsToSelector:") == 0) return method(do_responds);
  if (!has_method(*self, name)) die(self->isa.name + " does not know the message " + name);
  return self->isa.methods.at(name);
}

Selector sel_registerName(const char* name) {
  const Lock lock(mutex());
  return state().selectors.insert(name).first->c_str();
}

Object* objc_getClass(const char* name) {
  const Lock lock(mutex());
  return find_class(name);
}

void* objc_autoreleasePoolPush() {
  pools().emplace_back();
  return reinterpret_cast<void*>(pools().size());
}

void objc_autoreleasePoolPop(void* pool) {
  const Lock lock(mutex());
  if (reinterpret_cast<size_t>(pool) != pools().size()) misuse("pools end in another order");
  const std::vector<Object*> objects = std::move(pools().back());
  pools().pop_back();
  for (Object* object : objects) release(object);
}

void prism_metal_double_set(const char* text) {
  const Lock lock(mutex());
  state().settings = Settings{};
  counter("device_gone") = 0;
  apply(&state().settings, text);
}

long long prism_metal_double_count(const char* what) {
  const Lock lock(mutex());
  return counter(what);
}

}  // extern "C"

// Like Apple's: saves all argument registers while the method is looked up, then tail-calls it with
// the original arguments, whatever its type. The second is for results in memory, whose address
// precedes the receiver.
asm(R"(
.macro prism_send symbol, receiver, selector
.globl \symbol
.type \symbol, @function
\symbol:
  pushq %rbp
  movq %rsp, %rbp
  subq $192, %rsp
  movq %rdi, -8(%rbp)
  movq %rsi, -16(%rbp)
  movq %rdx, -24(%rbp)
  movq %rcx, -32(%rbp)
  movq %r8, -40(%rbp)
  movq %r9, -48(%rbp)
  movaps %xmm0, -64(%rbp)
  movaps %xmm1, -80(%rbp)
  movaps %xmm2, -96(%rbp)
  movaps %xmm3, -112(%rbp)
  movaps %xmm4, -128(%rbp)
  movaps %xmm5, -144(%rbp)
  movaps %xmm6, -160(%rbp)
  movaps %xmm7, -176(%rbp)
  movq \receiver(%rbp), %rdi
  movq \selector(%rbp), %rsi
  call prism_metal_double_find
  movq %rax, %r11
  movq -8(%rbp), %rdi
  movq -16(%rbp), %rsi
  movq -24(%rbp), %rdx
  movq -32(%rbp), %rcx
  movq -40(%rbp), %r8
  movq -48(%rbp), %r9
  movaps -64(%rbp), %xmm0
  movaps -80(%rbp), %xmm1
  movaps -96(%rbp), %xmm2
  movaps -112(%rbp), %xmm3
  movaps -128(%rbp), %xmm4
  movaps -144(%rbp), %xmm5
  movaps -160(%rbp), %xmm6
  movaps -176(%rbp), %xmm7
  leave
  jmp *%r11
.size \symbol, .-\symbol
.endm
.text
prism_send objc_msgSend, -8, -16
prism_send objc_msgSend_stret, -16, -24
)");
