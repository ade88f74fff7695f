// The ops that keep the decode loop on the device: sampling a token and advancing to the next
// position.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/tensor.h"

namespace prism::llm {

// The sampling settings of one sequence as words of an i32 tensor: temperature (f32 bits; 0 or
// less: greedy), top_k (0: all), top_p (f32 bits), min_p (f32 bits), seed low, seed high, 0, 0.
inline constexpr int64_t kSamplingWords = 8;

// Samples one token per row: i32 [rows]. values [rows, n] f32 in descending order and indices
// [rows, n] i32 are the results of top_k; sampling is i32 [rows, kSamplingWords], positions i32
// [rows]. Applies top_k, top_p and min_p as Sampling (decode.h) does, then draws at the temperature
// with the random number of (seed, position). The token is kNoToken (finite.h) if the largest value
// of a row, in which NaN counts as the largest, is not finite.
Tensor choose_tokens(const Tensor& values, const Tensor& indices, const Tensor& sampling,
                     const Tensor& positions);

// Offsets in the words of a decode loop.
struct AdvancePlaces {
  int64_t rows = 0;
  int64_t tokens = 0, positions = 0, spans = 0;
  std::vector<int64_t> places, tables;     // by group of layers (BatchLayout)
  int64_t table_entries = 0, block = 1;    // block: positions, a power of two
  int64_t step = 0;                        // step counter
  int64_t history = 0, history_steps = 0;  // ring buffer of [history_steps, rows] tokens
};

// Updates words in place: each row that belongs to a sequence receives its token (0 for kNoToken,
// which is no row of the embedding) and advances by one position, whose row of the cache is taken
// from its table. Appends the tokens to the history
// and increments the step counter.
Tensor advance(const Tensor& words, const Tensor& tokens, const AdvancePlaces& places);

}  // namespace prism::llm
