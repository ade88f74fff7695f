// Runs a parsed template: scopes, limits, and the services for filters, tests and methods.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "llm/template/template_ast.h"
#include "prism/llm/chat_template.h"

namespace prism::llm::jinja {

class Runtime {
 public:
  // Charges all work to `budget`.
  Runtime(Budget* budget, const TemplateLimits& limits, const Dict& variables, const std::tm* now);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  std::string render(const Block& template_body);

  // --- used by filters, tests and methods
  Budget& budget() { return *budget_; }
  Value attribute(const Value& of, const std::string& name);  // of.name
  Value item(const Value& of, const Value& key);              // of[key]
  Value path(const Value& of, const Value& dotted);           // "a.b.0" or a number
  Value filter(const std::string& name, const Value& input, const Arguments& arguments);
  bool test(const std::string& name, const Value& of, const Arguments& arguments);
  List iterate(const Value& value);  // throws if the value is not iterable
  // A new value of items or characters that are already charged.
  Value string(std::string text);
  Value string(TextBuilder* text) { return string(text->take()); }
  Value list(List items);
  Value undefined(std::string_view name);
  const std::tm& now() const { return now_; }

 private:
  struct Scope {
    Scope* parent = nullptr;
    std::vector<std::pair<std::string, Value>> names;
    Value* find(Budget& budget, std::string_view name);
    void set(Budget& budget, std::string_view name, Value value);
  };
  enum class Flow { onward, leave, next };
  // Enters one more level of nesting for its lifetime.
  class Deeper {
   public:
    explicit Deeper(Runtime* runtime);
    Deeper(const Deeper&) = delete;
    ~Deeper() { --runtime_->depth_; }

   private:
    Runtime* runtime_;
  };

  // --- statements
  Flow run(const Block& block);
  Flow run(const Statement& statement);
  Flow run_loop(const Statement& statement);
  void run_set(const Statement& statement);
  std::string capture(const Block& block);
  Value through_filters(const Expression* filters, std::string text);
  Value make_macro(const Statement& statement, std::string name);
  Dict make_dict(const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);
  void assign(const std::vector<std::string>& targets, const Value& value);
  Scope* new_scope(Scope* parent);
  void set(std::string_view name, Value value);           // in the current scope
  Value* find_name(Scope* scope, std::string_view name);  // null: no scope from here up has it
  void write(std::string_view text);
  void write(const Value& value);

  // --- expressions
  Value eval(const Expression& expression);
  Value eval_name(const std::string& name);
  Value eval_binary(const Expression& expression);
  Value eval_compare(const Expression& expression);
  Value eval_slice(const Expression& expression);
  Value eval_call(const Expression& expression);
  Arguments eval_arguments(const Expression& expression);
  Value arithmetic(const std::string& sign, const Value& left, const Value& right);
  bool contains(const Value& container, const Value& value);

  const TemplateLimits limits_;
  std::tm now_;
  Budget* budget_;
  int depth_ = 0;
  std::deque<Scope> scopes_;   // kept to the end: macros refer to the scope they were defined in
  std::vector<Value> spaces_;  // all namespaces, cleared at the end because they may form cycles
  Scope* scope_;
  std::string output_;
  std::string* out_ = &output_;
};

// template_filters.cpp, template_tests.cpp, template_methods.cpp. Each throws for an unknown name.
Value apply_filter(Runtime& runtime, const std::string& name, const Value& input,
                   const Arguments& arguments);
bool apply_test(Runtime& runtime, const std::string& name, const Value& of,
                const Arguments& arguments);
bool has_method(const Value& of, std::string_view name);
Value call_method(Runtime& runtime, const Value& of, const std::string& name,
                  const Arguments& arguments);

// The text without the characters at its ends that are in `characters`, or without white space if
// that is not a string.
std::string_view strip(Budget& budget, std::string_view text, const Value& characters, bool left,
                       bool right);

}  // namespace prism::llm::jinja
