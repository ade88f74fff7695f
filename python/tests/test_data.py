"""Files and loaders of data for training."""
import gzip
import struct

import numpy as np
import pytest

import prismrt as prism
from prismrt import data


def test_files(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    with gzip.open(tmp_path / "images.gz", "wb") as file:
        file.write(struct.pack(">HBB3i", 0, 8, 3, *pixels.shape) + pixels.tobytes())
    images = data.load_idx(tmp_path / "images.gz")
    assert images.dtype == prism.uint8 and np.array_equal(images.numpy(), pixels)
    (tmp_path / "table.csv").write_text("a,b\n1,2.5\n-3,4\n")
    assert data.load_csv(tmp_path / "table.csv").tolist() == [[1, 2.5], [-3, 4]]
    (tmp_path / "text.txt").write_text("Grüße")
    assert data.load_text(str(tmp_path / "text.txt")) == "Grüße"
    (tmp_path / "broken").write_bytes(b"\0\0\x08\x03")
    with pytest.raises(prism.CorruptFile):
        data.load_idx(tmp_path / "broken")
    with pytest.raises(LookupError):
        data.load_csv(tmp_path / "none.csv")


def test_epochs():
    x, y = prism.arange(10), prism.arange(10) * 2
    loader = data.DataLoader((x, y), 3, seed=1)
    first = list(loader)
    assert len(loader) == len(first) == 3 and loader.position == 3 and loader.epoch == 1
    rows = [value for batch, _ in first for value in batch.tolist()]
    assert len(set(rows)) == 9 and rows != sorted(rows)
    assert all((a * 2).tolist() == b.tolist() for a, b in first)
    second = [batch.tolist() for batch, _ in loader]
    assert second != [batch.tolist() for batch, _ in first]
    loader.seek(4)
    assert loader.next()[0].tolist() == second[1] and len(list(loader)) == 1
    plain = data.DataLoader(x, 4, shuffle=False, drop_last=False, prefetch=False)
    assert [batch.tolist() for (batch,) in plain] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_tokens(tmp_path):
    assert len(data.token_source(range(9), 4, stride=1)) == 5
    source = data.token_source(range(9), 4)
    now, following = data.DataLoader(source, 2, shuffle=False, drop_last=False).next()
    assert now.shape == (2, 4) and (now + 1).tolist() == following.tolist() and len(source) > 0
    np.arange(9, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    same, _ = data.DataLoader(data.token_file_source(tmp_path / "tokens.bin", 4), 2, shuffle=False, drop_last=False).next()
    assert same.tolist() == now.tolist()


class Squares:
    def __len__(self):
        return 7

    def __getitem__(self, i):
        return np.array([i, i * i], np.float32), i


def test_data_sets_of_python():
    loader = data.DataLoader(Squares(), 3, shuffle=False)
    points, labels = loader.next()
    assert points.tolist() == [[0, 0], [1, 1], [2, 4]] and labels.tolist() == [0, 1, 2] and labels.dtype == prism.int32
    assert len(loader) == 2
    assert data.DataLoader(range(5), 2, shuffle=False).next()[0].tolist() == [0, 1]

    class Broken(Squares):
        def __getitem__(self, i):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        data.DataLoader(Broken(), 2).next()


def test_errors(tmp_path):
    with pytest.raises(TypeError, match="__getitem__"):
        data.DataLoader(3)
    for wrong in (lambda: data.DataLoader(prism.arange(3), 4), lambda: data.DataLoader(prism.arange(3), 0),
                  lambda: data.DataLoader((prism.arange(3), prism.arange(4)), 2), lambda: data.token_source([1, 2], 5),
                  lambda: data.DataLoader(prism.arange(3), 2).seek(-1)):
        with pytest.raises(ValueError):
            wrong()
