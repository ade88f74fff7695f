// Tests how the engine loads several models when memory is short: with doubles that take memory by
// a script, and with real models.
#include <condition_variable>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "server/engine/engine.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/running_server.h"

namespace prism::server {
namespace {

// Memory of 100 units, and models that take some of it while they are loaded.
struct Machine {
  std::mutex mutex;
  int free = 100;
  bool reports_free = true;  // false: only loading finds that memory is short
  std::vector<std::string> loads, unloads;
};

// A model whose texts end when they are let go on.
class Double : public EngineModel {
 public:
  Double(Machine& machine, std::string name, int takes)
      : machine_(machine), name_(std::move(name)), takes_(takes) {}
  ~Double() override {
    const std::lock_guard lock(machine_.mutex);
    machine_.free += takes_;
    machine_.unloads.push_back(name_);
  }
  int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions&,
              const llm::TextCallback&) override {
    runs_for_ever_ = prompt.at(0) == 1;
    return 0;
  }
  bool step() override { return true; }
  bool is_finished(int64_t) const override { return !runs_for_ever_; }
  llm::Generation take(int64_t) override { return {}; }
  void cancel(int64_t) override { runs_for_ever_ = false; }
  std::vector<std::vector<float>> embed(std::span<const std::string>,
                                        const llm::EmbedOptions&) override {
    return {};
  }
  Facts facts() const override {
    Facts facts;
    facts.parallel = 3;
    facts.context = takes_;
    return facts;
  }

 private:
  Machine& machine_;
  std::string name_;
  int takes_;
  bool runs_for_ever_ = false;
};

class EngineModels : public testing::Test {
 protected:
  EngineModels() {
    EngineOptions options;
    options.load = [this](const ServedModel& model) -> std::unique_ptr<EngineModel> {
      const int takes = std::stoi(model.path());
      const std::lock_guard lock(machine_.mutex);
      if (takes > machine_.free) throw Error(ErrorCode::kOutOfMemory, "too little memory");
      machine_.free -= takes;
      machine_.loads.push_back(model.name());
      return std::make_unique<Double>(machine_, model.name(), takes);
    };
    options.has_room = [this](const ServedModel& model) {
      const std::lock_guard lock(machine_.mutex);
      return !machine_.reports_free || std::stoi(model.path()) <= machine_.free;
    };
    options.post = [](const std::function<void()>& event) { event(); };
    engine_.emplace(std::move(options));
  }
  // Runs one text and returns its result; runs_on: only begins it.
  llm::Generation run(const std::string& name, int takes, bool runs_on = false) {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_done = false;
    llm::Generation result;
    const auto done = [&](llm::Generation made) {
      const std::lock_guard lock(mutex);
      result = std::move(made);
      is_done = true;
      changed.notify_one();
    };
    TextJob job;
    job.id = engine_->new_id();
    job.model = std::make_shared<ServedModel>(name, std::to_string(takes));
    job.prompt = {runs_on ? 1 : 0};
    if (runs_on)
      job.on_begin = [&](double) { done({}); };
    else
      job.on_end = done;
    last_id_ = job.id;
    std::vector<TextJob> jobs;
    jobs.push_back(std::move(job));
    engine_->submit(std::move(jobs));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_done; });
    return result;
  }
  using Names = std::vector<std::string>;
  Names loads() {
    const std::lock_guard lock(machine_.mutex);
    return machine_.loads;
  }
  Names unloads() {
    const std::lock_guard lock(machine_.mutex);
    return machine_.unloads;
  }

  Machine machine_;
  std::optional<Engine> engine_;
  uint64_t last_id_ = 0;
};

TEST_F(EngineModels, AreLoadedOnceAtTheirFirstText) {
  EXPECT_TRUE(loads().empty());
  for (int i = 0; i < 2; ++i) {
    run("a", 40);
    run("b", 40);
  }
  EXPECT_EQ(loads(), (Names{"a", "b"}));
  EXPECT_TRUE(unloads().empty());
  EXPECT_EQ(engine_->state().parallel, 3);
}

TEST_F(EngineModels, ATextHasTheContextOfItsModel) {
  run("a", 40, true);
  const uint64_t first = last_id_;
  run("b", 30, true);
  const EngineState state = engine_->state();
  ASSERT_EQ(state.texts.size(), 2u);
  EXPECT_EQ(state.texts[0].context, 40);
  EXPECT_EQ(state.texts[1].context, 30);
  engine_->cancel(first);
  engine_->cancel(last_id_);
}

TEST_F(EngineModels, TheLeastRecentlyUsedMakesRoom) {
  run("a", 40);
  run("b", 40);
  run("a", 40);
  run("c", 60);
  EXPECT_EQ(unloads(), Names{"b"});
  run("d", 90);
  EXPECT_EQ(unloads(), (Names{"b", "a", "c"}));
  EXPECT_EQ(loads(), (Names{"a", "b", "c", "d"}));
}

TEST_F(EngineModels, MakesRoomWhenLoadingFails) {
  machine_.reports_free = false;
  run("a", 40);
  run("b", 40);
  run("c", 50);
  EXPECT_EQ(unloads(), Names{"a"});
  EXPECT_EQ(loads(), (Names{"a", "b", "c"}));
}

TEST_F(EngineModels, ABusyModelStays) {
  for (const bool reports_free : {true, false}) {
    machine_.reports_free = reports_free;
    run("busy", 60, true);
    const uint64_t busy = last_id_;
    const llm::Generation refused = run("c", 70);
    ASSERT_EQ(refused.reason, llm::StopReason::failed);
    try {
      std::rethrow_exception(refused.failure);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      EXPECT_NE(std::string(error.what()).find("try again"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(unloads().empty());
    engine_->cancel(busy);
    run("busy", 60);  // the cancelled text ends in the same step
    EXPECT_EQ(run("c", 70).reason, llm::StopReason::end_token);
    EXPECT_EQ(unloads(), Names{"busy"});
    run("busy", 60);
    const std::lock_guard lock(machine_.mutex);
    machine_.unloads.clear();
  }
}

TEST_F(EngineModels, AModelLargerThanTheMachineIsRefused) {
  run("a", 40);
  EXPECT_EQ(run("huge", 101).reason, llm::StopReason::failed);
  EXPECT_EQ(run("a", 40).reason, llm::StopReason::end_token);
}

TEST(EngineModelsServer, RealModelsTakeTurnsInTooLittleMemory) {
  const std::string path = test::shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  ServerOptions options = test::RunningServer::with_model(path);
  options.models = {{"one", path}, {"two", path}};
  // The margin leaves room for one model at a time, by the script below.
  int loaded = 0, most = 0;
  struct Counted : EngineModel {
    Counted(std::unique_ptr<EngineModel> of, int& count) : of_(std::move(of)), count_(count) {}
    ~Counted() override { --count_; }
    int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions& how,
                const llm::TextCallback& on_text) override {
      return of_->add(std::move(prompt), how, on_text);
    }
    bool step() override { return of_->step(); }
    bool is_finished(int64_t id) const override { return of_->is_finished(id); }
    llm::Generation take(int64_t id) override { return of_->take(id); }
    void cancel(int64_t id) override { of_->cancel(id); }
    std::vector<std::vector<float>> embed(std::span<const std::string> texts,
                                          const llm::EmbedOptions& how) override {
      return of_->embed(texts, how);
    }
    Facts facts() const override { return of_->facts(); }
    std::unique_ptr<EngineModel> of_;
    int& count_;
  };
  const llm::LoadOptions load = options.load;
  options.load_model = [&, load](const ServedModel& model) -> std::unique_ptr<EngineModel> {
    if (loaded == 1) throw Error(ErrorCode::kOutOfMemory, "room for one model");
    auto made = engine_model(llm::LanguageModel::load(model.path(), load));
    most = std::max(most, ++loaded);
    return std::make_unique<Counted>(std::move(made), loaded);
  };
  std::vector<std::string> texts;
  {
    const test::RunningServer server(std::move(options));
    for (const char* name : {"one", "two", "one"}) {
      const auto reply =
          server.post("/v1/completions", std::string(R"({"model": ")") + name +
                                             R"(", "prompt": "Once upon a time", )"
                                             R"("max_tokens": 8, "temperature": 0})");
      EXPECT_EQ(reply.status, 200) << reply.body;
      const size_t at = reply.body.find("\"text\"");
      texts.push_back(reply.body.substr(at, reply.body.find(',', at) - at));
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(loaded, 0);
}

}  // namespace
}  // namespace prism::server
