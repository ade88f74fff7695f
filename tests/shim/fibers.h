// Runs the threads of a group as fibers on one host thread, so that tests can execute printed
// kernels.
//
// A barrier switches to the next fiber; when all have arrived, the first continues. Threads that
// wait after others have ended are a divergent barrier, which is an error.
#pragma once

#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace shim {

struct Launch {
  unsigned groups[3];
  unsigned group_size;
  unsigned subgroup_size;
  void* const* buffers;
  const unsigned* params;
};

struct Index {
  unsigned x, y, z;
};

struct Copy {
  void* to;
  const void* from;
  unsigned bytes;
  bool copies;
};

struct Fiber {
#ifdef __x86_64__
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
  char* stack = nullptr;
  bool done = false;
  std::vector<Copy> open;                  // copies of the open batch
  std::vector<std::vector<Copy>> batches;  // committed, not yet waited for
};

struct Machine {
  Launch launch{};
  Index thread{}, block{}, grid{};
  std::vector<Fiber> fibers;
  void (*body)(const Launch&) = nullptr;
  const char* failure = nullptr;
#ifdef __x86_64__
  void* scheduler = nullptr;
#else
  ucontext_t scheduler;
#endif
  unsigned char slots[1024][64];  // values that threads exchange
};

inline Machine machine;
inline constexpr size_t kStackBytes = 256 << 10;

#ifdef __x86_64__
extern "C" void prism_shim_switch(void** save, void* load);
asm(R"(
.text
.hidden prism_shim_switch
.globl prism_shim_switch
prism_shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#endif

inline Fiber& current() { return machine.fibers[machine.thread.x]; }

inline void leave() {
#ifdef __x86_64__
  prism_shim_switch(&current().stack_pointer, machine.scheduler);
#else
  swapcontext(&current().context, &machine.scheduler);
#endif
}

inline void barrier() {
  const Index own = machine.thread;
  leave();
  machine.thread = own;
}

inline void fiber_main() {
  machine.body(machine.launch);
  current().done = true;
  leave();
}

inline void start(Fiber& fiber) {
  if (!fiber.stack)
    fiber.stack = static_cast<char*>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  fiber.done = false;
  fiber.open.clear();
  fiber.batches.clear();
#ifdef __x86_64__
  // Mimics a call of prism_shim_switch: six registers, and the return address at a multiple of 16.
  void** top = reinterpret_cast<void**>(fiber.stack + kStackBytes - 16);
  *top = reinterpret_cast<void*>(&fiber_main);
  fiber.stack_pointer = top - 6;
#else
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &fiber_main, 0);
#endif
}

inline void run_group() {
  if (machine.fibers.size() < machine.launch.group_size)
    machine.fibers.resize(machine.launch.group_size);
  for (unsigned i = 0; i < machine.launch.group_size; ++i) start(machine.fibers[i]);
  for (;;) {
    unsigned ended = 0;
    for (unsigned i = 0; i < machine.launch.group_size; ++i) {
      machine.thread = {i, 0, 0};
#ifdef __x86_64__
      prism_shim_switch(&machine.scheduler, machine.fibers[i].stack_pointer);
#else
      swapcontext(&machine.scheduler, &machine.fibers[i].context);
#endif
      ended += machine.fibers[i].done;
    }
    if (ended == machine.launch.group_size) return;
    if (ended != 0) {
      machine.failure = "some threads of a group ended while others wait at a barrier";
      return;
    }
  }
}

// The arguments of a kernel in order: pointers are buffers and words are params. If the params are
// one block it is a reference, and the remaining arguments are filled in by the hardware: group,
// number of groups, thread, lane, subgroup.
struct Arguments {
  const Launch& launch;
  unsigned buffer = 0, param = 0, index = 0;

  template <class T>
  decltype(auto) next() {
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(launch.buffers[buffer++]);
    } else if constexpr (std::is_reference_v<T>) {
      return *static_cast<std::remove_reference_t<T>*>(
          const_cast<void*>(static_cast<const void*>(launch.params)));
    } else if constexpr (std::is_same_v<T, Index>) {
      return index++ == 0 ? Index(machine.block) : Index(machine.grid);
    } else if constexpr (std::is_same_v<T, unsigned long>) {
      return 0ul;  // the offset of an OpenCL buffer
    } else {
      static_assert(sizeof(T) == 4);
#ifdef PRISM_SHIM_PARAMS_AS_BLOCK
      const unsigned own = machine.thread.x, size = launch.subgroup_size;
      const unsigned which = param++;
      return static_cast<T>(which == 0 ? own : which == 1 ? own % size : own / size);
#else
      return std::bit_cast<T>(launch.params[param++]);
#endif
    }
  }
};

template <class... Args>
void call(void (*kernel)(Args...), const Launch& launch) {
  Arguments arguments{launch};
  // Braces: arguments are evaluated from left to right.
  std::tuple<Args...> all{arguments.next<Args>()...};
  std::apply(kernel, all);
}

template <auto kernel>
const char* run(const Launch& launch) {
  machine.launch = launch;
  machine.body = [](const Launch& own) { call(kernel, own); };
  machine.failure = nullptr;
  machine.grid = {launch.groups[0], launch.groups[1], launch.groups[2]};
  for (unsigned z = 0; z < launch.groups[2] && !machine.failure; ++z)
    for (unsigned y = 0; y < launch.groups[1] && !machine.failure; ++y)
      for (unsigned x = 0; x < launch.groups[0] && !machine.failure; ++x) {
        machine.block = {x, y, z};
        run_group();
      }
  return machine.failure;
}

// Every thread of the group publishes a value and reads another thread's.
template <class T>
T exchange(T value, unsigned thread) {
  static_assert(sizeof(T) <= sizeof(machine.slots[0]));
  std::memcpy(machine.slots[machine.thread.x], &value, sizeof(T));
  barrier();
  T result;
  std::memcpy(&result, machine.slots[thread], sizeof(T));
  barrier();
  return result;
}

template <class T>
T shuffle(T value, unsigned lane, unsigned size) {
  return exchange(value, machine.thread.x / size * size + lane % size);
}

}  // namespace shim
