// Translates exceptions to statuses.
#include "server/api/api_error.h"

#include <fmt/format.h>

#include "base/json.h"
#include "llm/generate/prompt_too_long.h"
#include "prism/error.h"
#include "server/engine/engine.h"

namespace prism::server {

ApiError ApiError::from(const std::exception_ptr& thrown, const std::string& text_field) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ApiError& error) {
    return error;
  } catch (const JsonError& error) {
    return {400, error.what(), error.path()};
  } catch (const llm::PromptTooLong& error) {
    const std::string message = fmt::format(
        "{}the text of {} tokens exceeds the available context size of {} tokens; shorten it, or "
        "load the model with a larger context",
        text_field.empty() ? "" : text_field + ": ", error.tokens(), error.context());
    ApiError refusal(400, message, text_field, "context_length_exceeded");
    refusal.type_ = "exceed_context_size_error";
    refusal.figures_ = {{"n_prompt_tokens", error.tokens()}, {"n_ctx", error.context()}};
    return refusal;
  } catch (const QueueFull& error) {
    return {429, error.what(), {}, "queue_full"};
  } catch (const TimedOut& error) {
    return {504, error.what(), {}, "timeout"};
  } catch (const ServerEnded& error) {
    return {503, error.what(), {}, "server_ended"};
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::kInvalidArgument:
      case ErrorCode::kNotSupported:
        return {400, error.what()};
      case ErrorCode::kNotFound:
        return {404, error.what()};
      case ErrorCode::kOutOfMemory:
        return {503, error.what(), {}, "out_of_memory"};
      default:
        return {500, error.what(), {}, error_code_name(error.code())};
    }
  } catch (const std::exception& error) {
    return {500, error.what()};
  }
}

HttpHeaders ApiError::headers() const {
  if (status_ == 429) return {{"retry-after", "1"}};
  // OpenAI's clients repeat requests after these statuses unless told otherwise.
  if (status_ == 504) return {{"x-should-retry", "false"}};
  if (status_ == 401) return {{"www-authenticate", "Bearer"}};
  return {};
}

}  // namespace prism::server
