// Fields that several APIs have in common. Wrong values throw JsonError with the field's path;
// unknown fields are ignored.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "prism/llm/chat_template.h"
#include "prism/llm/generation.h"
#include "server/engine/served_model.h"

namespace prism::server {

// The options for a request that gives none: those of the server, or the sampling recommended for
// the model with a random seed.
llm::GenerationOptions default_options(const ServedModel& model);

// Reads temperature, top_p, seed, penalties, logit_bias and so on, by the names of OpenAI's API and
// of llama.cpp's server.
void read_sampling(const JsonView& body, const ServedModel& model, llm::GenerationOptions& options);
// Reads stop: a text or an array of texts.
void read_stop(const JsonView& stop, llm::GenerationOptions& options);
// Reads response_format: text, json_object or json_schema.
void read_response_format(const JsonView& format, llm::GenerationOptions& options);
// The same for text.format of /v1/responses, where the schema is beside the type.
void read_text_format(const JsonView& format, llm::GenerationOptions& options);
// Holds the text to a JSON schema.
void read_schema(const JsonView& schema, llm::GenerationOptions& options);

// The roles of messages in an API.
using Roles = std::span<const std::string_view>;
inline constexpr std::string_view kChatRoles[] = {"system",    "developer", "user",
                                                  "assistant", "tool",      "function"};
inline constexpr std::string_view kResponsesRoles[] = {"system", "developer", "user", "assistant"};
inline constexpr std::string_view kOllamaRoles[] = {"system", "user", "assistant", "tool"};
// Reads the role of a message as templates know it: one of the API, or another one that the
// model's template names, such as "ipython". Throws JsonError for others.
std::string read_role(const JsonView& role, const ServedModel& model, Roles roles);
// Reads messages in OpenAI's format. Parts other than text are refused.
std::vector<llm::ChatMessage> read_messages(const JsonView& messages, const ServedModel& model,
                                            Roles roles = kChatRoles);
// Reads tool_calls in OpenAI's format.
Json read_tool_calls(const JsonView& calls);
// Reads the arguments of a call, an object or its text. Templates write them as JSON themselves, so
// texts become values.
Json read_arguments(const JsonView& arguments);
// Returns the text of a content: a text, an array of text parts, or null.
std::string read_content(const JsonView& content);

// Reads a prompt: a text or an array of token ids. Throws JsonError for an id out of range.
std::vector<int32_t> read_prompt(const JsonView& prompt, const ServedModel& model);
// Reads one prompt or an array of prompts.
std::vector<std::vector<int32_t>> read_prompts(const JsonView& prompts, const ServedModel& model);

}  // namespace prism::server
