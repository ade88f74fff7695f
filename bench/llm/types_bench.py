#!/usr/bin/env python3
"""Prompt and decode speed of a model of 380 million random weights in each tensor type, on the CPU.

    bench/llm/types_bench.py build/prism
    bench/llm/types_bench.py build/prism --peer path/to/llama-bench --types Q4_K,IQ2_XS --rounds 3

The models are made in --folder (0.1 to 0.4 GB, one at a time) and removed again. Runs alternate with those of the
peer, which takes the options of llama-bench; the best round counts.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import tempfile

LAYERS, DIM, HEADS, KV_HEADS, FFN, VOCABULARY = 20, 1024, 16, 8, 4096, 32000

# number in GGUF, weights and bytes of a block, the largest weight under a scale of 1, where scales of f16 are
TYPES = {
    "Q4_K": (12, 256, 144, 945, (0, 2)),
    "Q2_K": (10, 256, 84, 45, (80, 82)),
    "Q3_K": (11, 256, 110, 96, (108,)),
    "Q5_K": (13, 256, 176, 1953, (0, 2)),
    "Q6_K": (14, 256, 210, 4064, (208,)),
    "Q8_0": (8, 32, 34, 127, (0,)),
    "IQ1_S": (19, 256, 50, 17, (0,)),
    "IQ1_M": (29, 256, 56, 17, ()),
    "IQ2_XXS": (16, 256, 66, 167, (0,)),
    "IQ2_XS": (17, 256, 74, 167, (0,)),
    "IQ2_S": (22, 256, 82, 167, (0,)),
    "IQ3_XXS": (18, 256, 98, 481, (0,)),
    "IQ3_S": (21, 256, 110, 465, (0,)),
    "IQ4_NL": (20, 32, 18, 127, (0,)),
    "IQ4_XS": (23, 256, 136, 4064, (0,)),
    "TQ1_0": (34, 256, 54, 2, (52,)),
    "TQ2_0": (35, 256, 66, 2, (64,)),
    "MXFP4": (39, 32, 17, 12, ()),
    "NVFP4": (40, 64, 36, 12, ()),
}
F32 = 0


def random_blocks(name, count):
    """Blocks of random bytes whose weights are at most 0.05."""
    _, _, size, reach, fields = TYPES[name]
    source = random.Random(1)
    data = bytearray(source.randbytes(count * size))
    for at in range(0, len(data), size):
        scale = 0.05 / reach * source.uniform(0.75, 1.25)
        for field in fields:
            struct.pack_into("<e", data, at + field, scale)
        if name == "IQ1_M":  # a nibble in each of four words
            (bits,) = struct.unpack("<H", struct.pack("<e", scale))
            for i in range(4):
                data[at + 49 + 2 * i] = data[at + 49 + 2 * i] & 15 | (bits >> 4 * i & 15) << 4
        elif name == "MXFP4":  # 2^-8
            data[at] = 120
        elif name == "NVFP4":  # 2^-8, scales of 8 bits
            data[at:at + 4] = bytes([0x08] * 4)
    return bytes(data)


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    kind, pack = {str: (8, text), float: (6, lambda v: struct.pack("<f", v)),
                  int: (5, lambda v: struct.pack("<i", v))}[type(value[0])]
    return text(key) + struct.pack("<IIQ", 9, kind, len(value)) + b"".join(map(pack, value))


def write_model(path, name):
    number, elements, size, _, _ = TYPES[name]
    kv = DIM // HEADS * KV_HEADS
    tensors = [("token_embd.weight", (DIM, VOCABULARY)), ("output_norm.weight", (DIM,)),
               ("output.weight", (DIM, VOCABULARY))]
    for i in range(LAYERS):
        tensors += [(f"blk.{i}.{part}.weight", shape) for part, shape in (
            ("attn_norm", (DIM,)), ("attn_q", (DIM, DIM)), ("attn_k", (DIM, kv)), ("attn_v", (DIM, kv)),
            ("attn_output", (DIM, DIM)), ("ffn_norm", (DIM,)), ("ffn_gate", (DIM, FFN)), ("ffn_up", (DIM, FFN)),
            ("ffn_down", (FFN, DIM)))]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259)
    tokens += [f"\u2581w{i}" for i in range(VOCABULARY - len(tokens))]
    pairs = {
        "general.architecture": "llama", "general.name": f"random {name}", "llama.vocab_size": VOCABULARY,
        "llama.context_length": 4096, "llama.embedding_length": DIM, "llama.block_count": LAYERS,
        "llama.feed_forward_length": FFN, "llama.rope.dimension_count": DIM // HEADS,
        "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": [-float(i) for i in range(VOCABULARY)],
        "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}
    infos, sizes, offset = b"", [], 0
    for tensor, shape in tensors:
        kind, bytes_ = F32, 4 * shape[0]
        if len(shape) == 2:
            kind, bytes_ = number, shape[0] * shape[1] // elements * size
        infos += text(tensor) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        sizes.append((kind == F32, bytes_))
        offset += (bytes_ + 31) // 32 * 32
    pool = random_blocks(name, 1 << 16)
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)))
        file.write(b"".join(pair(key, value) for key, value in pairs.items()) + infos)
        for is_norm, bytes_ in sizes:
            file.write(b"\0" * (-file.tell() % 32))
            if is_norm:
                file.write(struct.pack("<f", 1.0) * (bytes_ // 4))
                continue
            while bytes_ > 0:
                file.write(pool[:bytes_])
                bytes_ -= min(bytes_, len(pool))


def output(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def time_prism(options, model):
    """Tokens per second of the prompt, and when decoding."""
    found = output([options.prism, "bench", model, "--device", "cpu", "-t", str(options.threads), "--prompt-tokens",
                    str(options.prompt), "-n", str(options.tokens), "-r", str(options.repeats), "--json"])
    speeds = {result["task"].split()[0]: result["tokens_per_second"] for result in found["results"]}
    return [speeds["prompt"], speeds["decode"]]


def time_peer(options, model):
    lines = output([options.peer, "-m", model, "-t", str(options.threads), "-p", str(options.prompt), "-n",
                    str(options.tokens), "-r", str(options.repeats), "-o", "json"])
    return [max(max(line["samples_ts"]) for line in lines if (line["n_gen"] > 0) == decodes)
            for decodes in (False, True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prism")
    parser.add_argument("--peer", default="", help="llama-bench, or a program with its options and its JSON")
    parser.add_argument("--types", default="all", help="Q4_K,IQ2_XS,... (default: all)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each program")
    parser.add_argument("--repeats", type=int, default=2, help="in a round; the best counts")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--prompt", type=int, default=128, help="tokens")
    parser.add_argument("--tokens", type=int, default=32, help="to decode")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    names = list(TYPES) if options.types == "all" else options.types.split(",")
    if unknown := [name for name in names if name not in TYPES]:
        raise SystemExit(f"--types {','.join(unknown)}: the types are {','.join(TYPES)}")
    print("| type | prompt: Prism | peer | decode: Prism | peer |\n|---|--:|--:|--:|--:|")
    for name in names:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            model = os.path.join(folder, f"{name}.gguf")
            write_model(model, name)
            best = {"prism": [0, 0], "peer": [0, 0]}
            for _ in range(options.rounds):
                for who, timer in (("prism", time_prism), ("peer", time_peer)):
                    if who == "peer" and not options.peer:
                        continue
                    best[who] = [max(pair) for pair in zip(best[who], timer(options, model))]
        cells = [f"{best[who][part]:.0f}" if best[who][part] else "-" for part in (0, 1) for who in ("prism", "peer")]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
