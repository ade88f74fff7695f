// `prism chat`: a conversation with a model.
#include <iostream>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/conversations.h"
#include "cli/fatal_errors.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/message_files.h"
#include "cli/model_arguments.h"
#include "cli/model_text.h"
#include "cli/output.h"
#include "cli/sampling_arguments.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"
#include "prism/warning.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  TemplateArguments chat_template;
  std::string system, load, resume;
  bool resumes = false, lists = false, no_save = false;
};

constexpr const char* kHelp = R"(/help            print this list
/clear           begin a new conversation
/retry           answer the last question again
/system TEXT     set the instructions for the model; without TEXT: show them
/save FILE       write the conversation to a file
/load FILE       continue the conversation in a file
/stats           tokens, speed and memory of the last answer
/device          the device that the model is on, and why
/exit            leave (also Ctrl-D, or Ctrl-C twice on an empty line)
@FILE in a message is replaced by the file. A line that ends in \ continues on
the next line. A line with """ alone begins and ends a message of several lines.
Ctrl-C ends an answer, or clears the line.
)";

class Chat {
 public:
  Chat(const Options& options, Conversation conversation)
      : options_(options),
        conversation_(std::move(conversation)),
        generation_(generation_options(options.sampling)),
        chat_{.extra = template_variables(options.chat_template)},
        model_(open_model(options.model, options.chat_template)),
        lines_("chat_history") {
    if (!model_.has_chat_template())
      throw Error(
          ErrorCode::kNotSupported,
          "chat: the model has no chat template; `prism run --raw` continues texts with it");
    use_recommended_sampling(options.sampling, model_.file(), generation_);
    if (options.model.verbose && !options.model.quiet)
      std::cerr << sampling_text(generation_.sampler) << "\n";
    if (!options.model.quiet) generation_.on_prompt = prompt_progress;
    if (!options.system.empty()) set_system(options.system);
  }

  int run() {
    greet();
    while (const std::optional<std::string> typed = read_message()) {
      if (typed->empty()) continue;
      try {
        if (typed->front() == '/') {
          if (!command(*typed)) break;
        } else {
          messages().push_back({.role = "user", .content = with_files(*typed)});
          answer();
        }
      } catch (const std::bad_alloc&) {
        report_out_of_memory();
      } catch (const std::exception& error) {
        std::cerr << paint(Colour::red, "error: ", Stream::error) << error.what() << "\n";
      }
      if (!std::cout) break;  // no one would see the next answer
    }
    say_goodbye();
    return kRight;
  }

 private:
  std::vector<llm::ChatMessage>& messages() { return conversation_.messages; }

  void note(const std::string& text) const {
    if (!options_.model.quiet) std::cerr << paint(Colour::dim, text, Stream::error) << "\n";
  }

  void greet() {
    note("/help lists the commands; /exit leaves");
    if (messages().empty() || !options_.resumes) return;
    note(fmt::format("resuming {} with {} messages", conversation_.name, messages().size()));
    for (const llm::ChatMessage& each :
         std::span(messages())
             .last(std::min<size_t>(messages().size(), 2)))  // the last question and its answer
      note((each.role == "user" ? "> " : "") + each.content);
  }

  void say_goodbye() {
    if (is_kept_)
      note(fmt::format("the conversation is kept; to go on: prism chat --resume {}",
                       conversation_.name));
  }

  // Returns no value to leave the chat, and an empty text for an empty line.
  std::optional<std::string> read_message() {
    TypedLine line = lines_.read("> ");
    if (line.end == LineEnd::input) return std::nullopt;
    if (line.end == LineEnd::interrupted) {
      const bool is_second = std::exchange(has_warned_, line.text.empty());
      if (!line.text.empty()) return "";
      if (is_second) return std::nullopt;
      note("press Ctrl-C again to leave");
      return "";
    }
    has_warned_ = false;
    if (line.text == "\"\"\"") return read_block();
    std::string text = line.text;
    while (text.ends_with("\\")) {
      text.back() = '\n';
      line = lines_.read(". ");
      if (line.end == LineEnd::interrupted) return "";
      if (line.end == LineEnd::input) break;
      text += line.text;
    }
    return text;
  }

  // Reads the lines up to """.
  std::string read_block() {
    std::string text;
    for (;;) {
      const TypedLine line = lines_.read(". ");
      if (line.end == LineEnd::interrupted) return "";
      if (line.end == LineEnd::input || line.text == "\"\"\"") return text;
      text += (text.empty() ? "" : "\n") + line.text;
    }
  }

  void set_system(const std::string& text) {
    if (!messages().empty() && messages()[0].role == "system") messages().erase(messages().begin());
    if (!text.empty())
      messages().insert(messages().begin(), llm::ChatMessage{.role = "system", .content = text});
  }

  void answer() {
    const InterruptGuard guard(model_, true);
    llm::Generation result;
    try {
      result = model_.chat(messages(), generation_, write_generated, chat_);
      end_progress();
    } catch (...) {
      end_progress();
      messages().pop_back();  // a question that failed is not part of the conversation
      throw;
    }
    std::cout << "\n" << std::flush;
    last_ = result.statistics;
    messages().push_back({.role = "assistant", .content = result.text});
    if (result.reason == llm::StopReason::context)
      note(fmt::format("(the context of {} tokens is full; /clear begins a new conversation)",
                       model_.context()));
    // Without --seed the next answer uses different random numbers.
    if (!options_.sampling.has_seed) ++generation_.sampler.seed;
    keep();
  }

  void keep() {
    if (options_.no_save) return;
    try {
      keep_conversation(conversation_);
      is_kept_ = true;
    } catch (const Error& error) {
      if (!std::exchange(has_failed_to_keep_, true))
        warn(fmt::format("{}; the chat goes on without it", error.what()));
    }
  }

  void start_new(std::vector<llm::ChatMessage> from) {
    conversation_.name.clear();
    is_kept_ = false;
    messages() = std::move(from);
  }

  // Returns false to leave the chat.
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
      std::vector<llm::ChatMessage> left = messages();
      std::erase_if(left, [](const auto& message) { return message.role != "system"; });
      start_new(std::move(left));
    } else if (name == "/retry") {
      while (!messages().empty() && messages().back().role == "assistant") messages().pop_back();
      if (messages().empty() || messages().back().role != "user")
        throw Error(ErrorCode::kInvalidArgument, "/retry: there is no question yet");
      answer();
    } else if (name == "/system") {
      if (!rest.empty()) {
        set_system(rest);
      } else {
        const bool has = !messages().empty() && messages()[0].role == "system";
        std::cerr << (has ? messages()[0].content : "(none)") << "\n";
      }
    } else if (name == "/save") {
      need_file();
      write_conversation(conversation_, rest);
    } else if (name == "/load") {
      need_file();
      start_new(read_conversation(rest).messages);
      std::cerr << fmt::format("{} messages\n", messages().size());
    } else if (name == "/stats") {
      std::cerr << statistics_text(last_) << "\n" << memory_text(model_) << "\n";
    } else if (name == "/device") {
      const Device& device = model_.device();
      std::cerr << fmt::format("{} ({}): {}\n", device.id(), device.name(), device.why());
    } else {
      const std::vector<std::string> names = {"/help", "/clear", "/retry",  "/system", "/save",
                                              "/load", "/stats", "/device", "/exit"};
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("\"{}\" is not a command{}", name, valid_names(name, names)));
    }
    return true;
  }

  const Options& options_;
  Conversation conversation_;
  llm::GenerationOptions generation_;
  llm::ChatOptions chat_;
  llm::LanguageModel model_;
  LineReader lines_;
  llm::GenerationStatistics last_;
  bool has_warned_ = false;  // Ctrl-C was pressed on an empty line
  bool is_kept_ = false, has_failed_to_keep_ = false;
};

int list() {
  std::vector<std::vector<std::string>> rows;
  for (const KeptConversation& each : kept_conversations())
    rows.push_back({each.name, std::to_string(each.messages),
                    each.model.empty() ? llm::kDefaultModel : each.model});
  if (rows.empty())
    std::cout << "no conversations yet; `prism chat` begins one\n";
  else
    std::cout << table({"name", "messages", "model"}, rows);
  return kRight;
}

// Returns the conversation to start with; a resumed one also sets the model to load.
Conversation first_conversation(Options& o) {
  Conversation conversation;
  std::string& model = o.model.choice.model;
  if (o.resumes) {
    // "--resume model.gguf": the word is the model, not a conversation.
    if (model.empty() && llm::is_model_name(o.resume)) std::swap(model, o.resume);
    conversation = find_conversation(o.resume.empty() ? "last" : o.resume);
    if (model.empty()) model = conversation.model;
  } else if (!o.load.empty()) {
    conversation.messages = read_conversation(o.load).messages;
  }
  conversation.model = model;
  return conversation;
}

}  // namespace

void add_chat_command(const Command& program) {
  const Command command = program.subcommand("chat", "talk to a model");
  auto options = std::make_shared<Options>();
  command.option("--system", options->system, "instructions for the model");
  Option resume = command
                      .option("--resume", options->resume,
                              "go on with a conversation that was kept, by its name")
                      .optional_value("last")
                      .sets(options->resumes);
  resume.excludes(command.option("--load", options->load, "go on with a file that /save wrote"));
  command.flag("--list", options->lists, "list the conversations that were kept");
  command.flag("--no-save", options->no_save, "do not keep this conversation");
  add_template_arguments(command, options->chat_template);
  add_model_arguments(command, options->model);
  add_prompt_cache_arguments(command, options->model);
  add_speculate_argument(command, options->model);
  add_sampling_arguments(command, options->sampling);
  command.footer(
      "Answers go to standard output, everything else to standard error. Each conversation is kept "
      "in a file that only you can read, in the folder conversations of ~/.local/share/prism "
      "(PRISM_DATA_DIR changes that).\nExamples:\n  prism chat\n  prism chat model.gguf --system "
      "'You are a patient teacher.'\n  prism chat --resume\n  prism chat --list");
  command.run([options] {
    if (options->lists) return list();
    Conversation conversation = first_conversation(*options);
    return Chat(*options, std::move(conversation)).run();
  });
}

}  // namespace prism::cli
