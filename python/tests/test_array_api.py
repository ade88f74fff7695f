"""The array API: functions that are composed of others, compared with NumPy; the official suite tests the rest."""
import numpy as np
import pytest

import prismrt as prism
from prismrt import array_api as xp

VALUES = np.array([-np.inf, -3.5, -1, -0.3, -0.0, 0.0, 1e-3, 0.7, 1, 40, np.inf, np.nan])
INSIDE = np.linspace(-1, 1, 41)


def same(tensor, expected, tolerance=1e-6):
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=1e-12)
    zeros = np.asarray(expected) == 0
    np.testing.assert_array_equal(np.signbit(tensor.numpy())[zeros], np.signbit(np.asarray(expected))[zeros])


@pytest.mark.parametrize("mine, its", [("atan", "arctan"), ("asinh", "arcsinh"), ("sinh", "sinh"), ("cosh", "cosh"),
                                       ("expm1", "expm1"), ("trunc", "trunc")])
def test_elementary(mine, its):
    with np.errstate(all="ignore"):
        same(getattr(xp, mine)(prism.tensor(VALUES)), getattr(np, its)(VALUES))


@pytest.mark.parametrize("mine, its", [("asin", "arcsin"), ("acos", "arccos"), ("atanh", "arctanh")])
def test_elementary_within_one(mine, its):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(getattr(xp, mine)(prism.tensor(INSIDE)).numpy(), getattr(np, its)(INSIDE), 1e-7, 1e-7)


@pytest.mark.parametrize("name", ["atan2", "hypot", "copysign", "logaddexp"])
def test_pairs(name):
    a, b = VALUES[:, None], VALUES[None, :]
    its = {"atan2": "arctan2"}.get(name, name)
    with np.errstate(all="ignore"):
        expected = getattr(np, its)(a, b)
    np.testing.assert_allclose(getattr(xp, name)(prism.tensor(a), prism.tensor(b)).numpy()[:-1, :-1],
                               expected[:-1, :-1], 1e-6, 1e-9)


def test_remainder():
    a, b = np.array([5.5, -5.5, 0.0, -0.0, 3.0, -3.0, np.inf]), np.array([2.0, -2.0, np.inf, -np.inf])[:, None]
    with np.errstate(all="ignore"):
        same(prism.tensor(a) % prism.tensor(b), a % b)
        same(xp.remainder(prism.tensor(a), prism.tensor(b)), a % b)


def test_reductions_and_sets():
    x = np.array([[3, 1, 2], [1, 1, 5]], dtype=np.int32)
    t = prism.tensor(x)
    assert xp.prod(t).item() == 30 and xp.prod(t, axis=1).tolist() == [6, 5]
    assert xp.cumulative_prod(t, axis=1).tolist() == x.cumprod(1).tolist()
    assert xp.cumulative_sum(t, axis=1, include_initial=True).tolist() == [[0, 3, 4, 6], [0, 1, 2, 7]]
    found, expected = xp.unique_all(t), np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for mine, its in zip(found, expected):
        np.testing.assert_array_equal(mine.numpy().ravel(), its.ravel())
    assert xp.searchsorted(prism.tensor([1, 3, 5]), prism.tensor([0, 3, 9])).tolist() == [0, 1, 3]
    assert xp.isin(t, prism.tensor([5, 2])).tolist() == np.isin(x, [5, 2]).tolist()
    assert xp.var(prism.tensor([1.0, 2.0]), axis=()).tolist() == [0, 0]


def test_namespace():
    x = prism.ones(2)
    assert x.__array_namespace__() is xp and x.to_device("cpu").device.is_cpu
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16 and xp.finfo(xp.float32).eps == np.finfo(np.float32).eps
    assert not xp.can_cast(xp.float64, xp.float32) and xp.isdtype(xp.int8, "integral")
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.12")
