// The values that chat templates compute with, modelled on Python's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/template/template_budget.h"

namespace prism::llm::jinja {

class Value;
struct Arguments;

using List = std::vector<Value>;

// Keeps keys in insertion order. A search looks at each item.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  const Value* find(Budget& budget, std::string_view key) const;
  const Value* find(Budget& budget, const Value& key) const;
  // Throws kInvalidArgument for a key that is a list or mapping.
  void set(Budget& budget, Value key, Value value);
};

using Callable = std::function<Value(const Arguments&)>;

// Copies are cheap and share their contents; only namespaces are mutable. Values are freed without
// recursion, however deeply they are nested.
class Value {
 public:
  // space: the result of namespace(). undefined: a missing name or key.
  enum class Kind {
    undefined,
    none,
    boolean,
    integer,
    number,
    string,
    list,
    dict,
    space,
    function
  };

  Value() = default;
  static Value undefined(std::string name);
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value number(double value);
  static Value string(std::string value);
  static Value list(List value);
  static Value dict(Dict value);
  static Value space(Dict value);
  static Value function(std::string name, Callable call);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const;  // booleans too, as in Python
  bool is_integral() const { return is(Kind::integer) || is(Kind::boolean); }
  const char* kind_name() const;
  std::string description() const;  // for messages: its kind, and for undefined values the name

  // Each valid only for its kind; integer and number also for values that convert.
  int64_t as_integer() const { return integer_; }
  double as_number() const;
  const std::string& as_string() const;  // for functions the name
  const List& as_list() const;
  const Dict& as_dict() const;  // also for a namespace
  Dict& as_space() const;
  const Callable& as_function() const;
  // Whether both are the same object.
  bool shares(const Value& other) const { return contents_ && contents_ == other.contents_; }

  bool truthy() const;

 private:
  struct Contents;
  struct Text;
  struct Items;
  struct Mapping;
  struct Function;
  explicit Value(Kind kind) : kind_(kind) {}
  template <class Type>
  Value(Kind kind, std::unique_ptr<Type> contents);
  static void release(Contents* contents) noexcept;

  Kind kind_ = Kind::undefined;
  int64_t integer_ = 0;  // booleans too
  double number_ = 0;
  std::shared_ptr<Contents> contents_;
};

// What the contents of a value take besides the bytes in them: the object, its owner count and the
// overhead of two allocations.
inline constexpr size_t kContentsBytes = 128;

struct Arguments {
  std::vector<Value> given;
  std::vector<std::pair<std::string, Value>> named;
  // The argument by position or name; undefined if it was not given.
  Value get(Budget& budget, size_t place, std::string_view name) const;
};

// Deeper nesting is an error wherever values are walked.
inline constexpr int kDeepestValue = 100;
void check_depth(int depth);

// All functions below throw kInvalidArgument for values nested too deeply.

// Python's ==.
bool equal(Budget& budget, const Value& a, const Value& b, int depth = 0);
// Python's <; throws for kinds without an order.
bool less(Budget& budget, const Value& a, const Value& b, int depth = 0);

void append_text(const Value& value, TextBuilder* out);   // Python's str()
std::string to_text(Budget& budget, const Value& value);  // Python's str()
void append_repr(const Value& value, TextBuilder* out);   // Python's repr()

struct JsonStyle {
  int indent = -1;  // -1: one line
  bool sort_keys = false;
  bool ensure_ascii = false;
  std::string item_separator, key_separator;  // empty: Python's defaults
};
// Python's json.dumps(); throws for values that JSON cannot represent.
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style = {});
// Throws kInvalidArgument with the location; `what` names the text in the message.
Value from_json(Budget& budget, std::string_view text, const std::string& what);

}  // namespace prism::llm::jinja
