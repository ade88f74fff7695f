// Base class for queues over interfaces that run one launch or copy at a time: collects steps into
// batches, records them, and runs them at each replay.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// Batch: steps that run together; a CommandGraphDriver with a vector `steps`.
template <class Batch>
class StepQueue : public QueueDriver {
 public:
  using Step = typename decltype(Batch::steps)::value_type;
  void begin_recording() final { recording_ = std::make_unique<Batch>(); }
  std::unique_ptr<CommandGraphDriver> end_recording() final {
    std::unique_ptr<Batch> recorded = std::move(recording_);
    prepare(*recorded);
    recorded_whole(*recorded);
    return recorded;
  }
  void replay(CommandGraphDriver& recorded) final {
    flush();
    run(static_cast<Batch&>(recorded));
    after_replay(static_cast<Batch&>(recorded));
  }

 protected:
  // most_steps: the number of unrecorded steps that triggers a flush.
  explicit StepQueue(size_t most_steps) : most_steps_(most_steps) {}

  virtual void prepare(Batch&) {}         // called once, before the first run
  virtual void recorded_whole(Batch&) {}  // once per recording: builds the native form
  virtual void run(Batch& batch) = 0;
  virtual void after_replay(Batch&) {}  // called while the device works

  Batch& batch() { return recording_ ? *recording_ : pending_; }
  void add(Step step) {
    batch().steps.push_back(std::move(step));
    if (!recording_ && pending_.steps.size() >= most_steps_) flush();
  }
  // Runs the collected steps that are not part of a recording.
  void flush() {
    if (pending_.steps.empty()) return;
    const struct Clear {
      Batch& batch;
      ~Clear() { batch.steps.clear(); }
    } at_the_end{pending_};
    prepare(pending_);
    run(pending_);
  }

 private:
  size_t most_steps_;
  Batch pending_;
  std::unique_ptr<Batch> recording_;
};

}  // namespace prism
