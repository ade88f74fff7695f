"""Nearest rows: scores against float64, filters, types, and wrong arguments."""
import numpy as np
import pytest

import prismrt as prism
from seeds import fresh_random


def data(rows=301, width=67, queries=5):
    random = fresh_random()
    return random.standard_normal((queries, width)).astype(np.float32), random.standard_normal((rows, width)).astype(np.float32)


def scores_of(metric, query, matrix):
    query, matrix = query.astype(float), matrix.astype(float)
    if metric == "cosine":
        return query @ matrix.T / np.linalg.norm(query, axis=1)[:, None] / np.linalg.norm(matrix, axis=1)
    return query @ matrix.T if metric == "dot" else ((query[:, None] - matrix) ** 2).sum(-1)


@pytest.mark.parametrize("device", [device.id for device in prism.devices()])
@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_against_float64(metric, device):
    query, matrix = data()
    expected = scores_of(metric, query, matrix)
    order = np.argsort(expected if metric == "l2" else -expected, axis=1)[:, :7]
    function = getattr(prism, metric + "_top_k")
    found = function(prism.tensor(query, device=device), prism.tensor(matrix, device=device), 7)
    assert isinstance(found, prism.Nearest) and found.indices.device.id == device
    np.testing.assert_array_equal(found.indices.numpy(), order)
    np.testing.assert_allclose(found.scores.numpy(), np.take_along_axis(expected, order, 1), rtol=1e-4, atol=1e-4)
    scores, indices = function(query[0], matrix, k=7)  # arrays of NumPy, one query
    assert indices.tolist() == order[0].tolist() and scores.shape == (7,)


def test_hamming():
    random = fresh_random()
    query, matrix = random.integers(0, 256, 9).astype(np.uint8), random.integers(0, 256, (50, 9)).astype(np.uint8)
    distances = np.unpackbits(query ^ matrix, axis=1).sum(1)
    found = prism.hamming_top_k(query, matrix, 10)
    assert found.scores.tolist() == sorted(distances)[:10]
    assert [distances[i] for i in found.indices.tolist()] == sorted(distances)[:10]


def test_allowed_rows_and_norms():
    query, matrix = data(queries=1)
    allowed = np.arange(301) % 3 == 0
    expected = np.where(allowed, scores_of("cosine", query, matrix)[0], -np.inf)
    bits = np.packbits(np.append(allowed, np.zeros(19, bool)), bitorder="little").view(np.int32)
    for mask in (allowed, prism.tensor(allowed), allowed.tolist(), bits):
        found = prism.cosine_top_k(query[0], matrix, 4, norms=prism.row_norms(matrix), allowed=mask)
        assert found.indices.tolist() == np.argsort(-expected)[:4].tolist()
    np.testing.assert_allclose(prism.row_norms(matrix).numpy(), np.linalg.norm(matrix, axis=1), rtol=1e-5)
    found = prism.dot_top_k(query[0], matrix, 3, allowed=[False] * 300 + [True])
    assert found.indices.tolist() == [300, -1, -1] and found.scores.tolist()[1:] == [-np.inf, -np.inf]


def test_int8_with_scales():
    random = fresh_random()
    codes, scales = random.integers(-127, 128, (40, 16)).astype(np.int8), random.uniform(0.5, 2, 40)
    query = random.standard_normal(16).astype(np.float32)
    expected = (codes.astype(float) * scales[:, None]) @ query
    found = prism.dot_top_k(query, codes, 5, scales=scales)
    assert found.indices.tolist() == np.argsort(-expected)[:5].tolist()


def test_wrong_arguments():
    query, matrix = data()
    with pytest.raises(ValueError, match="66|67"):
        prism.cosine_top_k(query[:, :66], matrix, 3)
    with pytest.raises(ValueError, match="2048"):
        prism.l2_top_k(query, matrix, 5000)
    with pytest.raises(ValueError, match="one bool for each row"):
        prism.dot_top_k(query, matrix, 3, allowed=[True, False])
    with pytest.raises(TypeError, match="k: int"):
        prism.dot_top_k(query, matrix)
    with pytest.raises(TypeError, match="norms"):
        prism.cosine_top_k(query, matrix, 3, "norms")
