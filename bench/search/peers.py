#!/usr/bin/env python3
"""Compares exact search on the CPU with faiss and usearch, in the same run and over the same rows.

usage: bench/search/peers.py BUILD_FOLDER [ROWSxWIDTH...]      (default: 200000x128 100000x768)

The peers come from PyPI into BUILD_FOLDER/search-peers. Rounds alternate between the programs; the best round of each
counts, because other work on the machine only ever slows a round down. Metric: dot product, f32, the best 10."""
import pathlib
import re
import subprocess
import sys

PACKAGES = ["numpy==1.26.4", "faiss-cpu==1.9.0", "usearch==2.16.9", "hnswlib==0.8.0"]
ROUNDS = 3

PEERS = """
import sys, time
import numpy, faiss
from usearch.index import search, MetricKind
rows = numpy.load(sys.argv[1])
width = rows.shape[1]
index = faiss.IndexFlatIP(width)
index.add(rows)
generator = numpy.random.default_rng(1)
for count in (1, 64):
    queries = generator.standard_normal((count, width), dtype=numpy.float32)
    def timed(run):
        run()
        best = 1e9
        for _ in range(7):
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
        return best * 1e3
    print(count, timed(lambda: index.search(queries, 10)),
          timed(lambda: search(rows, queries, 10, MetricKind.IP, exact=True)), flush=True)
"""


def make_environment(build):
    """The Python of an environment with the peers, which is made if it is not there."""
    venv = build / "search-peers"
    if not (venv / "packages").exists() or (venv / "packages").read_text() != str(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/python", "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (venv / "packages").write_text(str(PACKAGES))
    return venv / "bin/python"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    sizes = sys.argv[2:] or ["200000x128", "100000x768"]
    venv = build / "search-peers"
    python = make_environment(build)
    for size in sizes:
        rows, width = size.split("x")
        file = venv / f"rows-{size}.npy"
        make = ("import numpy, sys; numpy.save(sys.argv[1], numpy.random.default_rng(7).standard_normal("
                "(int(sys.argv[2]), int(sys.argv[3])), dtype=numpy.float32))")
        subprocess.run([python, "-c", make, file, rows, width], check=True)
        best = {}
        for _ in range(ROUNDS):
            ours = subprocess.run([build / "bench_search", "--file", file, "--queries", "1,64", "--metric", "dot"], check=True,
                                  capture_output=True, text=True).stdout
            for count, ms, equal in re.findall(r"(\d+) queries, k \d+: ([\d.]+) ms.* (\d+)% equal", ours):
                best[count, "prism"] = min(best.get((count, "prism"), 1e9), float(ms))
            theirs = subprocess.run([python, "-c", PEERS, file], check=True, capture_output=True, text=True).stdout
            for count, faiss, usearch in (line.split() for line in theirs.splitlines()):
                best[count, "faiss"] = min(best.get((count, "faiss"), 1e9), float(faiss))
                best[count, "usearch"] = min(best.get((count, "usearch"), 1e9), float(usearch))
        for count in ("1", "64"):
            peer = min(best[count, "faiss"], best[count, "usearch"])
            print(f"{size} {count:>2} queries: prism {best[count, 'prism']:.2f} ms, faiss {best[count, 'faiss']:.2f} ms, "
                  f"usearch {best[count, 'usearch']:.2f} ms, {peer / best[count, 'prism']:.2f}x of the better", flush=True)
        file.unlink()


if __name__ == "__main__":
    main()
