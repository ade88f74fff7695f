"""Tiny model files for tests that need more than the shared model has."""
import json
import random
import string
import struct
import subprocess
from pathlib import Path

from server_tools import PRISM

SHAPES = Path(__file__).parents[2] / "data" / "hf" / "expected.json"
ALIGNMENT = 32  # of the data of a GGUF file


def with_fill_tokens(model, path, prefix, suffix, middle):
    """Writes a copy of a GGUF file that names tokens for filling in the middle."""
    content = Path(model).read_bytes()
    magic, version, tensors, values = struct.unpack_from("<4sIQQ", content)

    def key(name, kind):
        return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind)
    added = b"".join(key(f"tokenizer.ggml.fim_{name}_token_id", 4) + struct.pack("<I", token)
                     for name, token in [("pre", prefix), ("suf", suffix), ("mid", middle)])
    # A text fills up to the alignment, so that the data stays aligned.
    added += key("general.description", 8)
    length = -(len(added) + 8) % ALIGNMENT
    added += struct.pack("<Q", length) + b" " * length
    head = struct.pack("<4sIQQ", magic, version, tensors, values + 4)
    Path(path).write_bytes(head + added + content[len(head):])


def write_reranker(path):
    """Writes a bert with a classification head: random weights, and the letters as its vocabulary."""
    model = json.loads(SHAPES.read_text())["bert-ranker"]
    folder = Path(path).with_suffix("")
    folder.mkdir()
    numbers = random.Random(1)
    header, data = {}, b""
    for name, shape in model["tensors"].items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(numbers.uniform(-0.5, 0.5) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(model["config"]))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + list(string.ascii_lowercase) + ["##" + letter for letter in string.ascii_lowercase]
    words += [f"[unused{i}]" for i in range(model["config"]["vocab_size"] - len(words))]
    (folder / "tokenizer.json").write_text(json.dumps({
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {word: id for id, word in enumerate(words)}},
        "added_tokens": [{"id": id, "content": word, "special": True} for id, word in enumerate(special)],
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}}))
    subprocess.run([PRISM, "model", "convert", folder, path], check=True, capture_output=True)
