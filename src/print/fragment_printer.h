// FragmentPrinter: matrix fragments in registers with a known lane-to-element mapping, shared by
// CUDA, HIP and Metal.
//
// A fragment is a per-lane array: elements of accumulators, and 32-bit words of operands that hold
// neighbours along k (for b: along n if b_along_n). The dialect's prelude defines the mapping:
// prism_fragment_row(e) and prism_fragment_column(e) for accumulator element e; prism_a_row(r) and
// prism_a_k<k>(r) for the first element of word r, and likewise prism_b_column(r) and
// prism_b_k<k>(r).
#pragma once

#include <string>
#include <vector>

#include "print/c_family.h"

namespace prism {

struct FragmentRegisters {
  uint32_t sums = 0;       // accumulator elements per lane
  uint32_t words = 0;      // operand words per lane
  bool pairs = false;      // elements 2i and 2i+1 of an accumulator are adjacent in a row
  bool b_along_n = false;  // a word of a b operand holds neighbours along n
};

class FragmentPrinter : public CFamily {
 protected:
  FragmentPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                  const CTable& table, FragmentRegisters registers);

  std::string prologue() override;  // declares the fragments
  bool fragment(const Inst& inst);  // prints a fragment_* instruction; false for all others

  // Loads a whole operand with a dedicated instruction; false if none fits.
  virtual bool load_at_once(const Inst&, const std::string&, const std::string&) { return false; }

  // The expression for the first k of word prism_r; name: prism_a_k or prism_b_k.
  virtual std::string first_k(const char* name, uint32_t k) const;

  // Whether index and stride are provably multiples of this many elements.
  bool is_aligned(const Inst& inst, uint32_t elements) const;
  const FragmentRegisters& registers() const { return registers_; }

 private:
  void fill(const Inst& inst);
  void load_accumulator(const Inst& inst);
  void store_accumulator(const Inst& inst);
  void load_operand(const Inst& inst);
  void store_operand(const Inst& inst);
  void map(const Inst& inst);
  void make(const Inst& inst);
  // The index of element i of word prism_r of an operand.
  std::string operand_place(const Inst& inst, uint32_t i, const std::string& index,
                            const std::string& stride) const;
  std::string over_sums(uint32_t step = 1) const;
  std::string over_words() const;
  std::string place(const Inst& inst, const std::string& row, const std::string& column,
                    const std::string& index, const std::string& stride) const;

  FragmentRegisters registers_;
  std::vector<uint32_t> multiples_;  // of each value, computed if there are fragments
};

}  // namespace prism
