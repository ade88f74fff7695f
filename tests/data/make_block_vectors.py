#!/usr/bin/env python3
"""Writes block_vectors.bin: random blocks of the quantised types and their elements by numpy.

Needs the packages gguf and numpy, which decode the blocks independently of Prism. For each type, in
the order of BlockType: a count of blocks (u32), the blocks, the elements (f32).
    make_block_vectors.py block_vectors.bin [SEED [SCALE]]   SCALE: times as many blocks
"""
import sys

import gguf
import numpy as np

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
         "IQ4_XS", "MXFP4", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0",
         "TQ2_0", "NVFP4"]
# Where the halves of a block lie; the other bytes are random.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
          "MXFP4": [], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0],
          "IQ3_XXS": [0], "IQ3_S": [0], "TQ1_0": [52], "TQ2_0": [64], "NVFP4": []}

out, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
scale = int(sys.argv[3]) if len(sys.argv) > 3 else 1
rng = np.random.default_rng(seed)
with open(out, "wb") as f:
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        count = (1 if elements == 256 else 3) * scale
        blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
        for at in HALVES[name]:
            halves = (rng.standard_normal(count) * 0.1).astype(np.float16)
            blocks[:, at:at + 2] = halves.view(np.uint8).reshape(count, 2)
        if name == "MXFP4":  # the smallest, a large and a middling power
            blocks[:, 0] = np.resize([0, 1, 2, 250, 120, 131], count) if scale > 1 else [0, 250, 120]
        if name == "IQ1_M":  # the half is in the top nibbles of the last four words
            halves = (rng.standard_normal(count) * 0.1).astype(np.float16).view(np.uint16)
            for i in range(4):
                blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (halves >> 4 * i & 15) << 4
        if name == "NVFP4":  # zero, the code that counts as zero, the smallest and the largest
            blocks[:, :4] = np.where(np.arange(count)[:, None] == 0, [0, 127, 1, 126], blocks[:, :4])
        values = gguf.quants.dequantize(blocks, kind).astype("<f4")
        f.write(np.uint32(count).tobytes() + blocks.tobytes() + values.tobytes())
