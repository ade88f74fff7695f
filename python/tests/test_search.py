"""Indexes of vectors, compared with NumPy in float64."""
import threading

import numpy as np
import pytest

import prismrt as prism


def nearest(rows, query, k, metric):
    x, q = rows.astype(np.float64), query.astype(np.float64)
    scores = ((x - q) ** 2).sum(1) if metric == "l2" else -(x @ q)
    if metric == "cosine":
        scores /= np.linalg.norm(x, axis=1)
    return np.argsort(scores, kind="stable")[:k]


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(1)
    return (generator.standard_normal((3000, 24)) + 2 * generator.standard_normal((20, 24))[generator.integers(0, 20, 3000)]).astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_exact_search_agrees_with_numpy(rows, metric):
    index = prism.Index(24, metric=metric)
    index.add(np.arange(len(rows)), rows)
    assert len(index) == 3000 and 17 in index and 5000 not in index
    assert np.array_equal(index[17], rows[17])
    queries = rows[:5] + 0.1
    found = index.search(queries, k=7)
    assert found.ids.shape == (5, 7) and found.scores.dtype == np.float32 and "exact" in found.how
    for query, ids in zip(queries, found.ids):
        assert np.array_equal(ids, nearest(rows, query, 7, metric))
    one = index.search(queries[0], 7)
    assert one.ids.shape == (7,) and np.array_equal(one.ids, found.ids[0])


@pytest.mark.parametrize("method", ["ivf", "graph"])
def test_methods(rows, method):
    index = prism.Index(24, metric="l2", dtype="f16")
    index.add(range(len(rows)), rows)
    index.build(method)
    info = index.info()
    assert info["method"] == method and info["measured"] and method in repr(index)
    queries = rows[::100] + 0.05
    found = index.search(queries, 10, method=method, effort=60 if method == "graph" else 20)
    right = [len(set(ids.tolist()) & set(nearest(rows, query, 10, "l2").tolist())) for query, ids in zip(queries, found.ids)]
    assert np.mean(right) > 9 and method in found.how
    assert "exact" in index.search(queries[0], recall=1.0).how


def test_fields_of_numpy_and_of_mixed_numbers():
    index = prism.Index(1, metric="l2")
    index.add(np.arange(3), np.arange(3).reshape(-1, 1),
              [{"n": np.int64(i), "share": 1 if i == 0 else np.float32(0.5), "even": i % 2 == 0} for i in range(3)])
    assert index.search([0.0], 3, filter="share == 1").ids.tolist() == [0]
    assert index.search([0.0], 3, filter="n >= 1 and even == 1").ids.tolist() == [2]
    with pytest.raises(prism.InvalidArgument, match="field when is a dict"):
        index.add(7, [7.0], {"when": {}})
    with pytest.raises(prism.InvalidArgument):  # the last one has an id that exists
        index.add([8, 9, 1], [[8.0], [9.0], [1.0]])
    assert len(index) == 3 and 8 not in index


def test_filters_fields_and_groups():
    index = prism.Index(1, metric="l2", text_ids=True)
    index.add([f"v{i}" for i in range(100)], np.arange(100, dtype=np.float32).reshape(-1, 1),
              [{"n": i, "share": i / 100, "kind": "even" if i % 2 == 0 else "odd", "tags": ["x", str(i)]} for i in range(100)])
    zero = np.zeros(1, np.float32)
    assert index.search(zero, 2, filter="n >= 50 and kind == 'odd'").ids == ["v51", "v53"]
    assert index.search(zero, 5, filter={"v9", "v4"}).ids == ["v4", "v9"]
    assert index.search(zero, 2, filter=lambda id: id.endswith("7")).ids == ["v7", "v17"]
    assert index.search(zero, 1, filter="tags == '33'").ids == ["v33"]
    assert index.search(zero, 5, group_by="kind").ids == ["v0", "v1"]
    assert index.search_within(zero, 4.0).ids == ["v0", "v1", "v2"]
    assert len(index.search(zero, 5, filter="n > 1000")) == 0


def test_files_and_changes(tmp_path):
    path = tmp_path / "index"
    prism.Index(2, metric="dot").save(path)
    index = prism.Index.open(path, writable=True)
    index.add(1, [1, 0], {"year": 1999})
    index.update(1, [0, 1], {"year": 2000})
    index.add([2, 3], [[1, 1], [2, 2]])
    assert index.remove(3) and not index.remove(3)
    reader = prism.Index.open(path)
    assert len(reader) == 0
    index.commit()
    reader.refresh()
    reader.verify()
    assert len(reader) == 2 and reader[1].tolist() == [0, 1]
    index.compact()
    assert index.info()["removed"] == 0


def test_errors(tmp_path):
    index = prism.Index(3)
    index.add(1, [1, 2, 3])
    for call in (lambda: index.add(1, [1, 2, 3]), lambda: index.add(2, [1, 2]), lambda: index.add(2, [1, 2, float("nan")]),
                 lambda: index.search([1, 2]), lambda: index.search([1, 2, 3], method="graph"), lambda: index.search([1, 2, 3], recall=2),
                 lambda: index.search([1, 2, 3], filter="n >"), lambda: prism.Index(3, metric="none"), lambda: index.add([1, 2], [[1, 2, 3]])):
        with pytest.raises(prism.InvalidArgument):
            call()
    with pytest.raises(KeyError):
        index[7]
    with pytest.raises(prism.NotFound):
        prism.Index.open(tmp_path / "absent")
    with pytest.raises(ZeroDivisionError):
        index.search([1, 2, 3], filter=lambda id: 1 / 0)


def test_threads(rows):
    index = prism.Index(24)
    index.add(range(len(rows)), rows)
    found = [None] * 4

    def search(i):
        found[i] = index.search(rows[i * 10:i * 10 + 10], 1).ids[:, 0].tolist()

    threads = [threading.Thread(target=search, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(i * 10, i * 10 + 10)) for i in range(4)]
