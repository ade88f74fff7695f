// `prism chat`: a conversation with a model.
#include <iostream>

#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/line_reader.h"
#include "cli/model_arguments.h"
#include "cli/sampling_arguments.h"
#include "cli/terminal.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  std::string system, load;
};

constexpr const char* kHelp = R"(/help            these words
/clear           forget the conversation
/retry           answer the last question anew
/system TEXT     what the model is told first; without TEXT: show it
/save FILE       write the conversation to a file
/load FILE       go on with one
/stats           tokens, speed and memory of the last answer
/device          the device the model is on, and why
/exit            end (also Ctrl-D)
@FILE in a message is replaced by the file. A line that ends in \ goes on in the next; a line with """ alone begins and ends a message of several lines. Ctrl-C ends an answer.
)";

class Chat {
 public:
  explicit Chat(const Options& options)
      : options_(options),
        generation_(generation_options(options.sampling)),
        model_(open_model(options.model)),
        lines_("chat_history") {
    if (!model_.has_chat_template())
      throw Error(
          ErrorCode::kNotSupported,
          "chat: the model has no chat template; `prism run --raw` continues texts with it");
    if (!options.system.empty()) set_system(options.system);
    if (!options.load.empty()) messages_ = load_messages(options.load);
  }

  int run() {
    if (!options_.model.quiet) std::cerr << "/help tells what can be done here\n";
    while (const std::optional<std::string> typed = read_message()) {
      if (typed->empty()) continue;
      try {
        if (typed->front() == '/') {
          if (!command(*typed)) break;
        } else {
          messages_.push_back({.role = "user", .content = with_files(*typed)});
          answer();
        }
      } catch (const Error& error) {
        std::cerr << paint(Colour::red, "error: ", Stream::error) << error.what() << "\n";
      }
    }
    return kRight;
  }

 private:
  std::optional<std::string> read_message() {
    std::optional<std::string> line = lines_.read("> ");
    if (!line) return std::nullopt;
    if (*line == "\"\"\"") {
      std::string text;
      for (line = lines_.read(". "); line && *line != "\"\"\""; line = lines_.read(". "))
        text += (text.empty() ? "" : "\n") + *line;
      return text;
    }
    std::string text = *line;
    while (text.ends_with("\\")) {
      text.back() = '\n';
      line = lines_.read(". ");
      if (!line) break;
      text += *line;
    }
    return text;
  }

  void set_system(const std::string& text) {
    if (!messages_.empty() && messages_[0].role == "system") messages_.erase(messages_.begin());
    if (!text.empty())
      messages_.insert(messages_.begin(), llm::ChatMessage{.role = "system", .content = text});
  }

  void answer() {
    const InterruptGuard guard(model_);
    llm::Generation result;
    try {
      result = model_.chat(messages_, generation_, [](std::string_view text) {
        std::cout << text << std::flush;
        return std::cout.good();
      });
    } catch (...) {
      messages_.pop_back();  // a question that could not be asked is not part of the conversation
      throw;
    }
    std::cout << "\n" << std::flush;
    last_ = result.statistics;
    messages_.push_back({.role = "assistant", .content = result.text});
    if (result.reason == llm::StopReason::context)
      std::cerr << fmt::format("(the context of {} tokens is full; /clear begins anew)\n",
                               model_.context());
    // The next answer is not to repeat this one's chances where no seed was asked for.
    if (!options_.sampling.has_seed) ++generation_.sampler.seed;
  }

  // False to end.
  bool command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string rest = space == line.npos ? "" : line.substr(space + 1);
    const auto need_file = [&] {
      if (rest.empty())
        throw Error(ErrorCode::kInvalidArgument, name + " needs a file: " + name + " FILE");
    };
    if (name == "/exit" || name == "/quit" || name == "/bye") return false;
    if (name == "/help") {
      std::cerr << kHelp;
    } else if (name == "/clear") {
      std::erase_if(messages_, [](const auto& message) { return message.role != "system"; });
    } else if (name == "/retry") {
      while (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
      if (messages_.empty() || messages_.back().role != "user")
        throw Error(ErrorCode::kInvalidArgument, "/retry: nothing was asked yet");
      answer();
    } else if (name == "/system") {
      if (!rest.empty()) {
        set_system(rest);
      } else {
        const bool has = !messages_.empty() && messages_[0].role == "system";
        std::cerr << (has ? messages_[0].content : "(none)") << "\n";
      }
    } else if (name == "/save") {
      need_file();
      save_messages(messages_, rest);
    } else if (name == "/load") {
      need_file();
      messages_ = load_messages(rest);
      std::cerr << fmt::format("{} messages\n", messages_.size());
    } else if (name == "/stats") {
      std::cerr << statistics_text(last_) << "\n" << memory_text(model_) << "\n";
    } else if (name == "/device") {
      const Device& device = model_.device();
      std::cerr << fmt::format("{} ({}): {}\n", device.id(), device.name(), device.why());
    } else {
      const std::vector<std::string> names = {"/help", "/clear", "/retry",  "/system", "/save",
                                              "/load", "/stats", "/device", "/exit"};
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("\"{}\" is no command here{}", name, valid_names(name, names)));
    }
    return true;
  }

  const Options& options_;
  llm::GenerationOptions generation_;
  llm::LanguageModel model_;
  LineReader lines_;
  std::vector<llm::ChatMessage> messages_;
  llm::GenerationStatistics last_;
};

}  // namespace

void add_chat_command(const Command& program) {
  const Command command = program.subcommand("chat", "a conversation with a model");
  auto options = std::make_shared<Options>();
  command.option("--system", options->system, "what the model is told first");
  command.option("--load", options->load, "go on with a conversation that /save wrote");
  add_model_arguments(command, options->model);
  add_sampling_arguments(command, options->sampling);
  command.footer(
      "Answers go to standard output, everything else to standard error. /help in a conversation "
      "lists what can be done there.\nExamples:\n  prism chat\n  prism chat model.gguf --system "
      "'You "
      "are a patient teacher.'");
  command.run([options] { return Chat(*options).run(); });
}

}  // namespace prism::cli
