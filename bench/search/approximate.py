#!/usr/bin/env python3
"""Compares approximate search on the CPU with faiss (HNSW and IVF), usearch and hnswlib, in the same run over the same rows.

usage: bench/search/approximate.py BUILD_FOLDER [ROWS [PEER...]]      (default: 1000000 rows of 128 numbers, all peers)

The peers come from PyPI into BUILD_FOLDER/search-peers. Rows and queries are clustered: 1,000 centers, and around each a
normal distribution of 32 dimensions with a little noise in all 128. Every program searches with the least effort that
finds 95% of the 10 nearest; the effort is raised until it does. Printed: seconds of the build, queries per second of a
batch (the best of three), recall, and the growth of the process's memory. Builds use the settings that each peer
recommends or has by default: HNSW with 32 links and effort 40 (faiss), 16 and 200 (hnswlib), 16 and 128 (usearch); lists
as the square root of the number of rows (faiss IVF). The graph of Prism is compared with the graphs, its lists with the
lists."""
import pathlib
import re
import subprocess
import sys

from peers import make_environment

COMMON = """
import os, sys, time, numpy
folder = sys.argv[1]
threads = len(os.sched_getaffinity(0))
rows, queries, truth = (numpy.load(f"{folder}/{name}.npy") for name in ("rows", "queries", "truth"))
count, width = rows.shape
EFFORTS = [10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256, 384, 512]
def memory():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1024
def report(build, set_effort, search, efforts=EFFORTS):
    before, start = memory(), time.perf_counter()
    build()
    seconds, grown = time.perf_counter() - start, memory() - before
    for effort in efforts:
        set_effort(effort)
        best = 1e9
        for _ in range(3):
            start = time.perf_counter()
            ids = search(queries)
            best = min(best, time.perf_counter() - start)
        recall = sum(len(set(a) & set(b)) for a, b in zip(ids.tolist(), truth.tolist())) / truth.size
        if recall >= 0.95:
            break
    print(f"{seconds} {len(queries) / best} {recall} {grown} {effort}")
"""
PEERS = {
    "faiss-hnsw": """
import faiss
index = faiss.IndexHNSWFlat(width, 32)
def effort(value): index.hnsw.efSearch = value
report(lambda: index.add(rows), effort, lambda q: index.search(q, 10)[1])
""",
    "faiss-ivf": """
import faiss
quantizer = faiss.IndexFlatL2(width)
index = faiss.IndexIVFFlat(quantizer, width, int(count ** 0.5))
def build():
    index.train(rows)
    index.add(rows)
def effort(value): index.nprobe = value
report(build, effort, lambda q: index.search(q, 10)[1], [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256])
""",
    "usearch": """
from usearch.index import Index
index = Index(ndim=width, metric="l2sq", dtype="f32")
def effort(value): index.expansion_search = value
report(lambda: index.add(numpy.arange(count), rows, threads=threads), effort, lambda q: index.search(q, 10, threads=threads).keys)
""",
    "hnswlib": """
import hnswlib
index = hnswlib.Index("l2", width)
def build():
    index.init_index(count, M=16, ef_construction=200)
    index.set_num_threads(threads)
    index.add_items(rows)
report(build, lambda value: index.set_ef(value), lambda q: index.knn_query(q, 10)[0])
""",
}
MAKE = """
import sys, numpy, faiss
folder, count = sys.argv[1], int(sys.argv[2])
generator = numpy.random.default_rng(7)
plane = generator.standard_normal((32, 128), dtype=numpy.float32) / numpy.float32(32 ** 0.5)
centers = generator.standard_normal((1000, 128), dtype=numpy.float32)
def make(n):
    x = centers[generator.integers(0, 1000, n)]
    x += generator.standard_normal((n, 32), dtype=numpy.float32) @ plane
    x += numpy.float32(0.1) * generator.standard_normal((n, 128), dtype=numpy.float32)
    return x
rows, queries = make(count), make(2000)
exact = faiss.IndexFlatL2(128)
exact.add(rows)
for name, array in (("rows", rows), ("queries", queries), ("truth", exact.search(queries, 10)[1].astype(numpy.int32))):
    numpy.save(f"{folder}/{name}.npy", array)
"""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rows = sys.argv[2] if len(sys.argv) > 2 else "1000000"
    peers = sys.argv[3:] or list(PEERS)
    python = make_environment(build)
    folder = build / "search-peers" / f"clustered-{rows}"
    if not (folder / "truth.npy").exists():
        folder.mkdir(exist_ok=True)
        subprocess.run([python, "-c", MAKE, folder, rows], check=True)
    ours = {}
    for method in ("graph", "ivf"):
        words = [build / "index_bench", "--method", method]
        for name in ("rows", "queries", "truth"):
            words += ["--" + name, folder / f"{name}.npy"]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        seconds = float(re.search(r"build ([\d.]+) s", text)[1])
        rate, recall, how = re.search(r"batch (\d+) queries/s, recall ([\d.]+), (.*)", text).groups()
        memory = re.search(r"memory (\d+) MiB", text)[1]
        ours[method] = seconds, float(rate)
        print(f"prism {method}: build {seconds:.1f} s, {rate} queries/s, recall {recall}, {memory} MiB ({how})", flush=True)
    for peer in peers:
        text = subprocess.run([python, "-c", COMMON + PEERS[peer], folder], check=True, capture_output=True, text=True).stdout
        seconds, rate, recall, memory, effort = map(float, text.split())
        own_seconds, own_rate = ours["ivf" if peer == "faiss-ivf" else "graph"]
        print(f"{peer}: build {seconds:.1f} s, {rate:.0f} queries/s, recall {recall:.4f}, {memory:.0f} MiB (effort {effort:.0f}); prism: "
              f"{own_rate / rate:.2f}x the queries/s, build {seconds / own_seconds:.2f}x as fast", flush=True)


if __name__ == "__main__":
    main()
