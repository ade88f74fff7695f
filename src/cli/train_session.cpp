// The checks and the loop of `prism train`.
#include "cli/train_session.h"

#include <array>
#include <iostream>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "prism/error.h"

namespace prism::cli {

void check_settings(const TrainSettings& s) {
  const auto check = [](const char* option, double value, double most) {
    if (!(value >= 0 && value <= most))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} {}: give a number from 0 to {}", option, value, most));
  };
  check("--lr", static_cast<double>(s.rate), 10);
  check("--clip", static_cast<double>(s.clip), 1e9);
  check("--validation", static_cast<double>(s.validation), 0.9);
  if (s.weight_decay != -1) check("--weight-decay", static_cast<double>(s.weight_decay), 10);
  if (s.dropout != -1) check("--dropout", static_cast<double>(s.dropout), 0.99);
}

llm::ModelRunOptions run_options(const TrainSettings& s, llm::ModelRunOptions options) {
  if (s.batch > 0) options.batch = s.batch;
  if (s.steps > 0) options.steps = s.steps;
  options.accumulate = s.accumulate;
  options.warmup = s.warmup;
  if (s.rate > 0) options.rate = static_cast<double>(s.rate);
  if (s.weight_decay >= 0) options.weight_decay = static_cast<double>(s.weight_decay);
  options.clip = static_cast<double>(s.clip);
  options.seed = s.seed;
  options.detect_anomaly = s.detect_anomaly;
  options.recompute = s.recompute;
  options.validation = static_cast<double>(s.validation);
  options.validate_every = s.validate_every;
  options.save_every = s.save_every;
  options.patience = s.patience;
  options.checkpoint = s.checkpoint;
  return options;
}

std::string exact_text(int64_t count) { return exact_count_text(static_cast<uint64_t>(count)); }

void say(const TrainSettings& s, const std::string& line) {
  if (!s.quiet) std::cerr << line << "\n";
}

void say_estimate(const TrainSettings& s, llm::ModelRun& run, const nn::LoopSettings& loop,
                  const Device& device) {
  const llm::RunMemory memory = run.estimate_memory();
  llm::check_memory(memory.needed, device);
  if (s.quiet) return;
  const int64_t left = loop.steps - run.parts().optimizers[0]->steps();
  const double seconds = run.estimate_seconds(left, left / loop.validate_every);
  say(s, fmt::format("needs about {} of memory, of which {} are free, and about {}",
                     size_text(memory.present + memory.needed), size_text(device.free_bytes()),
                     duration_text(seconds)));
}

SessionEnd run_session(const TrainSettings& s, llm::ModelRun& run, const nn::LoopSettings& settings,
                       const std::function<void()>& before_steps) {
  nn::TrainingLog log(s.log);
  const InterruptGuard guard;
  nn::LoopEvents events;
  if (run.has_validation()) events.validate = [&] { return run.validate(); };
  events.interrupted = [&] { return guard.interrupted(); };
  if (!s.quiet)
    events.report = [&](const nn::LoopReport& report) {
      if (!report.validation) return progress(report.line);
      end_progress();
      say(s, report.line);
    };
  events.log = &log;
  nn::TrainingLoop loop(run.parts(), settings, events);
  if (s.resume) loop.resume();
  before_steps();
  if (s.resume) say(s, fmt::format("continues after step {}", exact_text(loop.steps())));
  const nn::LoopEnd end = loop.run();
  end_progress();
  if (!s.svg.empty()) log.write_svg(s.svg, {"loss", "validation"});
  if (end == nn::LoopEnd::interrupted) {
    std::cerr << fmt::format(
        "stopped after step {}; the same command with --resume continues from {}\n",
        exact_text(loop.steps()), s.checkpoint);
    return {.interrupted = guard.status(), .summary = {}};
  }
  loop.use_best();
  return {
      {},
      fmt::format("{} steps{}{}", exact_text(loop.steps()),
                  end == nn::LoopEnd::stopped_early ? " (stopped early)" : "",
                  run.has_validation() ? fmt::format(", validation loss {:.4f} of step {}",
                                                     loop.best_loss(), exact_text(loop.best_step()))
                                       : "")};
}

void print_samples(const TrainSettings& s, const std::string& path,
                   const std::vector<llm::LoraAdapter>& adapters, const std::string& prompt) {
  if (s.samples == 0) return;
  llm::LoadOptions how;
  how.fit.device = s.device;
  how.adapters = adapters;
  llm::LanguageModel model = llm::LanguageModel::load(path, how);
  const bool answers = !adapters.empty() && model.has_chat_template();
  const std::array messages = {llm::ChatMessage{.role = "user", .content = prompt}};
  for (int64_t i = 0; i < (s.samples < 0 ? 1 : s.samples); ++i) {
    llm::GenerationOptions options{.max_tokens = s.sample_tokens, .shift_context = true};
    options.sampler.seed = s.seed + static_cast<uint64_t>(i);
    std::cout << "\n"
              << (answers ? model.chat(messages, options).text
                          : prompt + model.generate(prompt, options).text)
              << "\n";
  }
}

}  // namespace prism::cli
