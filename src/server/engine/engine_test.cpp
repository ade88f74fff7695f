// Tests the engine with a scripted model: texts keep apart, and places become free.
#include "server/engine/engine.h"

#include <condition_variable>
#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/models/letters.h"
#include "support/server/scripted_model.h"

namespace prism::server {
namespace {

using test::Script;
using test::scripted_answer;
using test::scripted_model;

// Handles the events of an engine in a thread of its own, as the server's thread does.
class EventThread {
 public:
  EventThread() : thread_([this] { run(); }) {}
  ~EventThread() {
    post({});
    thread_.join();
  }
  EventThread(const EventThread&) = delete;
  EventThread& operator=(const EventThread&) = delete;

  void post(std::function<void()> event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> event;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !events_.empty(); });
        event = std::move(events_.front());
        events_.pop_front();
      }
      if (!event) return;
      event();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> events_;
  std::thread thread_;
};

// Lets steps run one by one; open for all of them at the end.
class Gate {
 public:
  bool pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_ || steps_ > 0; });
    if (!is_open_) --steps_;
    return true;
  }
  void allow(int steps) {
    const std::lock_guard lock(mutex_);
    steps_ += steps;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int steps_ = 0;
  bool is_open_ = false;
};

// What a text has got so far; waits for its events.
class Reader {
 public:
  TextJob job(Engine& engine, const std::shared_ptr<ServedModel>& model, int number,
              int64_t tokens) {
    TextJob job{.id = id = engine.new_id(),
                .model = model,
                .prompt = {test::kFirstDigit + number / 10, test::kFirstDigit + number % 10}};
    job.options.max_tokens = tokens;
    job.on_text = [this](const TextEvent& event) { change([&] { text_ += event.text; }); };
    job.on_end = [this](llm::Generation result) { change([&] { result_ = std::move(result); }); };
    return job;
  }
  bool wait_for_text() {
    return wait([this] { return !text_.empty(); });
  }
  bool wait_for_end() {
    return wait([this] { return result_.has_value(); });
  }
  const std::string& text() const { return text_; }  // after the end
  const llm::Generation& result() const { return *result_; }
  uint64_t id = 0;

 private:
  template <typename Work>
  void change(Work&& work) {
    const std::lock_guard lock(mutex_);
    work();
    changed_.notify_all();
  }
  template <typename Test>
  bool wait(Test&& test) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), test);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::optional<llm::Generation> result_;
};

// How work ended; waits for it.
class Outcome {
 public:
  std::function<void(std::exception_ptr)> setter() {
    return [this](std::exception_ptr failure) {
      const std::lock_guard lock(mutex_);
      failure_ = std::move(failure);
      ++count_;
      changed_.notify_all();
    };
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return count_ > 0; });
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  void rethrow() const { std::rethrow_exception(failure_); }  // after the end
  bool is_failure() const { return failure_ != nullptr; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
  int count_ = 0;
};

class EngineTest : public testing::Test {
 protected:
  EngineOptions options(Script script) {
    EngineOptions result;
    result.parallel = script.parallel;
    result.load = [script](const ServedModel&) { return scripted_model(script); };
    result.post = [this](std::function<void()> event) { events_.post(std::move(event)); };
    return result;
  }
  static void submit(Engine& engine, TextJob job) {
    std::vector<TextJob> jobs;
    jobs.push_back(std::move(job));
    engine.submit(std::move(jobs));
  }
  // Work of which no piece is the last.
  static bool work_for_ever(EngineModel&) { return false; }
  static bool wait_until_empty(const Engine& engine) {
    for (int i = 0; i < 2000 && engine.unfinished() > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return engine.unfinished() == 0;
  }
  static std::string digits(int number) {
    return {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
  }

  // The scripted model needs no file.
  const std::shared_ptr<ServedModel> model_ = std::make_shared<ServedModel>("scripted", "");
  std::deque<Reader> readers_;  // events may come for them after the engine has ended
  Outcome outcome_;
  EventThread events_;
};

TEST_F(EngineTest, TextsOfManyThreadsKeepApart) {
  Engine engine(options({.parallel = 3}));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const int number = t * 20 + i;
        Reader reader;
        submit(engine, reader.job(engine, model_, number, 1 + i));
        engine.cancel(reader.id + 1000000);  // no such text
        (void)engine.state();
        right += reader.wait_for_end() && reader.text() == scripted_answer(digits(number), 1 + i);
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(right, 80);
  EXPECT_EQ(engine.unfinished(), 0u);
  EXPECT_EQ(engine.state().texts_done, 80u);
}

TEST_F(EngineTest, CancelledTextFreesItsPlace) {
  Gate gate;
  Engine engine(options({.parallel = 1, .before_step = [&] { return gate.pass(); }}));
  Reader first, second;
  submit(engine, first.job(engine, model_, 1, 1000000));
  submit(engine, second.job(engine, model_, 2, 3));
  gate.allow(1);
  ASSERT_TRUE(first.wait_for_text());
  // One place: the second text begins only if the first one, which has a million tokens, ends.
  engine.cancel(first.id);
  gate.open();
  ASSERT_TRUE(first.wait_for_end());
  EXPECT_EQ(first.result().reason, llm::StopReason::cancelled);
  ASSERT_TRUE(second.wait_for_end());
  EXPECT_EQ(second.text(), scripted_answer("02", 3));
}

TEST_F(EngineTest, WorkTakesTurnsWithTextsAndOtherWork) {
  Gate gate;
  std::atomic<int> steps = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::string calls;
  int last_step = 0, left = 3;
  Engine engine(options({.parallel = 1, .before_step = [&] {
                           ++steps;
                           return gate.pass();
                         }}));
  Reader text;
  submit(engine, text.job(engine, model_, 1, 50));
  while (steps == 0) std::this_thread::yield();  // the engine waits in its first step
  const auto work = [&](char name, int count) {
    engine.run_with(
        model_,
        [&, name, count](EngineModel&) mutable {
          EXPECT_GT(steps, last_step) << "no step since the last call";
          last_step = steps;
          const std::lock_guard lock(mutex);
          calls += name;
          if (--count > 0) return false;
          --left;
          changed.notify_one();
          return true;
        },
        [](const std::exception_ptr& failure) { EXPECT_FALSE(failure); });
  };
  work('a', 5);
  work('b', 3);
  work('c', 1);
  gate.open();
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return left == 0; }));
    EXPECT_EQ(calls, "abcababaa");
  }
  ASSERT_TRUE(text.wait_for_end());
  EXPECT_EQ(text.text(), scripted_answer("01", 50));
}

TEST_F(EngineTest, AModelWithWorkStaysLoaded) {
  std::atomic<int> loads = 0, calls = 0;
  std::atomic<bool> is_done = false;
  EngineOptions with = options({});
  with.load = [&](const ServedModel&) {
    ++loads;
    return scripted_model({});
  };
  Engine engine(std::move(with));
  engine.keep(model_->name(), 0);
  engine.run_with(
      model_,
      [&](EngineModel&) {
        is_done = ++calls == 5;
        if (is_done) is_done.notify_one();
        return is_done.load();
      },
      [](const std::exception_ptr& failure) { EXPECT_FALSE(failure); });
  is_done.wait(false);
  EXPECT_EQ(loads, 1);
  // After its work it goes, as asked.
  for (int i = 0; i < 2000 && !engine.state().models.empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(engine.state().models.empty());
}

TEST_F(EngineTest, WorkThatFailsEnds) {
  int calls = 0;
  Engine engine(options({}));
  engine.run_with(
      model_,
      [&](EngineModel&) -> bool {
        if (++calls == 2) throw Error(ErrorCode::kInvalidArgument, "the work's own");
        return false;
      },
      outcome_.setter());
  ASSERT_TRUE(outcome_.wait());
  EXPECT_THROW(outcome_.rethrow(), Error);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(engine.state().texts_failed, 1u);
}

TEST_F(EngineTest, WorkTakesPlacesOfTheQueue) {
  Gate gate;
  EngineOptions limited = options({.parallel = 1});
  limited.max_queue = 0;
  Engine engine(limited);
  const auto work = [&](EngineModel&) { return gate.pass(); };
  engine.run_with(model_, work, outcome_.setter());
  Reader text;
  EXPECT_THROW(engine.run_with(model_, work_for_ever, outcome_.setter()), QueueFull);
  EXPECT_THROW(submit(engine, text.job(engine, model_, 1, 2)), QueueFull);
  while (engine.state().texts.empty() || !engine.state().texts[0].is_begun)
    std::this_thread::yield();  // the work waits at the gate
  EXPECT_EQ(engine.state().texts[0].model, model_->name());
  gate.open();
  ASSERT_TRUE(outcome_.wait());
  EXPECT_FALSE(outcome_.is_failure());
  // Its place is free when its end is known.
  submit(engine, text.job(engine, model_, 1, 2));
  EXPECT_TRUE(text.wait_for_end());
  EXPECT_EQ(outcome_.count(), 1);
}

TEST_F(EngineTest, WorkCanBeCancelled) {
  Engine engine(options({}));
  for (int i = 0; i < 3; ++i)
    engine.cancel(engine.run_with(model_, work_for_ever, outcome_.setter()));
  EXPECT_TRUE(wait_until_empty(engine));
  EXPECT_EQ(outcome_.count(), 0);
}

TEST_F(EngineTest, LateWorkEndsWithTimedOut) {
  EngineOptions limited = options({});
  limited.timeout_seconds = 0.05;
  Engine engine(limited);
  engine.run_with(model_, work_for_ever, outcome_.setter());
  ASSERT_TRUE(outcome_.wait());
  EXPECT_THROW(outcome_.rethrow(), TimedOut);
}

TEST_F(EngineTest, TheEndOfTheServerEndsTextsAndWork) {
  Engine engine(options({}));
  Reader text, waiting;
  submit(engine, text.job(engine, model_, 1, int64_t{1} << 40));
  engine.run_with(model_, work_for_ever, outcome_.setter());
  engine.submit({waiting.job(engine, model_, 2, 5)}, work_for_ever);
  engine.end_all();
  ASSERT_TRUE(outcome_.wait());
  EXPECT_THROW(outcome_.rethrow(), ServerEnded);
  for (Reader* each : {&text, &waiting}) {
    ASSERT_TRUE(each->wait_for_end());
    EXPECT_THROW(std::rethrow_exception(each->result().failure), ServerEnded);
  }
}

TEST_F(EngineTest, TextsWaitForTheWorkBeforeThem) {
  std::atomic<bool> is_done = false;
  Engine engine(options({}));
  Reader one, other;
  std::vector<TextJob> jobs = {one.job(engine, model_, 1, 3), other.job(engine, model_, 2, 3)};
  for (TextJob& each : jobs) each.on_begin = [&](double) { EXPECT_TRUE(is_done); };
  engine.submit(std::move(jobs), [&, calls = 0](EngineModel&) mutable {
    is_done = ++calls == 3;
    return is_done.load();
  });
  for (Reader* each : {&one, &other}) ASSERT_TRUE(each->wait_for_end());
  EXPECT_EQ(one.text(), scripted_answer("01", 3));
  EXPECT_EQ(other.text(), scripted_answer("02", 3));
}

TEST_F(EngineTest, TextsFailWithTheWorkBeforeThem) {
  Engine engine(options({}));
  Reader one, other;
  engine.submit({one.job(engine, model_, 1, 3), other.job(engine, model_, 2, 3)},
                [](EngineModel&) -> bool { throw Error(ErrorCode::kNotSupported, "no scores"); });
  for (Reader* each : {&one, &other}) {
    ASSERT_TRUE(each->wait_for_end());
    EXPECT_THROW(std::rethrow_exception(each->result().failure), Error);
  }
  EXPECT_TRUE(wait_until_empty(engine));
}

TEST_F(EngineTest, ATextThatWaitsForWorkCanBeCancelled) {
  Gate gate;
  Engine engine(options({}));
  Reader one, other;
  engine.submit({one.job(engine, model_, 1, 3), other.job(engine, model_, 2, 3)},
                [&, calls = 0](EngineModel&) mutable { return gate.pass() && ++calls == 2; });
  engine.cancel(one.id);
  gate.open();
  ASSERT_TRUE(one.wait_for_end());
  ASSERT_TRUE(other.wait_for_end());
  EXPECT_EQ(one.result().reason, llm::StopReason::cancelled);
  EXPECT_EQ(other.text(), scripted_answer("02", 3));
}

TEST_F(EngineTest, WaitingTextsCanBeCancelled) {
  Gate gate;
  Engine engine(options({.parallel = 1, .before_step = [&] { return gate.pass(); }}));
  Reader first, second;
  submit(engine, first.job(engine, model_, 1, 5));
  submit(engine, second.job(engine, model_, 2, 5));
  engine.cancel(second.id);
  gate.open();
  ASSERT_TRUE(second.wait_for_end());
  ASSERT_TRUE(first.wait_for_end());
  EXPECT_EQ(second.result().reason, llm::StopReason::cancelled);
  EXPECT_EQ(second.text(), "");
  EXPECT_EQ(first.text(), scripted_answer("01", 5));
}

TEST_F(EngineTest, QueueHasALimit) {
  Gate gate;
  EngineOptions limited = options({.parallel = 1, .before_step = [&] { return gate.pass(); }});
  limited.max_queue = 1;
  Engine engine(limited);
  Reader first, second, third;
  submit(engine, first.job(engine, model_, 1, 2));
  submit(engine, second.job(engine, model_, 2, 2));
  EXPECT_THROW(submit(engine, third.job(engine, model_, 3, 2)), QueueFull);
  gate.open();
  ASSERT_TRUE(first.wait_for_end());
  ASSERT_TRUE(second.wait_for_end());
  submit(engine, third.job(engine, model_, 3, 2));
  EXPECT_TRUE(third.wait_for_end());
}

TEST_F(EngineTest, LateTextsEndWithTimedOut) {
  EngineOptions limited = options({.parallel = 1});
  limited.timeout_seconds = 0.05;
  Engine engine(limited);
  Reader reader;
  submit(engine, reader.job(engine, model_, 1, int64_t{1} << 40));
  ASSERT_TRUE(reader.wait_for_end());
  EXPECT_THROW(std::rethrow_exception(reader.result().failure), TimedOut);
}

// A model whose steps throw is dropped: its texts fail, and the next text loads it again.
TEST_F(EngineTest, FailedModelIsLoadedAgain) {
  std::atomic<int> loads = 0;
  EngineOptions failing = options({});
  failing.load = [&](const ServedModel&) {
    Script script;
    if (++loads == 1)
      script.before_step = []() -> bool { throw Error(ErrorCode::kDriver, "a broken step"); };
    return scripted_model(script);
  };
  Engine engine(failing);
  Reader first, second;
  submit(engine, first.job(engine, model_, 1, 2));
  ASSERT_TRUE(first.wait_for_end());
  EXPECT_THROW(std::rethrow_exception(first.result().failure), Error);
  submit(engine, second.job(engine, model_, 2, 2));
  ASSERT_TRUE(second.wait_for_end());
  EXPECT_EQ(second.text(), scripted_answer("02", 2));
  EXPECT_EQ(loads, 2);
}

// Otherwise it would go at once if loading takes longer than --idle-unload.
TEST_F(EngineTest, AModelIsIdleFromTheEndOfItsLoad) {
  EngineOptions slow = options({});
  slow.load = [](const ServedModel&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return scripted_model({});
  };
  Engine engine(slow);
  engine.load(model_, outcome_.setter());
  ASSERT_TRUE(outcome_.wait());
  const EngineState state = engine.state();
  ASSERT_EQ(state.models.size(), 1u);
  EXPECT_LT(state.models[0].idle_seconds, 0.4);
}

TEST_F(EngineTest, EndsWhileTextsRun) {
  readers_.resize(8);
  Engine engine(options({.parallel = 2}));
  for (Reader& each : readers_) submit(engine, each.job(engine, model_, 1, int64_t{1} << 40));
  EXPECT_TRUE(readers_[0].wait_for_text());
}

}  // namespace
}  // namespace prism::server
