// CFamily, the base of the text printers: names, expressions, statements and memory. A dialect adds
// a table of names and a dozen hooks. The defaults are C; WGSL overrides more of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "print/names.h"
#include "print/prelude.h"
#include "print/printer.h"
#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// A dialect's names. Types are in the order of DType.
struct CTable {
  std::array<const char*, kDTypeCount> values;  // types of values
  std::array<const char*, kDTypeCount> stored;  // types of elements in memory
  const char* math_f32 = "{}";  // a call of a math function, {} for its C name: "{}f"
  const char* math_f64 = "{}";
  const char* math_f16 = "{}";
  const char* global_space =
      "";  // address space of buffer pointers, with a trailing space: "__global "
  const char* shared_space = "";
  const char* local_space = "";
  const char* word =
      nullptr;  // a 32-bit word that may alias memory of any type; null: the plain u32
  const char* restrict_word = "";  // for pointers to unwritten memory, with a leading space
  // The group count, for dialects whose compiler loses negations (hidden_negations).
  const char* group_count = nullptr;
};

class CFamily {
 public:
  CFamily(const ir::Kernel& kernel, const ir::Capabilities& capabilities, const CTable& table);
  virtual ~CFamily() = default;
  CFamily(const CFamily&) = delete;
  CFamily& operator=(const CFamily&) = delete;

  const std::string& entry() const { return entry_; }
  // The kernel's function, without the prelude.
  std::string function();
  // Every item this dialect may print before kernels; used items are found by name.
  virtual std::vector<PreludeItem> prelude() const = 0;
  virtual bool params_as_block() const { return false; }

 protected:
  using Op = ir::Op;
  using Type = ir::Type;
  using Inst = ir::Inst;
  using Value = ir::Value;

  // --- hooks every dialect implements
  virtual std::string signature() = 0;  // everything up to the opening brace
  virtual std::string barrier() = 0;    // a statement
  virtual std::string bitcast(Type to, Type from, const std::string& text) = 0;  // one expression

  // --- hooks with a default
  virtual std::string device_fence() { return {}; }  // a statement; empty: there is none
  // group_id, group_count, local_id, subgroup_id, subgroup_lane: arguments of the function.
  virtual std::string leaf(Op op, uint32_t axis);
  virtual std::string prologue() { return {}; }  // statements that open the function
  virtual std::string shared_memory();           // declarations of all shared arrays
  virtual std::string shared_array(const ir::Memory& memory, const std::string& name) {
    return array(memory, name) + ";";
  }
  virtual std::string vector_type(
      Type type) const;  // values and stored elements alike: "prism_f32x4"
  virtual std::string make_vector(Type type, const std::vector<std::string>& lanes) const;
  virtual std::string widen(DType stored,
                            const std::string& text) const;  // a stored element to a value
  virtual std::string narrow(DType stored,
                             const std::string& text) const;  // a value to a stored element
  virtual std::string operation(const Inst& inst, DType result, DType argument,
                                const std::vector<std::string>& args);  // one lane
  virtual std::string atomic(const Inst& inst, const std::string& pointer,
                             const std::vector<std::string>& args);
  virtual std::string subgroup(const Inst& inst, const std::vector<std::string>& args);
  virtual std::string subgroup_function(const std::string& name, DType type) const;
  virtual std::string load_scalar(const ir::Memory& memory, const std::string& name,
                                  const std::string& index);
  virtual void store_element(uint32_t memory, const std::string& index,
                             const std::string& value);  // narrowed
  virtual std::string word(uint32_t memory, const std::string& index);
  virtual void store_word(uint32_t memory, const std::string& index, const std::string& value);
  // Whether an access is split into elements; otherwise a pointer cast covers it at once.
  virtual bool apart(const Inst& inst) const;
  // The loaded value if the predicate holds, else zero.
  virtual std::string guarded(const Inst& inst, const std::string& predicate,
                              std::vector<std::string> parts);
  virtual std::string constant(Type type, const std::string& name, const std::string& text) const;
  virtual std::string variable(Type type, const std::string& name, const std::string& text) const;
  virtual std::string array(const ir::Memory& memory, const std::string& name) const;
  virtual std::string literal(DType type, uint64_t bits);
  // Prints a value under its own name, or inlines it.
  virtual void expression(const Inst& inst);
  // The text of a value that controls an if_, for_ or while_.
  virtual std::string decision(Value value, const Inst&) { return use(value); }
  virtual std::string load_vector_of_words(const ir::Memory& memory, uint32_t width,
                                           const std::string& address);
  virtual std::string param(uint32_t index) const { return param_names_[index]; }
  // Whether the compiler may assume that nothing writes the buffer while the kernel runs.
  virtual bool restricted(const ir::Memory& memory) const {
    return memory.access == ir::Access::read;
  }
  virtual std::string buffer_argument(uint32_t memory) const;
  virtual std::string unroll() const { return "#pragma unroll"; }
  // async_*, fragment_*, wait_previous, launch_next. Returns false if the dialect has none.
  virtual bool special(const Inst&) { return false; }

  // --- helpers for hooks
  std::string value_type(Type type) const;
  const char* stored_type(const ir::Memory& memory) const {
    return table_.stored[static_cast<size_t>(memory.element)];
  }
  std::string param_argument(size_t param) const;
  std::string arguments() const;  // all buffers in binding order, then all params
  // A call of a function that exists per element type and space, for dialects without templates.
  std::string typed_atomic(const Inst& inst, const char* space, const std::string& pointer,
                           const std::vector<std::string>& args) const;
  std::string unsigned_type(DType type) const;
  std::string use(Value value);   // the value's text, for a single use
  std::string atom(Value value);  // the value's text, safe to repeat
  const Type& type_of(Value value) const { return kernel_.values[value]; }
  std::string space(const ir::Memory& memory) const;
  std::string pointer(uint32_t memory, const std::string& type, const std::string& index,
                      bool writes) const;
  std::string element(uint32_t memory, const std::string& index);  // a widened load
  void line(const std::string& text);
  void open(const std::string& text);  // "text {"
  void close(const std::string& end = "}");
  void flush();  // emits pending values that read memory
  void block(const ir::Block& block);
  // Prints a block and returns the text of its yielded value, which may control `owner`.
  std::string yielded(const ir::Block& block, const Inst* owner = nullptr);
  void define(Value value, const std::string& text, const std::string& hint,
              bool inline_allowed = true);
  void set_value(Value value, const std::string& text) { slots_[value] = {text, false, false}; }
  std::string math(const char* name, DType type, const std::string& args) const;
  [[noreturn]] void cannot(const Inst& inst) const;

  const ir::Kernel& kernel_;
  const ir::Capabilities& capabilities_;
  const CTable& table_;
  Names names_;
  std::string entry_;
  std::vector<std::string> param_names_, memory_names_, variable_names_, fragment_names_;
  // By memory: buffers declared as vectors of four (quads.h), because the dialect has no pointer
  // casts and compilers do not merge four narrow loads. Empty: none.
  std::vector<bool> quads_;

 private:
  struct Slot {
    std::string text;
    bool pending = false;  // not yet emitted
    bool reads = false;    // depends on memory or a variable
  };

  void count_uses();
  void declare_leaves();
  void instruction(const Inst& inst);
  void statement(const Inst& inst);
  void write_down(Value value, const std::string& hint);
  std::string lane(Value value, uint32_t index);
  std::string scalar(const Inst& inst);
  void load(const Inst& inst);
  // The index of all four lanes of an access to such a buffer; empty for other accesses.
  std::string quad(const Inst& inst, const std::string& index) const;
  void load_apart(const Inst& inst);
  void load_vector(const Inst& inst);
  void load_words(const Inst& inst);
  void store(const Inst& inst);
  void store_apart(const Inst& inst);
  void store_words(const Inst& inst);
  void vector_expression(const Inst& inst);
  void if_statement(const Inst& inst);
  void for_statement(const Inst& inst);
  void while_statement(const Inst& inst);
  void raw_statement(const Inst& inst);

  std::string out_;
  int depth_ = 0;
  bool reads_ = false;  // a value used since the instruction began reads memory
  std::vector<Slot> slots_;
  std::vector<Value> pending_reads_;
  std::vector<uint32_t> uses_;
  std::vector<bool> dead_, used_in_place_;
  std::array<std::string, 16> leaves_;
};

// The C operator ("+") or the C name of a math function; null for all other operations.
const char* operator_text(ir::Op op);
const char* math_name(ir::Op op);
bool is_subgroup(ir::Op op);

// Removes the outer pair of parentheses, if any.
std::string bare(const std::string& text);

// The printers by dialect, to print many kernels into one source.
std::unique_ptr<CFamily> make_cuda_printer(const ir::Kernel&, const ir::Capabilities&);
std::unique_ptr<CFamily> make_hip_printer(const ir::Kernel&, const ir::Capabilities&);
std::unique_ptr<CFamily> make_opencl_printer(const ir::Kernel&, const ir::Capabilities&);
std::unique_ptr<CFamily> make_metal_printer(const ir::Kernel&, const ir::Capabilities&);
std::unique_ptr<CFamily> make_sycl_printer(const ir::Kernel&, const ir::Capabilities&);
std::unique_ptr<CFamily> make_wgsl_printer(const ir::Kernel&, const ir::Capabilities&);

// One kernel with the part of the prelude that it uses.
PrintedKernel print_alone(CFamily& printer);

}  // namespace prism
