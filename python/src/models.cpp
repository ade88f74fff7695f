// Language models: loading, and texts that are generated step by step with Python's lock released.
#include <chrono>
#include <deque>
#include <mutex>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "llm/chat_format/message_parser.h"
#include "prism/error.h"
#include "prism/llm.h"

namespace prism::python {
namespace {

using namespace llm;

constexpr std::chrono::milliseconds kProgressInterval{50};

// Calls a Python function with (what, done, all), not more often than every kProgressInterval.
class Progress {
 public:
  explicit Progress(nb::handle function) : function_(function) {}

  // Returns false if the function raised an exception or a signal came, which fail() raises.
  bool operator()(const std::string& what, uint64_t done, uint64_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kProgressInterval && done != all) return true;
    last_ = now;
    const nb::gil_scoped_acquire lock;
    try {
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      if (!function_.is_none()) function_(what, done, all);
      return true;
    } catch (nb::python_error& error) {
      failure_ = std::current_exception();
      return false;
    }
  }
  void fail() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  nb::handle function_;
  std::chrono::steady_clock::time_point last_;
  std::exception_ptr failure_;
};

// A model and the lock of those who use it.
struct SharedModel {
  explicit SharedModel(LanguageModel loaded)
      : model(std::move(loaded)),
        chat_template(model.file().string_or("tokenizer.chat_template", "")) {}
  std::mutex mutex;
  LanguageModel model;
  std::string chat_template;  // the file's, or the user's
};

std::shared_ptr<SharedModel> load_model(const std::string& name, const std::string& device,
                                        std::optional<int64_t> context,
                                        std::optional<int64_t> gpu_layers,
                                        const std::string& kv_type, int64_t slots, int64_t batch,
                                        const std::vector<std::pair<std::string, double>>& adapters,
                                        nb::handle progress_function) {
  Progress progress(progress_function);
  LoadOptions options;
  options.fit.device = device;
  options.fit.context = context;
  options.fit.gpu_layers = gpu_layers;
  if (!kv_type.empty()) options.fit.kv_type = element_type(nb::str(kv_type.c_str()));
  options.slots = slots;
  options.batch_rows = batch;
  for (const auto& [path, scale] : adapters) options.adapters.push_back({path, scale});
  options.progress = [&](const LoadProgress& at) {
    return progress("loading", at.bytes_done, at.bytes_total);
  };
  FetchOptions fetch;
  fetch.progress = [&](const std::string& what, uint64_t done, uint64_t all) {
    progress(what, done, all);
  };
  std::shared_ptr<SharedModel> loaded;
  try {
    const nb::gil_scoped_release release;
    loaded =
        std::make_shared<SharedModel>(LanguageModel::load(resolve_model(name, fetch), options));
  } catch (const Error&) {
    progress.fail();
    throw;
  }
  deliver_warnings();
  return loaded;
}

// One text that is being generated. Several texts of a model advance together: whoever asks for a
// piece takes a step for all of them.
class GeneratedText {
 public:
  GeneratedText(std::shared_ptr<SharedModel> owner, std::vector<int32_t> prompt,
                const GenerationOptions& options)
      : owner_(std::move(owner)) {
    const nb::gil_scoped_release release;
    const std::scoped_lock lock(owner_->mutex);
    id_ = owner_->model.add(std::move(prompt), options, [this](const TextPiece& piece) {
      pieces_.emplace_back(piece.text);
      return true;
    });
  }
  ~GeneratedText() {
    const nb::gil_scoped_release release;
    const std::scoped_lock lock(owner_->mutex);
    finish_now();
  }
  GeneratedText(const GeneratedText&) = delete;

  // The next piece; nothing at the end. Raises KeyboardInterrupt, which ends the text, and the
  // failure of the text.
  std::optional<std::string> next() {
    while (true) {
      std::optional<std::string> piece;
      bool is_over = false;
      {
        const nb::gil_scoped_release release;
        const std::scoped_lock lock(owner_->mutex);
        if (pieces_.empty() && !is_over_) advance();
        if (!pieces_.empty()) {
          piece = std::move(pieces_.front());
          pieces_.pop_front();
        }
        is_over = is_over_;
      }
      check_signals();
      if (piece) return piece;
      if (is_over) {
        deliver_warnings();
        if (result_.failure) std::rethrow_exception(result_.failure);
        return std::nullopt;
      }
    }
  }

  // All pieces to the end.
  const Generation& finish() {
    while (next()) {
    }
    return result_;
  }

  void cancel() {
    const nb::gil_scoped_release release;
    const std::scoped_lock lock(owner_->mutex);
    finish_now();
  }

  const Generation* result() const { return is_over_ ? &result_ : nullptr; }

 private:
  // A step of the model, with its lock held.
  void advance() {
    if (!owner_->model.is_finished(id_)) owner_->model.step();
    if (owner_->model.is_finished(id_)) {
      result_ = owner_->model.take(id_);
      is_over_ = true;
    }
  }
  void finish_now() {
    if (is_over_) return;
    owner_->model.cancel(id_);
    while (!is_over_) advance();
  }
  void check_signals() {
    if (PyErr_CheckSignals() == 0) return;
    nb::python_error interrupt;  // keeps the exception while the text ends
    cancel();
    throw interrupt;
  }

  std::shared_ptr<SharedModel> owner_;
  int64_t id_ = 0;
  std::deque<std::string> pieces_;
  bool is_over_ = false;
  Generation result_;
};

// --- options
template <class T>
void read(const nb::dict& given, const char* name, T& to) {
  if (!given.contains(name) || given[name].is_none()) return;
  if (!nb::try_cast(nb::object(given[name]), to))
    throw nb::type_error(("generate: " + std::string(name) + " has the wrong type").c_str());
}

GenerationOptions options_of(const nb::dict& given) {
  GenerationOptions options;
  SamplerOptions& sampler = options.sampler;
  read(given, "max_tokens", options.max_tokens);
  read(given, "seed", sampler.seed);
  read(given, "temperature", sampler.temperature);
  read(given, "top_k", sampler.top_k);
  read(given, "top_p", sampler.top_p);
  read(given, "min_p", sampler.min_p);
  read(given, "typical_p", sampler.typical_p);
  read(given, "repeat_penalty", sampler.penalties.repeat);
  read(given, "presence_penalty", sampler.penalties.presence);
  read(given, "frequency_penalty", sampler.penalties.frequency);
  read(given, "logit_bias", sampler.logit_bias);
  read(given, "stop", options.stop);
  read(given, "ignore_end", options.ignore_end);
  read(given, "show_special", options.show_special);
  read(given, "logprobs", options.scores);
  std::string grammar, schema;
  read(given, "grammar", grammar);
  read(given, "json_schema", schema);
  if (!grammar.empty() && !schema.empty())
    throw nb::value_error("generate: both grammar and json_schema are given; use one of them");
  if (!grammar.empty()) options.grammar = Grammar::parse(grammar);
  if (!schema.empty()) options.grammar = Grammar::from_json_schema(schema);
  check_sampler_options(sampler);
  return options;
}

ChatMessage message_of(const nb::dict& given) {
  ChatMessage message;
  read(given, "role", message.role);
  read(given, "content", message.content);
  read(given, "reasoning_content", message.reasoning_content);
  read(given, "tool_calls", message.tool_calls);
  read(given, "tool_call_id", message.tool_call_id);
  read(given, "name", message.name);
  read(given, "parts", message.parts);
  return message;
}

std::vector<int32_t> prompt_tokens(const SharedModel& shared, nb::handle prompt) {
  if (nb::isinstance<nb::str>(prompt))
    return shared.model.tokenizer().encode(nb::cast<std::string>(prompt));
  std::vector<int32_t> tokens;
  if (!nb::try_cast(nb::borrow(prompt), tokens))
    throw nb::type_error("generate: a prompt is a text or a list of tokens");
  return tokens;
}

nb::list scores_list(const std::vector<TokenScore>& scores) {
  nb::list list;
  for (const TokenScore& each : scores) {
    nb::list top;
    for (const RankedToken& other : each.top) top.append(nb::make_tuple(other.id, other.logprob));
    list.append(nb::make_tuple(each.id, each.logprob ? nb::cast(*each.logprob) : nb::none(), top));
  }
  return list;
}

nb::dict statistics_of(const Generation& text) {
  const GenerationStatistics& s = text.statistics;
  nb::dict result;
  result["prompt_tokens"] = s.prompt_tokens;
  result["reused_tokens"] = s.reused_tokens;
  result["generated_tokens"] = s.generated_tokens;
  result["prompt_seconds"] = s.prompt_seconds;
  result["generation_seconds"] = s.generation_seconds;
  result["first_token_seconds"] = s.first_token_seconds;
  result["prompt_rate"] = s.prompt_rate();
  result["generation_rate"] = s.generation_rate();
  return result;
}

Tensor embeddings(SharedModel& shared, const std::vector<std::string>& texts, bool normalise) {
  std::vector<std::vector<float>> rows;
  {
    const nb::gil_scoped_release release;
    const std::scoped_lock lock(shared.mutex);
    rows = shared.model.embed(texts, {.normalise = normalise});
  }
  std::vector<float> values;
  for (const auto& each : rows) values.insert(values.end(), each.begin(), each.end());
  const auto width = rows.empty() ? 0 : static_cast<int64_t>(rows[0].size());
  return from_vector(values, {static_cast<int64_t>(rows.size()), width}, Device::cpu());
}

std::string chat_prompt(const SharedModel& shared, const nb::list& messages,
                        const std::string& tools) {
  std::vector<ChatMessage> all;
  for (nb::handle each : messages) all.push_back(message_of(nb::cast<nb::dict>(each)));
  ChatOptions options;
  options.tools = tools;
  return shared.model.chat_prompt(all, options);
}

void bind_texts(nb::module_& m) {
  nb::class_<Generation>(m, "_Generation")
      .def_ro("text", &Generation::text)
      .def_ro("tokens", &Generation::tokens)
      .def_prop_ro("reason",
                   [](const Generation& g) { return std::string(stop_reason_name(g.reason)); })
      .def_ro("stop", &Generation::stop)
      .def_prop_ro("scores", [](const Generation& g) { return scores_list(g.scores); })
      .def_prop_ro("statistics", &statistics_of);
  nb::class_<GeneratedText>(m, "_Text")
      .def(
          "__init__",
          [](GeneratedText* self, const std::shared_ptr<SharedModel>& model, nb::handle prompt,
             const nb::dict& options) {
            new (self) GeneratedText(model, prompt_tokens(*model, prompt), options_of(options));
          },
          nb::arg("model"), nb::arg("prompt"), nb::arg("options"))
      .def("next", &GeneratedText::next, "The next piece of text, or None at the end.")
      .def("finish", &GeneratedText::finish, nb::rv_policy::copy)
      .def("cancel", &GeneratedText::cancel)
      .def_prop_ro("result", &GeneratedText::result, nb::rv_policy::copy);
  nb::class_<MessageParser>(m, "_MessageParser")
      .def(
          "__init__",
          [](MessageParser* self, const std::string& text,
             const std::vector<std::pair<std::string, std::string>>& tools) {
            MessageParserOptions options;
            for (const auto& [name, parameters] : tools)
              options.tools.push_back({name, parameters});
            new (self) MessageParser(ChatFormat::of(text), std::move(options));
          },
          nb::arg("template_text"), nb::arg("tools"))
      .def(
          "feed",
          [](MessageParser& parser, const std::string& text) {
            std::vector<std::pair<int, std::string>> parts;
            for (MessagePart& each : parser.feed(text))
              parts.emplace_back(static_cast<int>(each.kind), std::move(each.text));
            return parts;
          },
          nb::arg("text"))
      .def("finish", [](MessageParser& parser) {
        std::vector<std::pair<int, std::string>> parts;
        for (MessagePart& each : parser.finish())
          parts.emplace_back(static_cast<int>(each.kind), std::move(each.text));
        return parts;
      });
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<SharedModel>(m, "_Model")
      .def(nb::new_(&load_model), nb::arg("model"), nb::arg("device"), nb::arg("context").none(),
           nb::arg("gpu_layers").none(), nb::arg("kv_type"), nb::arg("slots"), nb::arg("batch"),
           nb::arg("adapters"), nb::arg("progress").none())
      .def(
          "tokenize",
          [](const SharedModel& s, const std::string& text, bool add_special, bool parse_special) {
            return s.model.tokenizer().encode(text, {add_special, parse_special});
          },
          nb::arg("text"), nb::arg("add_special"), nb::arg("parse_special"))
      .def(
          "detokenize",
          [](const SharedModel& s, const std::vector<int32_t>& tokens, bool special) {
            const std::string text = s.model.tokenizer().decode(tokens, special);
            return nb::steal<nb::str>(
                PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
          },
          nb::arg("tokens"), nb::arg("special"))
      .def("embed", &embeddings, nb::arg("texts"), nb::arg("normalise"))
      .def(
          "score",
          [](SharedModel& s, const std::string& text, int64_t top) {
            std::vector<TokenScore> scores;
            {
              const nb::gil_scoped_release release;
              const std::scoped_lock lock(s.mutex);
              scores = s.model.score(text, top);
            }
            return scores_list(scores);
          },
          nb::arg("text"), nb::arg("top"))
      .def("chat_prompt", &chat_prompt, nb::arg("messages"), nb::arg("tools"))
      .def_prop_rw(
          "chat_template", [](const SharedModel& s) { return s.chat_template; },
          [](SharedModel& s, const std::string& text) {
            s.model.set_chat_template(text);
            s.chat_template = text;
          })
      .def_prop_ro("has_chat_template",
                   [](const SharedModel& s) { return !s.chat_template.empty(); })
      .def_prop_ro(
          "has_control_tokens",
          [](const SharedModel& s) { return ChatFormat::of(s.chat_template).has_control_tokens(); })
      .def_prop_ro("context", [](const SharedModel& s) { return s.model.context(); })
      .def_prop_ro("device", [](const SharedModel& s) { return Device(s.model.device()); })
      .def_prop_ro("why", [](const SharedModel& s) { return s.model.why(); })
      .def_prop_ro("load_seconds", [](const SharedModel& s) { return s.model.load_seconds(); })
      .def_prop_ro("path", [](const SharedModel& s) { return s.model.file().path(); })
      .def_prop_ro("architecture",
                   [](const SharedModel& s) {
                     return std::string(s.model.file().string_or("general.architecture", ""));
                   })
      .def_prop_ro("vocabulary_size",
                   [](const SharedModel& s) { return s.model.tokenizer().size(); });
  bind_texts(m);
}

}  // namespace prism::python
