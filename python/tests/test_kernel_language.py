"""The whole kernel language from Python: nothing of include/prism/kernel.h is missing, and every part runs."""
import pathlib
import re

import numpy as np
import pytest

import prismrt as prism
from prismrt.kernels import Kernel, KernelArray, KernelFragment, Value, Var, f16, f32, i32, u8, u16, u32
from seeds import fresh_random

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "prism" / "kernel.h"
# C++ names whose Python spelling differs. None: Python has no use for it.
SPELLED = {"in": "in_", "group_size": "lanes", "kernel": None}
OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "%": "mod", "&": "and", "|": "or", "^": "xor", "~": "invert",
             "<<": "lshift", ">>": "rshift", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
             "&&": "and", "||": "or", "!": "invert"}
RETURNS = r"(?:Value|void|Array|In|Fragment|Kernel|DType|Type|Element|uint32_t|Var&)"


def declared(text, indentation):
    names = set(re.findall(rf"^{indentation}(?:inline )?{RETURNS} (\w+)\(", text, re.M))
    return names | {"operator" + name for name in re.findall(rf"^{indentation}{RETURNS} operator([^\s(]+)\(", text, re.M)}


def class_body(name):
    return re.search(rf"^class {name} .*?^(}};| private| protected)", HEADER.read_text(), re.S | re.M).group()


def missing(names, type_, spelled):
    has = set(dir(type_))
    wanted = {name: OPERATORS[name[8:]] if name.startswith("operator") else spelled.get(name, name) for name in names}
    return sorted(name for name, spelling in wanted.items()
                  if spelling and spelling not in has and f"__{spelling}__" not in has)


def test_no_function_is_missing():
    text = re.sub(r"^class \w+.*?^};", "", HEADER.read_text(), flags=re.S | re.M)
    functions = declared(text, "")
    assert len(functions) > 100 and {"while_", "async_copy", "fragment_a", "operator+", "subgroup_scan"} <= functions
    operators = {name for name in functions if name.startswith("operator")}
    assert missing(functions - operators, Kernel, SPELLED) == []
    assert missing(operators, Value, {}) == missing(operators, Var, {}) == []


@pytest.mark.parametrize(("name", "type_", "spelled"), [
    ("Value", Value, {"id": None, "operator[]": None, "element": None}),
    ("Array", KernelArray, {"memory": None, "operator[]": None}),
    ("Var", Var, {"index": None}),
    ("Fragment", KernelFragment, {"index": None}),
])
def test_no_method_is_missing(name, type_, spelled):
    methods = {method for method in declared(class_body(name), "  ") if not method.startswith("operator")}
    assert methods and missing(methods, type_, spelled) == []
    if name in ("Value", "Array"):
        assert hasattr(type_, "__getitem__")


def test_everything_is_documented():
    for type_ in (Kernel, KernelArray, KernelFragment, Value, Var):
        assert [name for name, member in vars(type_).items() if not name.startswith("_") and not member.__doc__] == []


def devices():
    return [device.id for device in prism.devices()]


def everywhere(k, groups, **arguments):
    """The result of the interpreter, after every device gave the same."""
    expected = k.interpret(groups, **arguments)
    for device in devices():
        got = k.run(groups, device=device, **arguments)
        np.testing.assert_array_equal(got.numpy(), expected.numpy(), err_msg=device)
    return expected.numpy()


def test_while():
    with prism.kernel("collatz", 64) as k:
        x, y = k.in_("x", u32), k.out("y", u32)
        i = k.global_id()
        value, steps = k.var(u32, x[i]), k.var(u32, 0)
        with k.while_(lambda: value != 1):
            with k.if_((value & 1) == 0):
                value.set(value >> 1)
            with k.else_():
                value.set(value * 3 + 1)
            steps += 1
            with k.if_(steps >= 100):
                k.break_()
        y[i] = steps

    def collatz(n, steps=0):
        return steps if n == 1 else collatz(n // 2 if n % 2 == 0 else n * 3 + 1, steps + 1)

    start = np.arange(1, 65)
    assert everywhere(k, 1, x=start, y=64).tolist() == [min(collatz(n), 100) for n in start]


def test_while_with_a_wrong_condition():
    with pytest.raises(prism.InvalidKernel, match="test_kernel_language.py"):
        with prism.kernel("wrong", 64) as k:
            with k.while_(lambda: k.global_id()):
                pass
    with pytest.raises(prism.InvalidKernel, match="test_kernel_language.py"):
        with prism.kernel("wrong", 32) as k:
            k.accumulator(f32).map(lambda element, row, column: row)
    with pytest.raises(TypeError):
        with prism.kernel("wrong", 64) as k:
            with k.while_(True):
                pass
    with prism.kernel("mended", 64) as k:  # an exception in the condition leaves the kernel as it was
        y = k.out("y", u32)
        with pytest.raises(ZeroDivisionError):
            with k.while_(lambda: 1 / 0):
                pass
        y[k.global_id()] = k.global_id()
    assert k.interpret(1, y=64).tolist() == list(range(64))


def test_fragments():
    with prism.kernel("attention", 64) as k:
        q, keys, v = k.in_("q", f16), k.in_("keys", f16), k.in_("v", f16)
        o = k.out("o", f32)
        tiles = k.param("tiles", u32)
        subgroups = k.div(k.lanes(), k.subgroup_size())
        first = k.group_id() * subgroups
        with k.if_(first < tiles):
            start = k.min(first + k.subgroup_id(), tiles - 1) * 256
            a, b = k.fragment_a(f16), k.fragment_b(f16, (16, 16, 16))
            scores, reduced, result = (k.accumulator(f32) for _ in range(3))
            a.load(q, start, 16)
            b.load(keys, start, 16, layout="column_major")
            scores.fill(0.0)
            scores.multiply(a, b)
            scores.map(lambda s, row, column: k.select(column <= row, s * 0.25, -1e30))
            reduced.row_reduce("max", scores)
            scores.map(lambda e, row, column: k.exp(e[0] - e[1]), [scores, reduced])
            reduced.row_reduce("add", scores)
            a.convert(scores)
            b.load(v, start, 16)
            result.fill(0.0)
            result.multiply(a, b)
            result.map(lambda e, row, column: e[0] / e[1], [result, reduced])
            result.store(o, start, 16)
    random = fresh_random()
    q, keys, v = (random.standard_normal((3, 16, 16)).astype(np.float16) for _ in range(3))
    scores = q.astype(float) @ keys.astype(float).transpose(0, 2, 1) / 4
    scores = np.where(np.tril(np.ones((16, 16), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights @ v.astype(float) / weights.sum(-1, keepdims=True)
    # A subgroup has at least 8 of the 64 lanes, and each has a tile; the last tile is computed more than once.
    for run in (k.interpret, *(lambda *g, d=d, **n: k.run(*g, device=d, **n) for d in devices())):
        got = run(3, q=q, keys=keys, v=v, o=(3, 16, 16), tiles=3).numpy()
        np.testing.assert_allclose(got, expected, atol=4e-3)
    assert "mma" in k.source("cuda")


def test_fragment_made_of_packed_elements():
    with prism.kernel("ramp", 32) as k:
        k.require_subgroup_size(32)
        b_values, y = k.in_("b", f16), k.out("y", f32)
        a, b, total = k.fragment_a(f16), k.fragment_b(f16), k.accumulator(f32)
        a.make(lambda row, column: k.pack_f16(k.vec(k.cast(f32, row), k.cast(f32, row))))
        b.load(b_values, 0, 16)
        total.fill(0.0)
        total.multiply(a, b)
        total.store(y, 0, 16)
    assert "subgroup" in k.source().lower()
    got = k.interpret(1, b=np.eye(16, dtype=np.float16), y=(16, 16)).numpy()
    np.testing.assert_array_equal(got, np.repeat(np.arange(16.0), 16).reshape(16, 16))


def test_fragment_mistakes():
    for wrong, text in ((lambda k: k.fragment_a(f32), "operands are f16"), (lambda k: k.accumulator(f16), "accumulators f32")):
        with pytest.raises(prism.InvalidKernel, match=text):
            with prism.kernel("wrong", 32) as k:
                wrong(k)
    with prism.kernel("wrong", 32) as k:
        k.out("y", f32)[k.global_id()] = 0.0
        with pytest.raises(ValueError, match=r"\(m, n, k\)"):
            k.fragment_a(f16, (16, 16))
        with pytest.raises(ValueError, match="row_major or column_major"):
            k.fragment_a(f16).load(k.in_("x", f16), 0, 16, layout="diagonal")
        with pytest.raises(ValueError, match="bit_xor"):
            k.accumulator(f32).row_reduce("product", k.accumulator(f32))


def test_asynchronous_copies():
    with prism.kernel("ahead", 64) as k:
        x, y = k.in_("x", f32), k.out("y", f32)
        count = k.param("count", u32)
        tile = k.shared(f32, 512)
        lane = k.local_id()
        k.async_copy(tile, lane * 4, x, lane * 4, 4)
        k.async_commit()
        k.async_copy_if(lane * 4 + 256 < count, tile, lane * 4 + 256, x, lane * 4 + 256, 4)
        k.async_commit()
        k.async_wait(1)
        k.barrier()
        y[lane] = tile[255 - lane]
        k.async_wait()
        k.barrier()
        y[lane + 64] = tile[256 + lane]
    x = fresh_random().standard_normal(512).astype(np.float32)
    got = everywhere(k, 1, x=x, y=128, count=296)
    np.testing.assert_array_equal(got, np.concatenate([x[255:191:-1], x[256:296], np.zeros(24, np.float32)]))
    with prism.kernel("unwaited", 64) as k:  # the interpreter sees a read of what is still under way
        x, y, tile = k.in_("x", f32), k.out("y", f32), k.shared(f32, 64)
        k.async_copy(tile, k.local_id(), x, k.local_id(), 1)
        k.barrier()
        y[k.local_id()] = tile[k.local_id()]
    with pytest.raises(prism.InvalidKernel):
        k.interpret(1, x=np.zeros(64, np.float32), y=64)


def test_bits_words_and_atomics():
    with prism.kernel("bits", 32) as k:
        x, y = k.in_("x", u32), k.out("y", u32)
        i = k.local_id()
        y[i] = k.insert_bits(x[i], 0b101, 8, 3)
        y[i + 32] = k.extract_bits(x[i], 4, 8)
        y[i + 64] = k.select(~(i < 16), k.constant(u32, 7), k.constant_bits(u32, 9))
        pair = k.bitcast("u32x2", k.splat(k.cast(f32, i), 2))
        y[i + 96] = pair[0] ^ pair[1] ^ k.bitcast(u32, k.cast(f32, i))
        total = k.var("u32x2", k.vec(i, i + 1))
        total += k.splat(k.constant(u32, 2), 2)
        y[i + 128] = total.value[1]
        assert total.type == "u32x2" and x.element == "u32"
    x = fresh_random().integers(0, 2**31, 32)
    got = everywhere(k, 1, x=x, y=160)
    np.testing.assert_array_equal(got[:32], x & ~0x700 | 0x500)
    np.testing.assert_array_equal(got[32:64], x >> 4 & 255)
    np.testing.assert_array_equal(got[64:96], [9] * 16 + [7] * 16)
    np.testing.assert_array_equal(got[96:128].view(np.uint32), np.arange(32, dtype=np.float32).view(np.uint32))
    np.testing.assert_array_equal(got[128:], np.arange(32) + 3)

    with prism.kernel("words", 32) as k:
        x, y = k.in_("x", u8), k.inout("y", u32)
        i = k.local_id()
        words = x.load_words_if(i < 4, i * 2, 2)
        old = y.atomic("max", 0, words[0])
        y.atomic("bit_or", 1, k.select(old > 99, k.constant(u32, 1), 2))
        y.compare_exchange(2, 5, 6)
        y.store(3 + i, words[1])
    x = np.arange(32, dtype=np.uint8)
    got = k.interpret(1, x=x, y=np.array([0, 0, 5] + [0] * 32)).numpy()
    words = x.view(np.uint32)
    assert got[0] == words[6] and got[1] & 2 and got[2] == 6 and got[3:7].tolist() == words[1:8:2].tolist() and not got[7:].any()


def test_reductions_and_scans():
    with prism.kernel("reduce", 64) as k:
        x, y = k.in_("x", i32), k.out("y", i32)
        i = k.local_id()
        y[i] = k.group_reduce("min", x[i])
        y[i + 64] = k.group_reduce("bit_xor", x[i])
        lanes = k.cast(i32, k.subgroup_size())
        y[i + 128] = k.subgroup_scan("add", k.constant(i32, 1)) - k.subgroup_scan("add", k.constant(i32, 1), exclusive=True)
        y[i + 192] = k.subgroup_reduce("add", k.constant(i32, 1)) - lanes
    x = fresh_random().integers(-1000, 1000, 64)
    got = everywhere(k, 1, x=x, y=256)
    assert set(got[:64]) == {x.min()} and set(got[64:128]) == {np.bitwise_xor.reduce(x)}
    assert set(got[128:192]) == {1} and set(got[192:]) == {0}
    with pytest.raises(ValueError, match="no operation 'mean'"):
        with prism.kernel("wrong", 64) as k:
            k.group_reduce("mean", k.local_id())


def test_unrolled_loop_and_raw_text():
    with prism.kernel("raw", 64) as k:
        x, y = k.in_("x", f32), k.out("y", f32)
        i = k.global_id()
        total = k.var(f32, 0.0)
        with k.unrolled_for(4) as turn:
            total += x[i] * k.cast(f32, turn)
        y[i] = k.raw("cuda", "{r} = __fadd_rn({0}, {1});", [total, 0.5], f32, lambda: total + 0.5)
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(everywhere(k, 1, x=x, y=64), x * 6 + 0.5)
    assert "__fadd_rn" in k.source("cuda") and "__fadd_rn" not in k.source("opencl")


def test_small_types():
    with prism.kernel("narrow", 64) as k:
        x, y = k.in_("x", u16), k.out("y", u16)
        y[k.global_id()] = x[k.global_id()] + 1
    assert everywhere(k, 1, x=np.arange(64), y=64).tolist() == list(range(1, 65))
