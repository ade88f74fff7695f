// Runs the steps of the models, and carries requests and events to and from them.
#include "server/engine/engine.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "base/system/start_thread.h"
#include "prism/error.h"

namespace prism::server {

struct Engine::Text {
  TextJob job;
  Clock::time_point deadline = Clock::time_point::max();
  Loaded* loaded = nullptr;  // null: not accepted yet
  int64_t model_id = 0;
  int64_t generated = 0;
  bool is_late = false;
};

struct Engine::Loaded {
  std::string name;
  std::unique_ptr<EngineModel> model;
  EngineModel::Facts facts;
  std::vector<std::shared_ptr<Text>> texts;
  bool is_lost = false;  // with its device: the next text loads the model again
  Clock::time_point last_use = Clock::now();
  std::optional<double> keep_seconds;  // of keep()
};

namespace {

llm::Generation failure(std::exception_ptr reason) {
  llm::Generation result;
  result.reason = llm::StopReason::failed;
  result.failure = std::move(reason);
  return result;
}

bool is_device_lost(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kDeviceLost;
  } catch (...) {
  }
  return false;
}

}  // namespace

llm::Ranking EngineModel::rerank(std::string_view, std::span<const std::string>) {
  throw Error(ErrorCode::kNotSupported, "rerank: this model ranks no texts");
}

std::vector<llm::TokenScore> EngineModel::score(std::span<const int32_t>, int64_t) {
  throw Error(ErrorCode::kNotSupported, "score: this model has no log-probabilities of prompts");
}

Engine::Engine(EngineOptions options) : options_(std::move(options)) {
  parallel_ = std::max<int64_t>(options_.parallel, 1);
  state_.parallel = parallel_;
  thread_ = start_thread("server", [this] { run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Engine::submit(std::vector<TextJob> jobs) {
  {
    const std::lock_guard lock(mutex_);
    if (unfinished_ + jobs.size() > static_cast<size_t>(parallel_ + options_.max_queue))
      throw QueueFull();
    unfinished_ += jobs.size();
    const auto now = Clock::now();
    for (TextJob& job : jobs) {
      auto text = std::make_shared<Text>();
      text->job = std::move(job);
      if (options_.timeout_seconds > 0)
        text->deadline = now + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(options_.timeout_seconds));
      commands_.push_back([this, text] { begin(text); });
    }
  }
  wake_.notify_one();
}

void Engine::cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this, id] {
      if (const auto found = texts_.find(id); found != texts_.end())
        found->second->loaded->model->cancel(found->second->model_id);
    });
  }
  wake_.notify_one();
}

void Engine::end_all() {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this] {
      has_ended_ = true;
      for (auto& [id, text] : texts_)
        if (!std::exchange(text->is_late, true)) text->loaded->model->cancel(text->model_id);
    });
  }
  wake_.notify_one();
}

void Engine::run_with(std::shared_ptr<ServedModel> model, Work work,
                      std::function<void(std::exception_ptr)> failed) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(
        [this, side = SideWork{std::move(model), std::move(work), std::move(failed)}]() mutable {
          work_.push_back(std::move(side));
        });
  }
  wake_.notify_one();
}

void Engine::keep(const std::string& model, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this, model, seconds] { asked_keep_[model] = seconds; });
  }
  wake_.notify_one();
}

void Engine::unload(const std::string& model) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this, model] {
      if (const auto found = models_.find(model); found != models_.end())
        found->second->keep_seconds = 0;
    });
  }
  wake_.notify_one();
}

EngineState Engine::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

// --- the engine's thread

void Engine::run() {
  for (;;) {
    if (!take_commands()) return;
    continue_work();
    for (auto& [name, each] : models_)
      if (!each->texts.empty()) step(*each);
    cancel_late();
    unload_idle();
    publish();
    flush_events();
  }
}

bool Engine::has_work() const { return !texts_.empty() || !work_.empty(); }

bool Engine::has_work_for(const Loaded& on) const {
  return !on.texts.empty() || std::ranges::any_of(work_, [&](const SideWork& each) {
    return each.model->name() == on.name;
  });
}

void Engine::continue_work() {
  if (work_.empty()) return;
  SideWork& side = work_.front();
  bool is_done = true;
  try {
    Loaded& with = use(*side.model);
    publish();  // an answer of the work must not be ahead of the state
    is_done = side.work(*with.model);
    with.last_use = Clock::now();
  } catch (...) {
    side.failed(std::current_exception());
  }
  if (!is_done) work_.push_back(std::move(side));
  work_.pop_front();
}

bool Engine::take_commands() {
  std::vector<std::function<void()>> commands;
  {
    std::unique_lock lock(mutex_);
    const auto is_called = [this] { return is_stopping_ || !commands_.empty(); };
    if (!has_work()) {
      const auto is_timed = [this](const auto& each) {
        return kept_seconds(*each.second) < std::numeric_limits<double>::infinity();
      };
      if (std::ranges::any_of(models_, is_timed))
        wake_.wait_for(lock, std::chrono::milliseconds(500), is_called);
      else
        wake_.wait(lock, is_called);
    }
    if (is_stopping_) return false;
    commands.swap(commands_);
  }
  // What a command holds (an answer, a connection) is released before the next one runs.
  for (auto& each : commands) std::exchange(each, {})();
  return true;
}

Engine::Loaded& Engine::loaded(const ServedModel& model) {
  if (const auto known = models_.find(model.name()); known != models_.end()) return *known->second;
  while (options_.has_room && !options_.has_room(model) && unload_oldest()) {
  }
  auto fresh = std::make_unique<Loaded>();
  fresh->name = model.name();
  while (!fresh->model) {
    try {
      fresh->model = options_.load(model);
    } catch (const std::exception& failed) {
      const auto* error = dynamic_cast<const Error*>(&failed);
      const bool is_memory = error ? error->code() == ErrorCode::kOutOfMemory
                                   : dynamic_cast<const std::bad_alloc*>(&failed) != nullptr;
      if (is_memory && unload_oldest()) continue;
      if (!is_memory || models_.empty()) throw;
      throw Error(
          ErrorCode::kOutOfMemory,
          fmt::format("{}. {} other models have texts and keep their memory; try again when "
                      "they are done",
                      failed.what(), models_.size()));
    }
  }
  fresh->facts = fresh->model->facts();
  if (options_.parallel == 0) parallel_ = std::max<int64_t>(parallel_, fresh->facts.parallel);
  if (options_.on_load) options_.on_load(model, fresh->facts);
  return *(models_[model.name()] = std::move(fresh));
}

Engine::Loaded& Engine::use(const ServedModel& model) {
  Loaded& on = loaded(model);
  if (const auto asked = asked_keep_.extract(model.name())) on.keep_seconds = asked.mapped();
  return on;
}

bool Engine::unload_oldest() {
  auto oldest = models_.end();
  for (auto each = models_.begin(); each != models_.end(); ++each)
    if (!has_work_for(*each->second) &&
        (oldest == models_.end() || each->second->last_use < oldest->second->last_use))
      oldest = each;
  if (oldest == models_.end()) return false;
  models_.erase(oldest);
  return true;
}

void Engine::begin(const std::shared_ptr<Text>& text) {
  try {
    const bool is_loaded = models_.contains(text->job.model->name());
    Loaded& on = use(*text->job.model);
    // The callback is called on this thread, within step().
    const auto on_text = [this, at = text.get()](const llm::TextPiece& piece) {
      at->generated += static_cast<int64_t>(piece.tokens.size());
      events_.push_back({texts_.at(at->job.id),
                         {std::string(piece.text),
                          {piece.tokens.begin(), piece.tokens.end()},
                          {piece.scores.begin(), piece.scores.end()}},
                         {}});
      return true;
    };
    if (text->job.on_prompt)
      text->job.options.on_prompt = [this, at = text.get()](const llm::PromptProgress& progress) {
        emit([text = texts_.at(at->job.id), progress] { text->job.on_prompt(progress); });
      };
    text->model_id = on.model->add(text->job.prompt, text->job.options, on_text);
    text->loaded = &on;
    on.texts.push_back(text);
    texts_.emplace(text->job.id, text);
    emit([text, load_seconds = is_loaded ? 0 : on.facts.load_seconds] {
      if (text->job.on_begin) text->job.on_begin(load_seconds);
    });
  } catch (...) {
    end(text, failure(std::current_exception()));
  }
}

void Engine::end(const std::shared_ptr<Text>& text, llm::Generation result) {
  if (text->is_late && result.reason == llm::StopReason::cancelled) {
    result.reason = llm::StopReason::failed;
    result.failure =
        has_ended_ ? std::make_exception_ptr(ServerEnded()) : std::make_exception_ptr(TimedOut());
  }
  if (text->loaded && is_device_lost(result.failure)) text->loaded->is_lost = true;
  ++(result.reason == llm::StopReason::failed ? counters_.texts_failed : counters_.texts_done);
  const llm::GenerationStatistics& s = result.statistics;
  counters_.prompt_tokens += static_cast<uint64_t>(s.prompt_tokens);
  counters_.reused_tokens += static_cast<uint64_t>(s.reused_tokens);
  counters_.generated_tokens += static_cast<uint64_t>(s.generated_tokens);
  counters_.longest_text =
      std::max(counters_.longest_text, static_cast<uint64_t>(s.prompt_tokens + s.generated_tokens));
  counters_.proposed_tokens += static_cast<uint64_t>(s.proposed_tokens);
  counters_.accepted_tokens += static_cast<uint64_t>(s.accepted_tokens);
  counters_.prompt_seconds += s.prompt_seconds;
  counters_.generation_seconds += s.generation_seconds;
  texts_.erase(text->job.id);
  --unfinished_;
  emit([text, result = std::move(result)]() mutable {
    if (text->job.on_end) text->job.on_end(std::move(result));
  });
}

void Engine::step(Loaded& on) {
  ++counters_.steps;
  counters_.text_steps += on.texts.size();
  std::exception_ptr failed;
  try {
    on.model->step();
  } catch (...) {
    // A model reports the failure of a text in its result. This one is unusable.
    failed = std::current_exception();
  }
  std::vector<std::shared_ptr<Text>> left;
  for (std::shared_ptr<Text>& text : on.texts) {
    if (on.model->is_finished(text->model_id))
      end(text, on.model->take(text->model_id));
    else if (failed)
      end(text, failure(failed));
    else
      left.push_back(std::move(text));
  }
  on.texts = std::move(left);
  on.last_use = Clock::now();
  if (failed) on.model.reset();
}

void Engine::cancel_late() {
  const auto now = Clock::now();
  for (auto& [id, text] : texts_)
    if (now > text->deadline && !std::exchange(text->is_late, true))
      text->loaded->model->cancel(text->model_id);
}

double Engine::kept_seconds(const Loaded& on) const {
  const double never = std::numeric_limits<double>::infinity();
  if (on.keep_seconds) return *on.keep_seconds < 0 ? never : *on.keep_seconds;
  return options_.idle_unload_seconds > 0 ? options_.idle_unload_seconds : never;
}

void Engine::unload_idle() {
  const auto now = Clock::now();
  std::erase_if(models_, [&](const auto& each) {
    const Loaded& on = *each.second;
    if (!on.texts.empty()) return false;
    if (!on.model || on.is_lost) return true;
    return !has_work_for(on) &&
           std::chrono::duration<double>(now - on.last_use).count() >= kept_seconds(on);
  });
}

void Engine::publish() {
  EngineState state = counters_;
  state.parallel = parallel_;
  for (const auto& [id, text] : texts_)
    state.texts.push_back({id, text->job.model->name(),
                           static_cast<int64_t>(text->job.prompt.size()), text->generated,
                           text->job.options.max_tokens, text->generated > 0});
  const auto now = Clock::now();
  for (const auto& [name, each] : models_) {
    const double idle =
        each->texts.empty() ? std::chrono::duration<double>(now - each->last_use).count() : 0;
    const double kept = kept_seconds(*each);
    state.models.push_back(
        {name, each->facts, idle,
         kept < std::numeric_limits<double>::infinity() ? std::max(kept - idle, 0.0) : -1});
  }
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

void Engine::flush_events() {
  if (events_.empty()) return;
  options_.post([events = std::exchange(events_, {})]() mutable {
    for (Event& each : events) {
      if (each.other)
        each.other();
      else if (each.to->job.on_text)
        each.to->job.on_text(std::move(each.text));
    }
  });
}

}  // namespace prism::server
