// The ops that close the loop of decoding on the device: choosing a token, and going on with it.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

namespace prism::llm {

// How one sequence chooses, in words of an i32 tensor: temperature (f32 bits; 0 or less: the
// likeliest), top_k (0: all), top_p (f32 bits), min_p (f32 bits), seed low, seed high, 0, 0.
inline constexpr int64_t kSamplingWords = 8;

// values [rows, n] f32, the largest first, and indices [rows, n] i32, as top_k gives them; sampling
// i32 [rows, kSamplingWords]; positions i32 [rows]: i32 [rows]. Of the first top_k the likeliest
// that make up top_p of their probability, of those all with at least min_p of the first one's;
// then one by chance at the temperature. The random number is that of (seed, position).
Tensor choose_tokens(const Tensor& values, const Tensor& indices, const Tensor& sampling,
                     const Tensor& positions);

// Where things are in the words of a decode loop.
struct AdvancePlaces {
  int64_t rows = 0;
  int64_t tokens = 0, positions = 0, places = 0, spans = 0;
  int64_t step = 0;                        // a counter
  int64_t history = 0, history_steps = 0;  // a ring of steps of rows
};

// Changes words in place: each row that is in a sequence gets its token and moves on by one
// position; the tokens go into the history, the counter up by one.
Tensor advance(const Tensor& words, const Tensor& tokens, const AdvancePlaces& places);

}  // namespace prism::llm
