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
  Loaded* loaded = nullptr;  // null: it waits for work or for its model
  int64_t model_id = 0;
  int64_t generated = 0;
  bool is_only_work = false;  // ends when its work is done
  bool is_working = false;    // that work has begun
  bool is_cancelled = false;  // while it waits for work
  bool is_late = false;
};

struct Engine::Loaded {
  std::shared_ptr<ServedModel> served;
  std::unique_ptr<EngineModel> model;
  EngineModel::Facts facts;
  int64_t moves = 0;  // when the facts were read
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
  lifetime_.reset();
}

void Engine::submit(std::vector<TextJob> jobs, Work before) {
  std::vector<std::shared_ptr<Text>> texts;
  for (TextJob& job : jobs) {
    texts.push_back(std::make_shared<Text>());
    texts.back()->job = std::move(job);
  }
  add(std::move(texts), std::move(before));
}

uint64_t Engine::run_with(std::shared_ptr<ServedModel> model, Work work,
                          std::function<void(std::exception_ptr)> done) {
  const auto text = std::make_shared<Text>();
  text->is_only_work = true;
  text->job.id = new_id();
  text->job.model = std::move(model);
  text->job.on_end = [done = std::move(done)](const llm::Generation& result) {
    if (result.reason != llm::StopReason::cancelled) done(result.failure);
  };
  add({text}, std::move(work));
  return text->job.id;
}

void Engine::add(std::vector<std::shared_ptr<Text>> texts, Work before) {
  {
    const std::lock_guard lock(mutex_);
    if (unfinished_ + texts.size() > static_cast<size_t>(parallel_ + options_.max_queue))
      throw QueueFull();
    unfinished_ += texts.size();
    if (options_.timeout_seconds > 0)
      for (const auto now = Clock::now(); const std::shared_ptr<Text>& each : texts)
        each->deadline = now + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(options_.timeout_seconds));
    commands_.push_back([this, texts = std::move(texts), before = std::move(before)]() mutable {
      for (const std::shared_ptr<Text>& each : texts) texts_.emplace(each->job.id, each);
      if (before) return work_.push_back({std::move(before), std::move(texts)});
      for (const std::shared_ptr<Text>& each : texts) begin(each);
    });
  }
  wake_.notify_one();
}

void Engine::cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this, id] {
      if (const auto found = texts_.find(id); found != texts_.end()) stop(*found->second);
    });
  }
  wake_.notify_one();
}

void Engine::end_all() {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this] {
      has_ended_ = true;
      for (auto& [id, text] : texts_) stop_late(*text);
    });
  }
  wake_.notify_one();
}

void Engine::load(std::shared_ptr<ServedModel> model,
                  std::function<void(std::exception_ptr)> done) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back([this, model = std::move(model), done = std::move(done)] {
      std::exception_ptr failed;
      try {
        loaded(model);
        publish();
      } catch (...) {
        failed = std::current_exception();
      }
      emit([done, failed] { done(failed); });
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
    end_cancelled_work();
    continue_work();
    for (auto& [name, each] : models_)
      if (!each->texts.empty()) step(*each);
    cancel_late();
    unload_idle();
    notice_moves();
    publish();
    flush_events();
  }
}

bool Engine::has_work_for(const Loaded& on) const {
  return !on.texts.empty() || std::ranges::any_of(work_, [&](const SideWork& each) {
    return each.texts.front()->job.model->name() == on.served->name();
  });
}

void Engine::continue_work() {
  if (work_.empty()) return;
  SideWork& first = work_.front();  // until it is done, its model has work
  bool is_done = false;
  std::exception_ptr failed;
  Loaded* with = nullptr;
  try {
    with = &use(first.texts.front()->job.model);
    for (const std::shared_ptr<Text>& each : first.texts) each->is_working = true;
    publish();  // the work may take long
    const auto begun = Clock::now();
    is_done = first.work(*with->model);
    with->last_use = Clock::now();
    counters_.prompt_seconds += std::chrono::duration<double>(with->last_use - begun).count();
  } catch (...) {
    failed = std::current_exception();
    if (with && is_device_lost(failed)) with->is_lost = true;
  }
  SideWork side = std::move(first);
  work_.pop_front();
  if (!is_done && !failed) return work_.push_back(std::move(side));
  for (const std::shared_ptr<Text>& each : side.texts)
    if (failed)
      end(each, failure(failed));
    else if (each->is_only_work)
      end(each, {});
    else
      begin(each);
}

void Engine::count_step(int64_t tokens) {
  ++counters_.steps;
  ++counters_.text_steps;
  counters_.prompt_tokens += static_cast<uint64_t>(tokens);
}

void Engine::end_cancelled_work() {
  llm::Generation cancelled;
  cancelled.reason = llm::StopReason::cancelled;
  for (SideWork& side : work_) {
    for (const std::shared_ptr<Text>& each : side.texts)
      if (each->is_cancelled) end(each, cancelled);
    std::erase_if(side.texts, [](const auto& each) { return each->is_cancelled; });
  }
  std::erase_if(work_, [](const SideWork& side) { return side.texts.empty(); });
}

bool Engine::take_commands() {
  std::vector<std::function<void()>> commands;
  {
    std::unique_lock lock(mutex_);
    const auto is_called = [this] { return is_stopping_ || !commands_.empty(); };
    if (texts_.empty()) {
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

Engine::Loaded& Engine::loaded(const std::shared_ptr<ServedModel>& model) {
  if (const auto known = models_.find(model->name()); known != models_.end()) return *known->second;
  while (options_.has_room && !options_.has_room(*model) && unload_oldest()) {
  }
  auto fresh = std::make_unique<Loaded>();
  fresh->served = model;
  publish();  // loading takes long
  while (!fresh->model) {
    try {
      fresh->model = options_.load(*model);
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
  read_facts(*fresh);
  fresh->last_use = Clock::now();
  return *(models_[model->name()] = std::move(fresh));
}

void Engine::read_facts(Loaded& on) {
  on.moves = on.model->moves();
  on.facts = on.model->facts();
  if (options_.parallel == 0) parallel_ = std::max<int64_t>(parallel_, on.facts.parallel);
  if (options_.on_load) options_.on_load(*on.served, on.facts);
}

void Engine::notice_moves() {
  for (auto& [name, each] : models_) {
    if (each->model->moves() == each->moves) continue;
    try {
      read_facts(*each);
    } catch (const Error&) {
      each->is_lost = true;  // the devices to which it moved have failed, too
    }
  }
}

Engine::Loaded& Engine::use(const std::shared_ptr<ServedModel>& model) {
  Loaded& on = loaded(model);
  if (const auto asked = asked_keep_.extract(model->name())) on.keep_seconds = asked.mapped();
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
    Loaded& on = use(text->job.model);
    // The callback is called on this thread, within step().
    const auto on_text = [this, at = text.get()](const llm::TextPiece& piece) {
      at->generated += static_cast<int64_t>(piece.tokens.size());
      TextEvent event{std::string(piece.text),
                      {piece.tokens.begin(), piece.tokens.end()},
                      {piece.scores.begin(), piece.scores.end()}};
      if (at->job.wants_statistics && piece.statistics) event.statistics = *piece.statistics;
      events_.push_back({texts_.at(at->job.id), std::move(event), {}});
      return true;
    };
    if (text->job.on_prompt)
      text->job.options.on_prompt = [this, at = text.get()](const llm::PromptProgress& progress) {
        emit([text = texts_.at(at->job.id), progress] { text->job.on_prompt(progress); });
      };
    text->loaded = &on;
    text->model_id = on.model->add(text->job.prompt, text->job.options, on_text);
    on.texts.push_back(text);
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
  counters_.proposals += static_cast<uint64_t>(s.proposals);
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

void Engine::stop(Text& text) {
  if (text.loaded)
    text.loaded->model->cancel(text.model_id);
  else
    text.is_cancelled = true;
}

void Engine::stop_late(Text& text) {
  if (!std::exchange(text.is_late, true)) stop(text);
}

void Engine::cancel_late() {
  const auto now = Clock::now();
  for (auto& [id, text] : texts_)
    if (now > text->deadline) stop_late(*text);
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
  for (const auto& [id, text] : texts_) {
    const std::string& model = text->job.model->name();
    const auto on = models_.find(model);
    state.texts.push_back({id, model, static_cast<int64_t>(text->job.prompt.size()),
                           text->generated, text->job.options.max_tokens,
                           text->generated > 0 || text->is_working,
                           on == models_.end() ? 0 : on->second->facts.context});
  }
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
  options_.post(
      [events = std::exchange(events_, {}), lifetime = std::weak_ptr(lifetime_)]() mutable {
        if (lifetime.expired()) return;
        for (Event& each : events) {
          if (each.other)
            each.other();
          else if (each.to->job.on_text)
            each.to->job.on_text(std::move(each.text));
        }
      });
}

}  // namespace prism::server
