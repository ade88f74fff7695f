// f32 matrix products on the CPU, against OpenBLAS in the same run if it is installed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/system/dynamic_library.h"
#include "cpu/products/matmul.h"
#include "cpu/simd_targets.h"

namespace {

using Gemm = void (*)(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                      const float* a, int lda, const float* b, int ldb, float beta, float* c,
                      int ldc);

struct Shape {
  const char* name;
  size_t m, n, k;
  bool transpose_b;
};

constexpr Shape kShapes[] = {
    {"square 512", 512, 512, 512, false},
    {"square 1024", 1024, 1024, 1024, false},
    {"square 2048", 2048, 2048, 2048, false},
    {"weights transposed", 512, 1024, 1024, true},
    {"tall", 8192, 64, 512, false},
    {"wide", 64, 8192, 512, false},
    {"wide, transposed", 64, 4096, 1024, true},
    {"deep", 64, 64, 16384, false},
    {"odd", 509, 1021, 769, false},
    {"odd, transposed", 251, 1021, 769, true},
    {"few rows", 4, 4096, 4096, true},
    {"few rows", 8, 4096, 4096, true},
    {"few rows", 16, 4096, 4096, true},
    {"one row", 1, 4096, 4096, false},
    {"one row, transposed", 1, 4096, 4096, true},
    {"one column", 4096, 1, 4096, false},
};

bool count_processor_time = false;  // of all threads: fair with one thread on a busy machine

double seconds_of(const std::function<void()>& work) {
  if (count_processor_time) {
    const std::clock_t start = std::clock();
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int usage(const char* program) {
  std::fprintf(stderr, "usage: %s [--threads N] [--rounds N] [--cpu-time] [--json]\n", program);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  int rounds = 15;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--json"))
      json = true;
    else if (!std::strcmp(argv[i], "--cpu-time"))
      count_processor_time = true;
    else if (!std::strcmp(argv[i], "--threads") && i + 1 < argc)
      threads = static_cast<unsigned>(std::max(1, std::atoi(argv[++i])));
    else if (!std::strcmp(argv[i], "--rounds") && i + 1 < argc)
      rounds = std::max(1, std::atoi(argv[++i]));
    else
      return usage(argv[0]);
  }
  const auto blas = prism::DynamicLibrary::open_first({"libopenblas.so.0", "libopenblas.so"});
  const Gemm gemm = blas ? blas.function<Gemm>("cblas_sgemm") : nullptr;
  if (blas)
    if (const auto set = blas.function<void (*)(int)>("openblas_set_num_threads"))
      set(static_cast<int>(threads));
  prism::ThreadPool pool(threads);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  if (!json)
    std::printf("%u threads, %s, peer: %s; the best of %d rounds, ours and the peer's in turn\n",
                threads, prism::cpu::simd_target_in_use(), gemm ? "OpenBLAS" : "none found",
                rounds);
  if (json) std::printf("[");
  bool first = true;
  for (const Shape& s : kShapes) {
    std::vector<float> a(s.m * s.k), b(s.k * s.n), ours(s.m * s.n), peers(s.m * s.n);
    for (float& v : a) v = uniform(random);
    for (float& v : b) v = uniform(random);
    const size_t ldb = s.transpose_b ? s.k : s.n;
    const auto run_ours = [&] {
      prism::cpu::matmul_f32(pool, s.m, s.n, s.k, a.data(), s.k, false, b.data(), ldb,
                             s.transpose_b, ours.data(), s.n);
    };
    const auto run_peer = [&] {
      gemm(101, 111, s.transpose_b ? 112 : 111, static_cast<int>(s.m), static_cast<int>(s.n),
           static_cast<int>(s.k), 1.0f, a.data(), static_cast<int>(s.k), b.data(),
           static_cast<int>(ldb), 0.0f, peers.data(), static_cast<int>(s.n));
    };
    double best = 1e30, peer = 1e30;
    for (int round = 0; round <= rounds; ++round) {
      const double t = seconds_of(run_ours);
      const double p = gemm ? seconds_of(run_peer) : 0;
      if (round == 0) continue;  // warm-up
      best = std::min(best, t);
      peer = std::min(peer, p);
    }
    double worst = 0;
    if (gemm)
      for (size_t i = 0; i < ours.size(); ++i)
        worst = std::max(worst, static_cast<double>(std::abs(ours[i] - peers[i])));
    const double work =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) * 1e-9;
    if (json) {
      std::printf(
          "%s\n  {\"shape\": \"%s\", \"m\": %zu, \"n\": %zu, \"k\": %zu, \"threads\": %u, "
          "\"gflops\": %.2f, \"peer_gflops\": %.2f, \"ratio\": %.3f, \"worst\": %.2e}",
          first ? "" : ",", s.name, s.m, s.n, s.k, threads, work / best, gemm ? work / peer : 0.0,
          gemm ? peer / best : 0.0, worst);
    } else {
      std::printf("%-20s %5zu x %5zu x %5zu  %8.1f GFLOP/s", s.name, s.m, s.n, s.k, work / best);
      if (gemm) std::printf("  peer %8.1f  ratio %.2f", work / peer, peer / best);
      std::printf("\n");
    }
    std::fflush(stdout);
    first = false;
  }
  if (json) std::printf("\n]\n");
  return 0;
}
