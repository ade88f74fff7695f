#!/usr/bin/env python3
"""The peer of bench_train: times PyTorch's steps of the same models on as many threads as the machine has.

usage: pytorch_steps.py mlp|gpt [STEPS]   prints the milliseconds of the fastest step, and the mean processor time
"""
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (p.view(b, t, 4, w // 4).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, characters=65, length=64, width=128, layers=4):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(characters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, x):
        y = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def main():
    what, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))
    torch.manual_seed(0)
    if what == "mlp":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
        clip = None
    else:
        model = Gpt()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
        x, y = torch.randint(0, 65, (12, 64)), torch.randint(0, 65, (12, 64))
        clip = 1.0

    def step():
        optimizer.zero_grad(set_to_none=True)
        scores = model(x)
        loss = F.cross_entropy(scores.view(-1, scores.shape[-1]), y.view(-1))
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss.item()

    for _ in range(5):
        step()
    fastest, cpu = float("inf"), time.process_time()
    for _ in range(steps):
        start = time.perf_counter()
        step()
        fastest = min(fastest, time.perf_counter() - start)
    print(fastest * 1e3, (time.process_time() - cpu) / steps * 1e3)


main()
