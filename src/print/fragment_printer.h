// Matrix fragments in registers, where the printer knows which lane holds which element: the part
// of a printer that CUDA, HIP and Metal share.
//
// A fragment is an array of each lane: accumulators of elements, operands of 32-bit words with
// neighbours along k inside (those of b: along n where the registers say so). The dialect's prelude
// says where they lie: prism_fragment_row(e) and prism_fragment_column(e) of accumulator element e;
// prism_a_row(r) and prism_a_k<k>(r) of the first element of word r, prism_b_column(r) and
// prism_b_k<k>(r) likewise.
#pragma once

#include <string>
#include <vector>

#include "print/c_family.h"

namespace prism {

struct FragmentRegisters {
  uint32_t sums = 0;       // accumulator elements of a lane
  uint32_t words = 0;      // operand words of a lane
  bool pairs = false;      // elements 2i and 2i+1 of an accumulator are neighbours along a row
  bool b_along_n = false;  // a word of a b operand holds neighbours along n
};

class FragmentPrinter : public CFamily {
 protected:
  FragmentPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                  const CTable& table, FragmentRegisters registers);

  std::string prologue() override;  // declares the fragments
  bool fragment(const Inst& inst);  // prints a fragment_* instruction; false for all others

  // Loads a whole operand by an instruction of the device's own; false where none fits.
  virtual bool load_at_once(const Inst&, const std::string&, const std::string&) { return false; }

  // How the first k of word prism_r is asked for; name: prism_a_k or prism_b_k.
  virtual std::string first_k(const char* name, uint32_t k) const;

  // Whether index and stride are known to be multiples of so many elements.
  bool is_aligned(const Inst& inst, uint32_t elements) const;
  const FragmentRegisters& registers() const { return registers_; }

 private:
  void fill(const Inst& inst);
  void load_accumulator(const Inst& inst);
  void store_accumulator(const Inst& inst);
  void load_operand(const Inst& inst);
  void store_operand(const Inst& inst);
  void map(const Inst& inst);
  // The index of element i of word prism_r of an operand.
  std::string operand_place(const Inst& inst, uint32_t i, const std::string& index,
                            const std::string& stride) const;
  std::string over_sums(uint32_t step = 1) const;
  std::string over_words() const;
  std::string place(const Inst& inst, const std::string& row, const std::string& column,
                    const std::string& index, const std::string& stride) const;

  FragmentRegisters registers_;
  std::vector<uint32_t> multiples_;  // of each value, when fragments need it
};

}  // namespace prism
