"""DLPack both ways and __array__, without copies on the CPU."""
import gc

import numpy as np
import pytest

import prismrt as prism


def address(array):
    return array.__array_interface__["data"][0]


def test_numpy_shares_memory():
    x = prism.arange(12, dtype="float32").reshape(3, 4)
    x.eval()
    assert address(x.numpy()) == address(x.numpy())
    assert address(x.numpy()) == address(np.asarray(x)) == address(np.from_dlpack(x))
    assert not x.numpy().flags.writeable


def test_views_keep_their_strides():
    x = prism.arange(12).reshape(3, 4).eval()
    assert x.T.numpy().strides == (4, 16)
    np.testing.assert_array_equal(x[::-1, 1].numpy(), np.arange(12).reshape(3, 4)[::-1, 1])


def test_import_shares_memory():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for shared in (prism.from_dlpack(array), prism.from_numpy(array), prism.asarray(array)):
        assert address(shared.numpy()) == address(array)
    array[0, 0] = 9
    assert prism.from_numpy(array)[0, 0].item() == 9
    copy = prism.tensor(array)
    array[0, 0] = 1
    assert copy[0, 0].item() == 9


@pytest.mark.parametrize("change", [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[1:1],
                                    lambda a: np.broadcast_to(a[0], (4, 3)), lambda a: a[0, 0]])
def test_import_of_views(change):
    view = change(np.arange(6, dtype=np.int32).reshape(2, 3))
    tensor = prism.from_numpy(view)
    np.testing.assert_array_equal(tensor.numpy(), view)
    np.testing.assert_array_equal((tensor + 1).numpy(), view + 1)


def test_memory_outlives_the_other_owner():
    x = prism.from_numpy(np.full(1000, 3.0, dtype=np.float32))
    array = (prism.ones(1000) * 2).numpy()
    gc.collect()
    assert x.sum().item() == 3000 and array.sum() == 2000


def test_array_protocol():
    x = prism.tensor([1.5, 2.5])
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x).flags.writeable
    assert np.mean(np.asarray(x)) == 2


def test_types_that_do_not_fit():
    with pytest.raises(TypeError, match="16 bits"):
        prism.from_numpy(np.zeros(2, np.uint16))
    with pytest.raises(TypeError):
        prism.from_dlpack([1, 2])
    assert prism.ones(2, dtype="bfloat16").numpy().dtype == np.float32


def test_unaligned_elements():
    raw = np.zeros(41, np.uint8)
    array = raw[1:].view(np.float32)
    array[:] = np.arange(10)
    assert array.ctypes.data % 4
    tensor = prism.from_dlpack(array)
    np.testing.assert_array_equal((tensor * 2).numpy(), array * 2)


def test_dlpack_arguments():
    x = prism.arange(6, dtype="float32").eval()
    assert x.__dlpack_device__() == (1, 0)
    copy = np.from_dlpack(x, copy=True)
    copy += 1
    assert address(copy) != address(x.numpy()) and x.tolist() == [0, 1, 2, 3, 4, 5]
    assert address(np.from_dlpack(x, copy=False)) == address(x.numpy()) and np.from_dlpack(x, device="cpu").shape == (6,)
    with pytest.raises(BufferError, match="wanted device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        x.__dlpack__(None)


def test_the_reason_of_the_other_library():
    class Refuses:
        def __dlpack__(self, **options):
            raise BufferError("not today")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(BufferError, match="not today"):
        prism.from_dlpack(Refuses())


OTHERS = [device.id for device in prism.devices() if device.id != "cpu:0"]


@pytest.mark.parametrize("device", OTHERS or [pytest.param("", marks=pytest.mark.skip("there is only the CPU"))])
def test_other_devices(device):
    x = prism.arange(3, device=device)
    if device.startswith("cuda"):
        assert x.__dlpack_device__()[0] == 2
        return
    with pytest.raises(BufferError, match=device):
        x.__dlpack__()
    with pytest.raises(BufferError, match=device):
        x.__dlpack_device__()
    assert x.numpy().tolist() == [0, 1, 2]
