// Pairs calls with results, and rewrites both for templates that demand it.
#include "llm/chat_format/tool_messages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/fast_hash.h"
#include "base/json.h"

namespace prism::llm {
namespace {

// A message with its calls as values.
struct Message {
  explicit Message(const ChatMessage& given) : text(given) {
    if (given.tool_calls.empty()) return;
    const Json parsed = Json::parse(given.tool_calls);
    calls.assign(parsed.items().begin(), parsed.items().end());
  }
  bool is_result() const { return text.role == "tool"; }

  ChatMessage text;
  std::vector<Json> calls;
};

std::string id_of(const Json& call) { return JsonView(call)["id"].string_or(""); }
std::string name_of(const Json& call) { return JsonView(call)["function"]["name"].string_or(""); }

// Replaces each id of calls and results, also empty ones.
void change_ids(std::vector<Message>& messages,
                const std::function<std::string(const std::string& id)>& changed) {
  for (Message& message : messages) {
    for (Json& call : message.calls) call["id"] = changed(id_of(call));
    if (message.is_result()) message.text.tool_call_id = changed(message.text.tool_call_id);
  }
}

// The ids of a conversation, and new ones that differ from them.
class Ids {
 public:
  explicit Ids(std::vector<Message>& messages) {
    change_ids(messages, [this](const std::string& id) { return given_.insert(id), id; });
  }
  std::string next() {
    std::string id;
    do id = fmt::format("call_{}", ++last_);
    while (given_.contains(id));
    return id;
  }

 private:
  std::set<std::string> given_;
  int last_ = 0;
};

// Where a call and a result have no id in common, the first open call of the result's name belongs
// to it, or else the first open one.
void pair(std::span<Json> calls, std::span<Message> results, Ids& ids) {
  std::vector<Json*> open;
  for (Json& call : calls) open.push_back(&call);
  std::vector<Message*> left;
  for (Message& result : results) {
    const auto call = std::ranges::find_if(open, [&](const Json* each) {
      return !id_of(*each).empty() && id_of(*each) == result.text.tool_call_id;
    });
    if (call == open.end())
      left.push_back(&result);
    else
      open.erase(call);
  }
  for (Message* result : left) {
    std::string& id = result->text.tool_call_id;
    const auto fits = [&](const Json* call) { return id.empty() || id_of(*call).empty(); };
    auto call = std::ranges::find_if(
        open, [&](const Json* each) { return fits(each) && name_of(*each) == result->text.name; });
    if (call == open.end()) call = std::ranges::find_if(open, fits);
    if (call == open.end()) continue;
    Json& answered = **call;
    open.erase(call);
    if (id.empty()) id = id_of(answered);
    if (id.empty()) id = ids.next();
    answered["id"] = id;
  }
}

// The results that follow a message, up to the next message of another role.
std::span<Message> results_after(std::vector<Message>& messages, size_t at) {
  const auto first = messages.begin() + static_cast<ptrdiff_t>(at) + 1;
  return {first, std::find_if_not(first, messages.end(), std::mem_fn(&Message::is_result))};
}

void complete_ids(std::vector<Message>& messages) {
  Ids ids(messages);
  for (size_t i = 0; i < messages.size(); ++i)
    if (!messages[i].calls.empty()) pair(messages[i].calls, results_after(messages, i), ids);
  change_ids(messages, [&](const std::string& id) { return id.empty() ? ids.next() : id; });
}

// Letters and digits that depend on the text only.
std::string letters_of(const std::string& text, size_t length) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const std::string hash = fast_hash(std::as_bytes(std::span(text)));
  uint64_t number = std::stoull(hash.substr(0, 16), nullptr, 16);
  std::string letters;
  for (size_t i = 0; i < length; ++i, number /= kLetters.size())
    letters += kLetters[number % kLetters.size()];
  return letters;
}

// Equal ids stay equal, and different ones different.
void shorten_ids(std::vector<Message>& messages, size_t length) {
  const auto is_short = [&](const std::string& id) {
    return id.size() == length && std::ranges::all_of(id, [](char c) {
             return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
           });
  };
  std::map<std::string, std::string> known;
  std::set<std::string> taken;
  change_ids(messages, [&](const std::string& id) {
    if (is_short(id)) taken.insert(id);
    return id;
  });
  change_ids(messages, [&](const std::string& id) {
    if (is_short(id)) return id;
    std::string& shorter = known[id];
    if (shorter.empty()) {
      shorter = letters_of(id, length);
      while (!taken.insert(shorter).second) shorter = letters_of(shorter, length);
    }
    return shorter;
  });
}

// One message for each call, followed by its results.
std::vector<Message> with_single_calls(std::vector<Message> messages) {
  std::vector<Message> result;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].calls.size() < 2) {
      result.push_back(std::move(messages[i]));
      continue;
    }
    const std::span<Message> answers = results_after(messages, i);
    std::vector<bool> is_used(answers.size());
    for (const Json& call : messages[i].calls) {
      Message single = messages[i];
      if (&call != &messages[i].calls[0]) single.text.content = single.text.reasoning_content = "";
      single.calls = {call};
      result.push_back(std::move(single));
      for (size_t k = 0; k < answers.size(); ++k)
        if (answers[k].text.tool_call_id == id_of(call)) {
          result.push_back(answers[k]);
          is_used[k] = true;
        }
    }
    for (size_t k = 0; k < answers.size(); ++k)
      if (!is_used[k]) result.push_back(answers[k]);
    i += answers.size();
  }
  return result;
}

// The calls as the model writes them.
std::string written(const ChatFormat& format, const std::vector<Json>& calls) {
  const bool is_array = format.calls == CallFormat::mistral || format.calls == CallFormat::granite;
  const bool is_plain = format.calls == CallFormat::json;
  std::string text;
  for (const Json& call : calls) {
    const JsonView arguments = JsonView(call)["function"]["arguments"];
    if (!text.empty()) text += is_array ? ", " : "\n";
    const std::string object =
        fmt::format(R"({{"name": {}, "{}": {}}})", Json(name_of(call)).dump(),
                    is_plain ? "parameters" : "arguments",
                    arguments.is_string() ? arguments.string() : arguments.json().dump());
    text += is_array || is_plain ? object : "<tool_call>\n" + object + "\n</tool_call>";
  }
  if (format.calls == CallFormat::mistral) return "[TOOL_CALLS][" + text + "]";
  return format.calls == CallFormat::granite ? "<|tool_call|>[" + text + "]" : text;
}

}  // namespace

std::vector<ChatMessage> fit_tool_messages(const ChatFormat& format,
                                           std::span<const ChatMessage> messages) {
  std::vector<Message> all(messages.begin(), messages.end());
  complete_ids(all);
  if (format.call_id_length > 0) shorten_ids(all, format.call_id_length);
  if (format.has_single_calls) all = with_single_calls(std::move(all));
  std::vector<ChatMessage> result;
  for (Message& each : all) {
    ChatMessage& message = each.text;
    if (each.is_result()) message.role = format.result_role;
    if (!each.calls.empty() && !format.shows_calls) {
      if (!message.content.empty()) message.content += '\n';
      message.content += written(format, each.calls);
    }
    const bool has_calls = !each.calls.empty() && format.shows_calls;
    message.tool_calls = has_calls ? Json(each.calls).dump() : "";
    result.push_back(std::move(message));
  }
  return result;
}

}  // namespace prism::llm
