// The answer to one request, whatever its API: the texts that the engine generates for it,
// collected and streamed in the format of that API.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "llm/chat_format/message_parser.h"
#include "server/api/api_error.h"
#include "server/engine/engine.h"
#include "server/http/http_server.h"

namespace prism::server {

// What all APIs ask for.
struct AnswerRequest {
  std::shared_ptr<ServedModel> model;
  std::vector<std::vector<int32_t>> prompts;
  std::string text_field = "prompt";  // where they are in the request; empty: in several fields
  int64_t choices = 1;                // texts for each prompt
  llm::GenerationOptions options = {};
  bool is_streamed = false;
  bool shows_prompts = false;  // streams tell how much of the prompt has been read
  bool shows_timings = false;  // streams have the timings of the text so far in each event
  Engine::Work before = {};    // with the model, before the texts begin; empty: none
  // Splits texts into content, reasoning and tool calls; without it all is content.
  std::function<llm::MessageParser()> parser = {};

  // Where one of the prompts is in the request: "prompt[1]".
  std::string field_of(size_t prompt) const;
};

struct ToolCall {
  std::string id, name, arguments;
};

// One text of the answer. With several prompts the choices of the first come first.
struct Choice {
  size_t index = 0;
  std::string content, reasoning;
  std::vector<ToolCall> calls;
  std::vector<int32_t> tokens;
  std::vector<llm::TokenScore> scores;
  int64_t reasoning_tokens = 0;
  llm::Generation result;  // when it has ended
  std::optional<llm::MessageParser> parser;
  bool is_done() const { return parser && parser->is_done(); }  // whatever the model still writes
  // Of a stream: the scores of tokens whose text the parser holds back, and the kind of a part that
  // goes on where the last one ended.
  std::vector<llm::TokenScore> held_scores;
  llm::MessagePart::Kind end_kind = llm::MessagePart::Kind::content;
};

bool is_cut(const Choice& choice);  // it ended at max_tokens or the end of the context

// A piece of a choice as it arrives; the choice holds everything up to and with it.
struct ChoicePiece {
  llm::MessageParts parts;
  TextEvent event;  // tokens, scores and statistics
};

struct AnswerUsage {
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, reasoning_tokens = 0;
  int64_t proposed_tokens = 0, accepted_tokens = 0;  // by speculation
};

class Answer;

// How an API writes an answer. One object for each answer, used on the server's thread.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  virtual Json whole(const Answer& answer) = 0;
  virtual HttpReply error(const ApiError& error) = 0;

  // Streams: the bytes to send at each event.
  virtual const char* stream_type() const { return "text/event-stream"; }
  virtual const char* keep_alive() const { return ": waiting\n\n"; }
  virtual std::string begin(const Answer&) { return {}; }
  virtual std::string prompt(const Answer&, const Choice&, const llm::PromptProgress&) {
    return {};
  }
  virtual std::string piece(const Answer& answer, const Choice& choice,
                            const ChoicePiece& piece) = 0;
  virtual std::string end(const Answer& answer, const Choice& choice) = 0;  // one choice has ended
  virtual std::string finish(const Answer&) { return {}; }                  // all have ended
  virtual std::string stream_error(const ApiError& error) = 0;
};

class Answer : public std::enable_shared_from_this<Answer> {
 public:
  // Submits the texts and returns; the answer lives until they have ended. Throws what
  // Engine::submit throws.
  static void start(Engine& engine, AnswerRequest request, std::unique_ptr<AnswerFormat> format,
                    const HttpResponse& response);

  Answer(Engine& engine, AnswerRequest request, std::unique_ptr<AnswerFormat> format,
         HttpResponse response);

  const AnswerRequest& request() const { return request_; }
  const std::vector<Choice>& choices() const { return choices_; }
  AnswerUsage usage() const;
  double load_seconds() const { return load_seconds_; }  // of the model, if this request loaded it
  const llm::Tokenizer& tokenizer() const { return request_.model->tokenizer(); }

 private:
  HttpHeaders stream_headers() const;
  void on_begin(double load_seconds);
  void on_prompt(size_t index, const llm::PromptProgress& progress);
  void on_text(size_t index, TextEvent event);
  void on_end(size_t index, llm::Generation result);
  void add(Choice& choice, llm::MessageParts parts, TextEvent event);
  void fail(const ApiError& error);

  Engine& engine_;
  AnswerRequest request_;
  std::unique_ptr<AnswerFormat> format_;
  HttpResponse response_;
  std::vector<Choice> choices_;
  std::vector<uint64_t> ids_;
  size_t left_ = 0;  // choices that have not ended
  double load_seconds_ = 0;
  bool has_begun_ = false, has_failed_ = false;
};

// "data: JSON\n\n", with "event: NAME" before it if there is one.
std::string sse_event(std::string_view json, std::string_view name = {});

// Letters and digits at random, for the ids of answers.
std::string random_id(std::string_view prefix, size_t length = 24);

}  // namespace prism::server
