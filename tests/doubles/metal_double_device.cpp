// The double's devices, buffers, libraries and pipelines.
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <unistd.h>

#include "doubles/metal_double_work.h"

namespace prism::test::metal_double {
namespace {

constexpr unsigned char kFenceByte = 0xfd, kFreshByte = 0xcd;
constexpr UInteger kPrivate = 2 << 4;

struct CompileOptions : Object {
  CompileOptions();
  bool fast_math = true, fast_functions = true;
};
void set_fast_math(CompileOptions* self, Selector, bool fast) {
  self->fast_math = self->fast_functions = fast;
}
void set_math_functions(CompileOptions* self, Selector, long kind) {
  self->fast_functions = kind == 0;
}
void set_math_mode(CompileOptions* self, Selector, long mode) { self->fast_math = mode != 0; }

const Class& options_class() {
  static const Class& the_class =
      *new Class{"MTLCompileOptions",
                 "live_objects",
                 {{"setFastMathEnabled:", method(set_fast_math)},
                  {"setMathMode:", method(set_math_mode)},
                  {"setMathFloatingPointFunctions:", method(set_math_functions)}}};
  return the_class;
}
CompileOptions::CompileOptions() : Object(options_class()) {}

struct Library : Object {
  explicit Library(const std::string& text);
  ~Library() override { doubles::unload(code); }
  doubles::HostModule* code;
};

struct Function : Object {
  Function(Library* from, doubles::HostKernel* found);
  ~Function() override { release(library); }
  Library* library;
  doubles::HostKernel* kernel;
};

Object* new_function(Library* self, Selector, String* name) {
  const Lock lock(mutex());
  doubles::HostKernel* kernel = doubles::find_sample_kernel(self->code, name->text);
  return kernel ? new Function(self, kernel) : nullptr;
}

const Class& library_class() {
  static const Class& the_class =
      *new Class{"MTLLibrary", "live_modules", {{"newFunctionWithName:", method(new_function)}}};
  return the_class;
}
const Class& function_class() {
  static const Class& the_class = *new Class{"MTLFunction", "live_modules", {}};
  return the_class;
}
Library::Library(const std::string& text)
    : Object(library_class()), code(doubles::load_text(text)) {}
Function::Function(Library* from, doubles::HostKernel* found)
    : Object(function_class()), library(from), kernel(found) {
  retain(library);
}

UInteger pipeline_threads(Object*, Selector) { return static_cast<UInteger>(settings().threads); }
UInteger pipeline_width(Object*, Selector) { return static_cast<UInteger>(settings().lanes); }

const Class& pipeline_class() {
  static const Class& the_class =
      *new Class{"MTLComputePipelineState",
                 "live_modules",
                 {{"maxTotalThreadsPerThreadgroup", method(pipeline_threads)},
                  {"threadExecutionWidth", method(pipeline_width)}}};
  return the_class;
}

void* buffer_contents(Buffer* self, Selector) {
  return self->options == kPrivate ? nullptr : self->data();
}
const Class& buffer_class() {
  static const Class& the_class =
      *new Class{"MTLBuffer", "live_allocations", {{"contents", method(buffer_contents)}}};
  return the_class;
}

struct Device : Object {
  explicit Device(int number);
  int index;
};

Object* device_name(Device* self, Selector) {
  const char* name = settings().family < 2000 ? "Apple double" : "AMD double";
  return autorelease(
      new String(name + (self->index ? " " + std::to_string(self->index) : std::string())));
}
bool supports_family(Device*, Selector, long family) {
  const long own = settings().family;
  if (family == 5001) return own != 2001;
  return family / 1000 == own / 1000 && family <= own;
}
bool has_unified_memory(Device*, Selector) { return settings().unified != 0; }
UInteger working_set(Device*, Selector) { return static_cast<UInteger>(settings().memory); }
UInteger allocated(Device*, Selector) {
  const Lock lock(mutex());
  return static_cast<UInteger>(counter("live_bytes"));
}
UInteger max_buffer(Device*, Selector) { return static_cast<UInteger>(settings().max_buffer); }
UInteger threadgroup_memory(Device*, Selector) { return 32 << 10; }
Size max_threads(Device*, Selector) { return {1024, 1024, 1024}; }
Object* architecture(Device* self, Selector) { return self; }
Object* new_queue(Device*, Selector) { return make_queue(); }

Object* new_buffer(Device*, Selector, UInteger bytes, UInteger options) {
  const Lock lock(mutex());
  ++counter("allocations");
  if (bytes == 0) misuse("a buffer of no bytes");
  if (options != 0 && options != kPrivate) misuse("a storage mode the double does not know");
  const Settings& told = settings();
  if (static_cast<long long>(bytes) > told.max_buffer ||
      counter("live_bytes") + static_cast<long long>(bytes) > told.memory)
    return nullptr;
  return new Buffer(bytes, options);
}

Object* new_buffer_over(Device*, Selector, void* outside, UInteger bytes, UInteger options,
                        Object* deallocator) {
  const Lock lock(mutex());
  ++counter("wraps");
  const auto page = static_cast<UInteger>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes % page != 0 || reinterpret_cast<UInteger>(outside) % page != 0)
    misuse("memory to share that is not whole pages");
  if (options != 0 || deallocator) misuse("shared memory of another kind than the double knows");
  const Settings& told = settings();
  if (static_cast<long long>(bytes) > told.max_buffer ||
      counter("live_bytes") + static_cast<long long>(bytes) > told.memory)
    return nullptr;
  return new Buffer(outside, bytes);
}

Object* new_library(Device*, Selector, String* source, CompileOptions* options, Object** error) {
  const Lock lock(mutex());
  ++counter("compiles");
  if (!options || options->fast_math || options->fast_functions)
    misuse("a text compiled with fast math");
  if (settings().fail_compile) {
    tell(error, 3, "program_source:1:1: error: the double was told to refuse");
    return nullptr;
  }
  return new Library(source->text);
}

Object* new_pipeline(Device*, Selector, Function* function, Object**) {
  const Lock lock(mutex());
  return new Pipeline(function, function->kernel);
}

const Class& device_class() {
  static const Class& the_class =
      *new Class{"MTLDevice",
                 "devices",
                 {{"name", method(device_name)},
                  {"supportsFamily:", method(supports_family)},
                  {"hasUnifiedMemory", method(has_unified_memory)},
                  {"recommendedMaxWorkingSetSize", method(working_set)},
                  {"currentAllocatedSize", method(allocated)},
                  {"maxBufferLength", method(max_buffer)},
                  {"maxThreadgroupMemoryLength", method(threadgroup_memory)},
                  {"maxThreadsPerThreadgroup", method(max_threads)},
                  {"architecture", method(architecture)},
                  {"newCommandQueue", method(new_queue)},
                  {"newBufferWithLength:options:", method(new_buffer)},
                  {"newBufferWithBytesNoCopy:length:options:deallocator:", method(new_buffer_over)},
                  {"newLibraryWithSource:options:error:", method(new_library)},
                  {"newComputePipelineStateWithFunction:error:", method(new_pipeline)}}};
  return the_class;
}
Device::Device(int number) : Object(device_class()), index(number) {}

struct Array : Object {
  Array();
  ~Array() override {
    for (Object* object : objects) release(object);
  }
  std::vector<Object*> objects;
};
UInteger array_count(Array* self, Selector) { return self->objects.size(); }
Object* array_at(Array* self, Selector, UInteger index) { return self->objects.at(index); }
const Class& array_class() {
  static const Class& the_class =
      *new Class{"NSArray",
                 "live_objects",
                 {{"count", method(array_count)}, {"objectAtIndex:", method(array_at)}}};
  return the_class;
}
Array::Array() : Object(array_class()) {}

}  // namespace

Object* make_compile_options(Object*, Selector);
Object* make_compile_options(Object*, Selector) { return new CompileOptions; }

Buffer::Buffer(size_t the_bytes, UInteger storage)
    : Object(buffer_class()), bytes(the_bytes), options(storage) {
  memory = static_cast<unsigned char*>(
      std::aligned_alloc(kFence, (bytes + kFence - 1) / kFence * kFence + 2 * kFence));
  if (!memory) throw std::bad_alloc();
  std::memset(memory, kFenceByte, kFence);
  std::memset(data(), kFreshByte, bytes);
  std::memset(data() + bytes, kFenceByte, kFence);
  counter("live_bytes") += static_cast<long long>(bytes);
}
Buffer::Buffer(void* outside, size_t the_bytes)
    : Object(buffer_class()),
      bytes(the_bytes),
      options(0),
      borrowed(static_cast<unsigned char*>(outside)) {
  counter("live_bytes") += static_cast<long long>(bytes);
  counter("shared_bytes") += static_cast<long long>(bytes);
}
Buffer::~Buffer() {
  check_fences();
  if (borrowed) counter("shared_bytes") -= static_cast<long long>(bytes);
  counter("live_bytes") -= static_cast<long long>(bytes);
  std::free(memory);
}
void Buffer::check_fences() {
  if (borrowed) return;
  for (size_t i = 0; i < kFence; ++i)
    if (memory[i] != kFenceByte || data()[bytes + i] != kFenceByte) {
      ++counter("overruns");
      return;
    }
}

Pipeline::Pipeline(Object* of, doubles::HostKernel* found)
    : Object(pipeline_class()), function(of), kernel(found) {
  retain(function);
}
Pipeline::~Pipeline() { release(function); }

}  // namespace prism::test::metal_double

using namespace prism::test::metal_double;

extern "C" Object* MTLCopyAllDevices() {
  const Lock lock(mutex());
  static auto& devices = *new std::vector<Device*>;
  auto* all = new Array;
  for (int i = 0; i < settings().devices; ++i) {
    if (static_cast<size_t>(i) == devices.size()) devices.push_back(new Device(i));
    retain(devices[static_cast<size_t>(i)]);
    all->objects.push_back(devices[static_cast<size_t>(i)]);
  }
  return all;
}
