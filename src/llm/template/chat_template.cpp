// Implements ChatTemplate: turns messages and options into template variables and renders them.
#include "prism/llm/chat_template.h"

#include "llm/template/template_ast.h"
#include "llm/template/template_runtime.h"

namespace prism::llm {
namespace {

using jinja::Budget;
using jinja::Dict;
using jinja::List;
using jinja::Value;

Value message_value(Budget& budget, const ChatMessage& message) {
  Dict out;
  const auto put = [&](const char* name, Value value) {
    budget.charge(2 * sizeof(Value) + jinja::kContentsBytes);
    out.items.emplace_back(Value::string(name), std::move(value));
  };
  const auto text_value = [&](const std::string& text) {
    budget.charge(jinja::kContentsBytes + text.size());
    return Value::string(text);
  };
  const auto put_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) put(name, text_value(text));
  };
  put("role", text_value(message.role));
  put("content", message.parts.empty()
                     ? text_value(message.content)
                     : jinja::from_json(budget, message.parts, "a message's parts"));
  put_text("reasoning_content", message.reasoning_content);
  // gpt-oss knows reasoning by this name, and refuses calls that have content beside it.
  if (message.content.empty()) put_text("thinking", message.reasoning_content);
  if (!message.tool_calls.empty()) {
    // Templates iterate over arguments as a mapping, but servers pass them as JSON text.
    List calls;
    const Value given = jinja::from_json(budget, message.tool_calls, "a message's tool_calls");
    if (!given.is(Value::Kind::list)) jinja::fail("a message's tool_calls: not a JSON array");
    for (const Value& call : given.as_list()) {
      const Value* function =
          call.is(Value::Kind::dict) ? call.as_dict().find(budget, "function") : nullptr;
      const Value* arguments = function && function->is(Value::Kind::dict)
                                   ? function->as_dict().find(budget, "arguments")
                                   : nullptr;
      if (!arguments || !arguments->is(Value::Kind::string)) {
        calls.push_back(call);
        continue;
      }
      Dict new_function = function->as_dict(), new_call = call.as_dict();
      new_function.set(budget, Value::string("arguments"),
                       jinja::from_json(budget, arguments->as_string(), "a tool call's arguments"));
      new_call.set(budget, Value::string("function"), Value::dict(std::move(new_function)));
      calls.push_back(Value::dict(std::move(new_call)));
    }
    put("tool_calls", Value::list(std::move(calls)));
  }
  put_text("tool_call_id", message.tool_call_id);
  put_text("name", message.name);
  return Value::dict(std::move(out));
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
#ifdef _WIN32
  localtime_s(&out, &now);
#else
  localtime_r(&now, &out);
#endif
  return out;
}

}  // namespace

struct ChatTemplate::State {
  jinja::Block body;
};

ChatTemplate::ChatTemplate(std::string_view text, const TemplateLimits& limits) {
  Budget budget(limits.work);
  state_ = std::make_shared<const State>(State{jinja::parse(budget, text)});
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const ChatOptions& options) const {
  Budget budget(options.limits.work);
  Dict variables;
  const auto put = [&](const char* name, Value value) {
    variables.set(budget, Value::string(name), std::move(value));
  };
  List list;
  for (const ChatMessage& message : messages) list.push_back(message_value(budget, message));
  put("messages", Value::list(std::move(list)));
  put("add_generation_prompt", Value::boolean(options.add_generation_prompt));
  put("bos_token", Value::string(options.bos_token));
  put("eos_token", Value::string(options.eos_token));
  // Without tools the variable is defined as none, as in the original runtime.
  put("tools",
      options.tools.empty() ? Value::none() : jinja::from_json(budget, options.tools, "tools"));
  if (!options.extra.empty()) {
    const Value extra = jinja::from_json(budget, options.extra, "extra variables");
    if (!extra.is(Value::Kind::dict)) jinja::fail("extra variables: not a JSON object");
    for (const auto& [key, value] : extra.as_dict().items) variables.set(budget, key, value);
  }
  // SmolLM3 takes tools by other names, of which the caller may choose one.
  if (!options.tools.empty() && !variables.find(budget, "xml_tools") &&
      !variables.find(budget, "python_tools"))
    put("xml_tools", *variables.find(budget, "tools"));
  const std::tm now = options.now ? *options.now : local_time();
  return jinja::Runtime(&budget, options.limits, variables, &now).render(state_->body);
}

std::string ChatTemplate::render_json(std::string_view variables,
                                      const ChatOptions& options) const {
  Budget budget(options.limits.work);
  const Value given = jinja::from_json(budget, variables, "variables");
  if (!given.is(Value::Kind::dict)) jinja::fail("variables: not a JSON object");
  const std::tm now = options.now ? *options.now : local_time();
  return jinja::Runtime(&budget, options.limits, given.as_dict(), &now).render(state_->body);
}

std::string render_chat(std::string_view template_text, std::span<const ChatMessage> messages,
                        const ChatOptions& options) {
  return ChatTemplate(template_text, options.limits).render(messages, options);
}

}  // namespace prism::llm
