// The engine: one thread that owns the models and runs their steps. Requests reach it by one queue,
// and events leave it by another, once after each step.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/engine_model.h"
#include "server/engine/served_model.h"

namespace prism::server {

struct TextEvent {
  std::string text;  // whole characters
  std::vector<int32_t> tokens;
  std::vector<llm::TokenScore> scores;                       // one for each token, or none
  std::optional<llm::GenerationStatistics> statistics = {};  // of the text so far, if asked for
};

// One text to generate. The callbacks run on the thread of EngineOptions::post.
struct TextJob {
  uint64_t id = 0;  // from Engine::new_id()
  std::shared_ptr<ServedModel> model;
  std::vector<int32_t> prompt;
  llm::GenerationOptions options = {};
  bool wants_statistics = false;  // with each event of the text
  // The model has accepted the prompt. load_seconds: what loading the model for it took, or 0.
  std::function<void(double load_seconds)> on_begin = {};
  std::function<void(llm::PromptProgress progress)> on_prompt = {};
  std::function<void(TextEvent event)> on_text = {};
  // reason is failed, with the failure, if the text could not be generated.
  std::function<void(llm::Generation result)> on_end = {};
};

struct EngineOptions {
  // Loads a model; called on the engine's thread.
  std::function<std::unique_ptr<EngineModel>(const ServedModel&)> load;
  // Whether a model has room in the memory that is free now, without compromise; empty: always.
  std::function<bool(const ServedModel&)> has_room = {};
  // Called on the engine's thread when a model was loaded, or has moved to other devices.
  std::function<void(const ServedModel&, const EngineModel::Facts&)> on_load = {};
  // Runs work on the thread that handles events; called by any thread.
  std::function<void(std::function<void()>)> post;
  int64_t parallel = 0;            // texts at once; 0: as many as the loaded models allow
  int64_t max_queue = 256;         // texts and work that wait beside them
  double timeout_seconds = 0;      // for each of them, with its time in the queue; 0: none
  double idle_unload_seconds = 0;  // unload a model without texts after this time; 0: never
};

// Thrown by Engine::submit and run_with when too many texts and too much work wait.
class QueueFull : public std::exception {
 public:
  const char* what() const noexcept override { return "too many requests are waiting"; }
};

// Ends a text that took longer than the time limit.
class TimedOut : public std::exception {
 public:
  const char* what() const noexcept override {
    return "the request took longer than the server allows (--timeout)";
  }
};

// Ends a text that still ran when the server ended.
class ServerEnded : public std::exception {
 public:
  const char* what() const noexcept override {
    return "the server has ended before the answer was complete";
  }
};

// Counters since the start, and the texts of this moment. Work counts as a text without tokens.
struct EngineState {
  struct Text {
    uint64_t id = 0;
    std::string model;
    int64_t prompt_tokens = 0, generated_tokens = 0, max_tokens = -1;
    bool is_begun = false;  // has at least one token, or its work has begun
    int64_t context = 0;    // of its model; 0: not loaded yet
  };
  struct Loaded {
    std::string model;
    EngineModel::Facts facts;
    double idle_seconds = 0;
    double expires_seconds = -1;  // until it is unloaded if it stays idle; -1: never
  };
  std::vector<Text> texts;
  std::vector<Loaded> models;
  int64_t parallel = 1;  // texts at once
  uint64_t texts_done = 0, texts_failed = 0, prompt_tokens = 0, reused_tokens = 0,
           generated_tokens = 0, proposals = 0, proposed_tokens = 0, accepted_tokens = 0, steps = 0;
  uint64_t text_steps = 0;    // the sum over all steps of their texts
  uint64_t longest_text = 0;  // tokens, with the prompt
  double prompt_seconds = 0, generation_seconds = 0;
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();  // ends all texts; their callbacks are dropped
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread may call these.
  uint64_t new_id() { return next_id_++; }
  // Work with a loaded model beside the texts. It is called between two steps and again after the
  // next ones until it returns true, in turn with other work, so each call should be short. It runs
  // on the engine's thread. What it throws ends it.
  using Work = std::function<bool(EngineModel&)>;
  // Adds all jobs or, if the queue has no room for them, none: throws QueueFull. The texts begin
  // when `before`, work with their model, is done, and fail with it. Empty: at once.
  void submit(std::vector<TextJob> jobs, Work before = {});
  // Only work, which has the limits of a text. `done` gets what loading or work throws, TimedOut or
  // ServerEnded, or null if the work is done; it is not called if the work was cancelled. Throws
  // QueueFull. Returns the id for cancel().
  uint64_t run_with(std::shared_ptr<ServedModel> model, Work work,
                    std::function<void(std::exception_ptr failure)> done);
  // Adds a step of work, which computed so many tokens, to the counters. Only work calls it.
  void count_step(int64_t tokens);
  // Loads a model before its first text. `done` gets the failure, or null.
  void load(std::shared_ptr<ServedModel> model,
            std::function<void(std::exception_ptr failure)> done);
  void cancel(uint64_t id);  // a text or work ends at the next step; nothing if it has ended
  void end_all();            // every text and all work end at the next step, with ServerEnded
  // Unloads the model when it was idle for this time after its next use: 0: when its last text has
  // ended; negative: never. Replaces idle_unload_seconds for it until it is unloaded.
  void keep(const std::string& model, double seconds);
  void unload(const std::string& model);  // when its last text has ended
  EngineState state() const;
  size_t unfinished() const { return unfinished_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Text;
  struct Loaded;
  // Work, and the texts that wait for it: all with the same model, at least one.
  struct SideWork {
    Work work;
    std::vector<std::shared_ptr<Text>> texts;
  };
  // A piece of a text, which needs no allocation of its own, or any other event.
  struct Event {
    std::shared_ptr<Text> to;
    TextEvent text;
    std::function<void()> other;
  };

  void add(std::vector<std::shared_ptr<Text>> texts, Work before);
  void run();
  bool take_commands();  // false: the engine stops
  void begin(const std::shared_ptr<Text>& text);
  void end(const std::shared_ptr<Text>& text, llm::Generation result);
  void step(Loaded& loaded);
  void continue_work();  // one call of the work whose turn it is
  void end_cancelled_work();
  bool has_work_for(const Loaded& loaded) const;
  static void stop(Text& text);       // it ends at the next step, as cancelled
  static void stop_late(Text& text);  // it ends with TimedOut or ServerEnded
  void cancel_late();
  void unload_idle();
  // Loads a model at its first use. If memory is short, models without texts and work make room.
  Loaded& loaded(const std::shared_ptr<ServedModel>& model);
  void read_facts(Loaded& loaded);
  void notice_moves();
  Loaded& use(const std::shared_ptr<ServedModel>& model);  // loaded(), with the time of keep()
  double kept_seconds(const Loaded& loaded) const;         // while idle; infinity: for ever
  bool unload_oldest();  // of the models without texts and work; false: there is none
  void emit(std::function<void()> event) { events_.push_back({nullptr, {}, std::move(event)}); }
  void flush_events();
  void publish();

  EngineOptions options_;
  std::atomic<size_t> unfinished_ = 0;
  std::atomic<int64_t> parallel_ = 1;
  std::atomic<uint64_t> next_id_ = 1;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> commands_;  // run on the engine's thread
  bool is_stopping_ = false;
  EngineState state_;

  // The engine's thread only.
  bool has_ended_ = false;  // end_all() was called
  std::map<std::string, std::unique_ptr<Loaded>> models_;
  std::map<std::string, double> asked_keep_;         // of keep(), until the model is used
  std::map<uint64_t, std::shared_ptr<Text>> texts_;  // that have not ended
  std::deque<SideWork> work_;                        // the first is next
  std::vector<Event> events_;
  EngineState counters_;
  // Events that are handled after the engine's end are dropped.
  std::shared_ptr<bool> lifetime_ = std::make_shared<bool>();
  std::thread thread_;
};

}  // namespace prism::server
