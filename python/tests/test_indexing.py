"""Indexing and assignment by NumPy's rules: every case is also done by NumPy."""
import numpy as np
import pytest

import prismrt as prism

ARRAY = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
MASK = ARRAY % 7 < 3

INDICES = [
    0, -1, slice(1, None), slice(None, None, -1), slice(-2, None), slice(0, 0), ..., None, (0, 1, 2), (..., 1), (1, ...),
    (slice(None), 2), (slice(None), slice(None, None, 2), slice(4, 0, -2)), (None, 1, None), (0, ..., None), (),
    [0, 2], [-1, 0, 0], np.array([[0, 1], [2, 0]]), ([0, 1], [1, 2]), (slice(None), [3, 1]), (slice(None), [0, 1], [2, 3]),
    ([0, 1], slice(None), [2, 3]), (0, [1, 2]), (0, slice(None), [1, 2]), ([0, 2], ..., 1), (slice(1, 3), [[0], [1]]),
    (..., [1, -1]), ([0, 1], None, [1, 2]), MASK, MASK[:, :, 0], MASK[:, 0, 0], (slice(None), MASK[0]),
    (0, MASK[0, :, 0]), (MASK[:, 0, 0], 1), [True, False, True], True, False, np.int64(1), (np.int32(2), -3),
]


def as_given(index):
    """The same index with tensors in the place of arrays."""
    if isinstance(index, tuple):
        return tuple(as_given(each) for each in index)
    return prism.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading(index):
    expected = ARRAY[index]
    for given in (index, as_given(index)):
        result = prism.tensor(ARRAY)[given]
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing(index):
    for value in (7.0, np.float32(100) + np.arange(np.size(ARRAY[index]), dtype=np.float32).reshape(ARRAY[index].shape)):
        expected, tensor = ARRAY.copy(), prism.tensor(ARRAY)
        expected[index] = value
        if np.shape(value):
            repeated = isinstance(index, list) and len(set(index)) != len({each % 3 for each in index})
            if repeated:
                continue
        tensor[as_given(index)] = value
        np.testing.assert_array_equal(tensor.numpy(), expected)


def test_writing_keeps_other_tensors():
    x = prism.tensor(ARRAY)
    row, copy = x[0], x.clone()
    x[0] = 1
    assert row[0, 1].item() == 1 and copy[0, 0, 2].item() == 2 and x[0, 0, 2].item() == 1


def test_writing_converts_and_broadcasts():
    x = prism.zeros((2, 3), dtype="int32")
    x[:, 1] = prism.tensor([1.0, 2.0])
    x[1] += 5
    assert x.tolist() == [[0, 1, 0], [5, 7, 5]] and x.dtype == prism.int32
    with pytest.raises(ValueError):
        x[0] = [1, 2]


@pytest.mark.parametrize("index", [3, -4, (0, 4), [0, 3], (slice(None), [4])], ids=str)
def test_out_of_range(index):
    with pytest.raises(IndexError, match="out of range"):
        prism.tensor(ARRAY)[index]


def test_wrong_indices():
    x = prism.tensor(ARRAY)
    with pytest.raises(IndexError, match="too many"):
        x[0, 0, 0, 0]
    with pytest.raises(IndexError):
        x[[0.5]]
    with pytest.raises(IndexError, match="mask"):
        x[prism.tensor([True, False])]
    with pytest.raises(TypeError):
        x["a"]


def test_iteration_and_nonzero():
    x = prism.tensor(ARRAY)
    assert [row.shape for row in x] == [(4, 5)] * 3
    for mine, expected in zip(prism.nonzero(prism.tensor(MASK)), np.nonzero(MASK)):
        np.testing.assert_array_equal(mine.numpy(), expected)
    np.testing.assert_array_equal(prism.take(x, prism.tensor([2, 0]), axis=1).numpy(), ARRAY.take([2, 0], 1))


def test_gradient_through_indexing():
    x = prism.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (x[[0, 2, 2]] * prism.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1, 0, 110, 0]
