#!/usr/bin/env python3
"""Writes the ids that faiss's exact indexes find in GloVe and SIFT vectors, for tests/search/real_vectors_test.cpp.

usage: make_expected.py SHARED_DATA_FOLDER        (needs faiss-cpu 1.9.0 and numpy)

A line of expected.txt: data set, metric, number of the query, and the 10 best rows. Queries are rows of the set itself
(every 400th) or, for SIFT, its three queries as well. Queries whose 11 best scores in float64 are not apart by 1e-6 of
their size are left out: f32 sums may order those differently."""
import gzip
import pathlib
import sys

import faiss
import numpy

folder = pathlib.Path(sys.argv[1])
raw = (folder / "glove100-10k.f32").read_bytes()
count, width = numpy.frombuffer(raw, "<i4", 2)
glove = numpy.frombuffer(raw, "<f4", offset=8).reshape(count, width)


def table(text):
    return numpy.array([[float(x) for x in line.split()[:128]] for line in text.splitlines() if line.split()], dtype="f4")


sift = table(gzip.open(folder / "sift-5k-128.tsv.gz", "rt").read())
sift_queries = table((folder / "sift-query-3.tsv").read_text())

lines = []
for name, rows, queries in (("glove", glove, glove[::400]), ("sift", sift, numpy.concatenate([sift_queries, sift[::400]]))):
    for metric in ("cosine", "dot", "l2"):
        x, q = rows.copy(), queries.copy()
        if metric == "cosine":
            faiss.normalize_L2(x)
            faiss.normalize_L2(q)
        index = faiss.IndexFlatL2(rows.shape[1]) if metric == "l2" else faiss.IndexFlatIP(rows.shape[1])
        index.add(x)
        ids = index.search(q, 10)[1]
        for i, query in enumerate(queries.astype("f8")):
            exact = rows.astype("f8")
            if metric == "l2":
                scores = ((exact - query) ** 2).sum(1)
            else:
                scores = -(exact @ query)
                if metric == "cosine":
                    scores /= numpy.linalg.norm(exact, axis=1) * numpy.linalg.norm(query)
            best = numpy.sort(scores)[:11]
            if (numpy.diff(best) > 1e-6 * numpy.maximum(1e-30, numpy.abs(best[1:]))).all():
                lines.append(f"{name} {metric} {i} " + " ".join(map(str, ids[i])))
(pathlib.Path(__file__).parent / "expected.txt").write_text("\n".join(lines) + "\n")
print(len(lines), "queries")
