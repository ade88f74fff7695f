// A library for LD_PRELOAD that makes one call of a program fail, or kills the program at that
// call.
//
// PRISM_FAULT is CALL:N:ACTION, such as write:17:ENOSPC (see tests/support/faults/faults.h).
// PRISM_FAULT_COUNTS names a file for the number of calls of each kind, and for the number of the
// first allocation of each call stack ("stack 17"). PRISM_FAULT_RECORD names a file for the changes
// of the file PRISM_FAULT_RECORDED: each pwrite and fsync, as a Change and its bytes. Only the
// process that loads the library is affected, not the programs and children that it starts.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

enum Call { kNew, kOpen, kRead, kWrite, kFlush, kChange, kMap, kThread, kCalls };
constexpr const char* kNames[kCalls] = {"new",   "open",   "read", "write",
                                        "flush", "change", "map",  "thread"};

struct Plan {
  std::atomic<int64_t> seen[kCalls] = {};
  std::atomic<int64_t> seen_files = 0;  // of all kinds but kNew and kThread
  pid_t process = 0;                    // 0: main has not begun
  bool on_any = false;
  int call = -1;
  int64_t number = 0;
  bool lasts = false;  // also all later calls
  bool kills = false, is_short = false;
  int error = 0;
  char counts[4096] = {};
  char recorded[4096] = {};  // a path
  long record = -1;          // an open file
};

// What faults.cpp reads.
struct Change {
  uint64_t is_flush, number, offset, bytes;
};

Plan plan;

// The call stacks of allocations, as hashes, with the number of their first allocation.
constexpr size_t kMostStacks = 1 << 17;
// The innermost frames of a stack that count, with about three of this file. With 10 each option of
// the command line has stacks of its own.
constexpr int kFrames = 6;
struct Stack {
  std::atomic<uint64_t> hash;
  int64_t number;
};
Stack stacks[kMostStacks];

void note_stack(int64_t number) {
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  uint64_t hash = 1469598103934665603u;
  for (int i = 0; i < count; ++i)
    hash = (hash ^ reinterpret_cast<uint64_t>(frames[i])) * 1099511628211u;
  for (size_t at = hash % kMostStacks, tries = 0; tries < 64;
       at = (at + 1) % kMostStacks, ++tries) {
    uint64_t seen = 0;
    if (stacks[at].hash.compare_exchange_strong(seen, hash)) stacks[at].number = number;
    if (seen == 0 || seen == hash) return;
  }
}

int error_number(const char* name) {
  constexpr struct {
    const char* name;
    int number;
  } kErrors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"ENOMEM", ENOMEM},
                 {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"EINTR", EINTR},
                 {"EROFS", EROFS},   {"EDQUOT", EDQUOT}, {"EAGAIN", EAGAIN}};
  for (const auto& each : kErrors)
    if (std::strcmp(each.name, name) == 0) return each.number;
  return EIO;
}

void set_up() {
  if (const char* counts = getenv("PRISM_FAULT_COUNTS"))
    std::strncpy(plan.counts, counts, sizeof plan.counts - 1);
  char text[64] = {};
  if (const char* fault = getenv("PRISM_FAULT")) std::strncpy(text, fault, sizeof text - 1);
  if (const char* recorded = getenv("PRISM_FAULT_RECORDED"))
    std::strncpy(plan.recorded, recorded, sizeof plan.recorded - 1);
  if (const char* record = getenv("PRISM_FAULT_RECORD"))
    plan.record = syscall(SYS_openat, AT_FDCWD, record, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  unsetenv("PRISM_FAULT_RECORD");
  unsetenv("PRISM_FAULT_RECORDED");
  unsetenv("PRISM_FAULT_COUNTS");
  unsetenv("PRISM_FAULT");
  unsetenv("LD_PRELOAD");
  char* const number = std::strchr(text, ':');
  char* const action = number ? std::strchr(number + 1, ':') : nullptr;
  if (action) {
    *number = *action = '\0';
    plan.lasts = action[-1] == '+';
    plan.number = std::atoll(number + 1);
    plan.on_any = std::strcmp(text, "any") == 0;
    for (int call = 0; call < kCalls; ++call)
      if (std::strcmp(kNames[call], text) == 0) plan.call = call;
    plan.kills = std::strcmp(action + 1, "kill") == 0;
    plan.is_short = std::strcmp(action + 1, "short") == 0;
    plan.error = error_number(action + 1);
  }
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads the unwinder, which allocates
  plan.process = getpid();
}

void write_line(long file, const char* name, int64_t number) {
  char text[64];
  const int bytes =
      std::snprintf(text, sizeof text, "%s %lld\n", name, static_cast<long long>(number));
  syscall(SYS_write, file, text, static_cast<size_t>(bytes));
}

__attribute__((destructor)) void write_counts() {
  if (!plan.counts[0] || getpid() != plan.process) return;
  const long file = syscall(SYS_openat, AT_FDCWD, plan.counts, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) return;
  write_line(file, "any", plan.seen_files);
  for (int call = 0; call < kCalls; ++call) write_line(file, kNames[call], plan.seen[call]);
  for (const Stack& stack : stacks)
    if (stack.number > 0) write_line(file, "stack", stack.number);
  syscall(SYS_close, file);
}

// Counts the call; returns whether it must fail. Kills the process if that is the plan.
bool is_hit(Call call) {
  if (plan.process == 0 || static_cast<pid_t>(syscall(SYS_getpid)) != plan.process) return false;
  const int64_t own = ++plan.seen[call];
  const int64_t any = call == kNew || call == kThread ? 0 : ++plan.seen_files;
  if (call == kNew && plan.counts[0]) note_stack(own);
  const int64_t now = plan.on_any ? any : plan.call == call ? own : 0;
  if (now == 0 || !(now == plan.number || (plan.lasts && now > plan.number))) return false;
  if (plan.kills) syscall(SYS_kill, plan.process, SIGKILL);
  return true;
}

uint64_t seen(Call call) { return static_cast<uint64_t>(plan.seen[call]); }

void record(int file, const Change& change, const void* from) {
  if (plan.record < 0) return;
  char link[32], path[4096] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof path - 1) < 0 || std::strcmp(path, plan.recorded) != 0) return;
  syscall(SYS_write, plan.record, &change, sizeof change);
  if (change.bytes > 0) syscall(SYS_write, plan.record, from, change.bytes);
}

// The next definition of this function; the libraries that follow in the search order have it.
template <class Function>
Function* next(const char* name, Function*& kept) {
  if (!kept) kept = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return kept;
}

bool is_file(int descriptor) { return descriptor > 2; }

void* allocate(size_t bytes, size_t alignment) {
  if (is_hit(kNew)) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes ? bytes : 1);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory) return memory;
  if (const std::new_handler handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

// Fails the call with `result` and the plan's error.
#define FAIL_IF_HIT(call, result) \
  if (is_hit(call)) {             \
    errno = plan.error;           \
    return result;                \
  }

extern "C" {

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int main_with_faults(int count, char** words, char** variables) {
  set_up();
  return real_main(count, words, variables);
}

// Counts from the beginning of main: nothing can handle a failure of a static constructor.
int __libc_start_main(Main main, int count, char** words, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  static int (*kept)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*) = nullptr;
  real_main = main;
  return next("__libc_start_main", kept)(main_with_faults, count, words, init, fini, rtld_fini,
                                         stack_end);
}

// The mode is read even if the caller gave none; it is then ignored.
#define OPEN(folder, path, flags)           \
  va_list rest;                             \
  va_start(rest, flags);                    \
  const mode_t mode = va_arg(rest, mode_t); \
  va_end(rest);                             \
  FAIL_IF_HIT(kOpen, -1)                    \
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));

int open(const char* path, int flags, ...) { OPEN(AT_FDCWD, path, flags) }
int open64(const char* path, int flags, ...) { OPEN(AT_FDCWD, path, flags) }
int openat(int folder, const char* path, int flags,
           ...){OPEN(folder, path, flags)} FILE* fopen(const char* path, const char* mode) {
  FAIL_IF_HIT(kOpen, nullptr)
  static FILE* (*kept)(const char*, const char*) = nullptr;
  return next("fopen", kept)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  FAIL_IF_HIT(kOpen, nullptr)
  static FILE* (*kept)(const char*, const char*) = nullptr;
  return next("fopen64", kept)(path, mode);
}

ssize_t read(int file, void* to, size_t bytes) {
  if (is_file(file) && is_hit(kRead)) {
    if (plan.is_short && bytes > 1) return syscall(SYS_read, file, to, bytes / 2);
    errno = plan.error;
    return -1;
  }
  return syscall(SYS_read, file, to, bytes);
}
ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  if (is_hit(kRead)) {
    if (plan.is_short && bytes > 1) return syscall(SYS_pread64, file, to, bytes / 2, offset);
    errno = plan.error;
    return -1;
  }
  return syscall(SYS_pread64, file, to, bytes, offset);
}
size_t fread(void* to, size_t size, size_t count, FILE* file) {
  static size_t (*kept)(void*, size_t, size_t, FILE*) = nullptr;
  if (is_hit(kRead)) {
    errno = plan.error;
    return plan.is_short && count > 1 ? next("fread", kept)(to, size, count / 2, file) : 0;
  }
  return next("fread", kept)(to, size, count, file);
}

ssize_t write(int file, const void* from, size_t bytes) {
  if (is_file(file) && is_hit(kWrite)) {
    if (plan.is_short && bytes > 1) return syscall(SYS_write, file, from, bytes / 2);
    errno = plan.error;
    return -1;
  }
  return syscall(SYS_write, file, from, bytes);
}
ssize_t writev(int file, const iovec* from, int count) {
  if (is_file(file) && is_hit(kWrite)) {
    if (plan.is_short && count > 0) return syscall(SYS_writev, file, from, 1);
    errno = plan.error;
    return -1;
  }
  return syscall(SYS_writev, file, from, count);
}
ssize_t pwrite(int file, const void* from, size_t bytes, off_t offset) {
  if (is_hit(kWrite)) {
    if (plan.is_short && bytes > 1) return syscall(SYS_pwrite64, file, from, bytes / 2, offset);
    errno = plan.error;
    return -1;
  }
  record(file, {0, seen(kWrite), static_cast<uint64_t>(offset), bytes}, from);
  return syscall(SYS_pwrite64, file, from, bytes, offset);
}
size_t fwrite(const void* from, size_t size, size_t count, FILE* file) {
  static size_t (*kept)(const void*, size_t, size_t, FILE*) = nullptr;
  if (is_file(fileno(file)) && is_hit(kWrite)) {
    errno = plan.error;
    return count > 1 ? next("fwrite", kept)(from, size, count / 2, file) : 0;
  }
  return next("fwrite", kept)(from, size, count, file);
}

int fflush(FILE* file) {
  static int (*kept)(FILE*) = nullptr;
  if (file && is_file(fileno(file))) FAIL_IF_HIT(kFlush, EOF)
  return next("fflush", kept)(file);
}
int fsync(int file) {
  FAIL_IF_HIT(kFlush, -1)
  record(file, {1, seen(kFlush), 0, 0}, nullptr);
  return static_cast<int>(syscall(SYS_fsync, file));
}
int fdatasync(int file) {
  FAIL_IF_HIT(kFlush, -1)
  return static_cast<int>(syscall(SYS_fdatasync, file));
}
int fclose(FILE* file) {
  static int (*kept)(FILE*) = nullptr;
  if (is_file(fileno(file)) && is_hit(kFlush)) {
    next("fclose", kept)(file);
    errno = plan.error;
    return EOF;
  }
  return next("fclose", kept)(file);
}

int rename(const char* from, const char* to) noexcept {
  FAIL_IF_HIT(kChange, -1)
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept {
  FAIL_IF_HIT(kChange, -1)
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int remove(const char* path) noexcept {
  FAIL_IF_HIT(kChange, -1)
  static int (*kept)(const char*) = nullptr;
  return next("remove", kept)(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  FAIL_IF_HIT(kChange, -1)
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int ftruncate(int file, off_t bytes) noexcept {
  FAIL_IF_HIT(kChange, -1)
  return static_cast<int>(syscall(SYS_ftruncate, file, bytes));
}
int fchmod(int file, mode_t mode) noexcept {
  FAIL_IF_HIT(kChange, -1)
  return static_cast<int>(syscall(SYS_fchmod, file, mode));
}
int chmod(const char* path, mode_t mode) noexcept {
  FAIL_IF_HIT(kChange, -1)
  return static_cast<int>(syscall(SYS_fchmodat, AT_FDCWD, path, mode));
}

void* mmap(void* at, size_t bytes, int access, int flags, int file, off_t offset) noexcept {
  if (file >= 0) FAIL_IF_HIT(kMap, MAP_FAILED)
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, access, flags, file, offset));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  if (is_hit(kThread)) return plan.error;
  static int (*kept)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
  return next("pthread_create", kept)(thread, attributes, function, argument);
}

}  // extern "C"
