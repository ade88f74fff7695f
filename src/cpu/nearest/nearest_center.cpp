// The nearest center by products: |x - c|^2 is least where x c - |c|^2 / 2 is largest.
#include "cpu/nearest/nearest_center.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "cpu/nearest/score_tile.h"
#include "prism/dtype.h"

namespace prism::cpu {

namespace {

// Rows that share a pass over the centers; their scores of a tile take 64 KB.
constexpr uint64_t kRows = 64;

}  // namespace

void nearest_centers(ThreadPool& pool, const float* x, uint64_t count, const float* centers,
                     uint64_t center_count, uint64_t width, uint32_t* nearest) {
  std::vector<float> halves(center_count);
  square_tile(DType::f32, centers, center_count, width, halves.data());
  for (float& half : halves) half /= 2;
  pool.parallel_for((count + kRows - 1) / kRows, 1, [&](uint64_t first, uint64_t last) {
    std::vector<float> scores(kRows * kTileRows);
    uint32_t above[kTileRows];
    for (uint64_t block = first; block < last; ++block) {
      const uint64_t begin = block * kRows, rows = std::min(kRows, count - begin);
      std::vector<float> best(rows, -std::numeric_limits<float>::infinity());
      std::fill_n(nearest + begin, rows, 0);
      for (uint64_t c = 0; c < center_count; c += kTileRows) {
        const uint64_t some = std::min<uint64_t>(kTileRows, center_count - c);
        score_tile(false, DType::f32, x + begin * width, rows, centers + c * width, nullptr, some,
                   width, scores.data());
        for (uint64_t r = 0; r < rows; ++r) {
          float* const of_row = scores.data() + r * kTileRows;
          for (uint64_t i = 0; i < some; ++i) of_row[i] -= halves[c + i];
          const size_t found = indices_above(of_row, 1, some, best[r], above);
          for (size_t i = 0; i < found; ++i) {
            if (!(of_row[above[i]] > best[r])) continue;
            best[r] = of_row[above[i]];
            nearest[begin + r] = static_cast<uint32_t>(c + above[i]);
          }
        }
      }
    }
  });
}

}  // namespace prism::cpu
