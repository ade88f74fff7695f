// ThreadPool: parallel loops, split into chunks that the caller and the workers take in turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace prism {

class ThreadPool {
 public:
  // threads includes the caller: a pool of one starts none.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

  // The body of a loop, void(uint64_t first, uint64_t last): a non-owning view of a callable that
  // must outlive the loop.
  class Work {
   public:
    template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, Work>) Work(Function&& function)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
          call_([](void* object, uint64_t first, uint64_t last) {
            (*static_cast<std::remove_reference_t<Function>*>(object))(first, last);
          }) {}
    void operator()(uint64_t first, uint64_t last) const { call_(object_, first, last); }

   private:
    void* object_;
    void (*call_)(void* object, uint64_t first, uint64_t last);
  };

  // Calls work(first, last) for ranges of at most `chunk` that cover [0, count), and returns when
  // all are done. The first exception cancels the remaining ranges and is rethrown here. Callable
  // from any thread; inside a loop of a pool it runs serially on the calling thread.
  void parallel_for(uint64_t count, uint64_t chunk, const Work& work);

  // While a Busy object exists, idle workers stay awake, so that consecutive loops start within a
  // microsecond; otherwise they sleep about 20 microseconds after the last loop.
  class Busy {
   public:
    explicit Busy(ThreadPool& pool);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    ThreadPool& pool_;
  };

 private:
  struct Job;
  void worker();
  void take_part(Job& job);
  void wait_for_workers(Job& job);
  // Enters the newest job; the caller must call leave. Null when the job is over.
  Job* enter();
  void leave(Job& job);

  // Polled by workers: on its own cache line, apart from what workers and callers write.
  alignas(64) std::atomic<uint64_t> generation_{0};  // counts jobs
  std::atomic<uint32_t> busy_{0};
  std::atomic<bool> stop_{false};

  alignas(64) std::atomic<bool> slot_locked_{false};  // guards job_ and entry into it
  Job* job_ = nullptr;                                // lives on its caller's stack

  // A sleeper increments its count before its last check; a waker changes the state before it reads
  // the count. Both are seq_cst, so that one of them sees the other.
  std::atomic<uint32_t> sleeping_workers_{0}, sleeping_callers_{0};
  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::vector<std::thread> workers_;
};

}  // namespace prism
