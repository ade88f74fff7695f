// Importance matrices: how much each column of a weight matrix counts, measured by the squares of
// what it was multiplied by. Their files are GGUF as llama.cpp writes and reads them ("imatrix").
//
// A file has general.type "imatrix", imatrix.datasets, imatrix.chunk_count and imatrix.chunk_size,
// and for each matrix NAME two tensors of f32: NAME.in_sum2 [matrices, columns] with the sums of
// squares, and NAME.counts [matrices, 1] with the number of rows in each sum.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"

namespace prism::llm {

struct Importance {
  std::vector<float> sums;    // [matrices, columns]
  std::vector<float> counts;  // one for each matrix (of experts), or one for all
};

struct ImportanceMatrix {
  std::map<std::string, Importance> tensors;  // by name: "blk.0.attn_q.weight"
  std::vector<std::string> texts;             // what it was measured with
  uint32_t chunks = 0, chunk_tokens = 0;

  // Throws kCorruptFile naming the tensor if something is missing, does not fit or is no number,
  // and kInvalidArgument for a GGUF file of another kind.
  static ImportanceMatrix open(const std::string& path);
  void write(const std::string& path) const;

  // The mean squares by column: one list for each matrix of the tensor, empty if nothing was
  // measured for it. No lists if the tensor is not in the file. Throws kInvalidArgument if the
  // sizes differ.
  std::vector<std::vector<float>> weights_of(const GgufTensor& tensor) const;
};

}  // namespace prism::llm
