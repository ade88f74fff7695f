#!/usr/bin/env python3
"""The peer of bench_train: times PyTorch's steps of the same models (models.h lists them).

usage: pytorch_steps.py [--device cpu|cuda] [--ways eager,graph,compiled] mlp|gpt|char_gpt|gpt2|lora [STEPS]

Prints a line for each way to run the step: its name, the milliseconds of a step, the mean processor time, MiB of memory.
On the CPU the fastest step counts, with as many threads as the machine has; on a GPU the mean of steps without waits.
"""
import argparse
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

#            vocabulary, length, layers, width, heads, batch, dropout, tied
GPTS = {"gpt": (65, 64, 4, 128, 4, 12, 0.0, False),
        "char_gpt": (65, 256, 6, 384, 6, 64, 0.2, False),
        "gpt2": (50304, 1024, 12, 768, 12, 32, 0.0, True)}
WAYS = {"mlp": ["eager", "graph"], "char_gpt": ["eager", "compiled"], "gpt2": ["eager", "compiled"], "lora": ["eager"]}


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (p.view(b, t, self.heads, w // self.heads).transpose(1, 2)
                   for p in self.qkv(self.norm1(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(y.transpose(1, 2).reshape(b, t, w)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, length, layers, width, heads, _, dropout, tied):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        nn.init.normal_(self.tokens.weight, 0, 0.02)
        nn.init.normal_(self.positions.weight, 0, 0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=not tied)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, x):
        y = self.dropout(self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device)))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


class LoraLinear(nn.Module):
    """A frozen bf16 matrix with a trainable change of rank 16."""

    def __init__(self, inputs, outputs, rank=16):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, dtype=torch.bfloat16) * 0.02, requires_grad=False)
        self.a = nn.Parameter(torch.randn(rank, inputs) / inputs ** 0.5)
        self.b = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x):
        return F.linear(x, self.weight) + 2 * F.linear(F.linear(x, self.a.to(x.dtype)), self.b.to(x.dtype))


class LlamaLayer(nn.Module):
    def __init__(self, width, inner, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.RMSNorm(width, dtype=torch.bfloat16).requires_grad_(False) for _ in range(2))
        self.q, self.k, self.v, self.o = (LoraLinear(width, width) for _ in range(4))
        self.gate, self.up, self.down = LoraLinear(width, inner), LoraLinear(width, inner), LoraLinear(inner, width)

    def forward(self, x, cos, sin):
        b, t, w = x.shape
        y = self.norm1(x)
        q, k, v = (p(y).view(b, t, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = (p * cos + torch.cat((-p[..., p.shape[-1] // 2:], p[..., :p.shape[-1] // 2]), -1) * sin for p in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, w))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """The shape of Llama 2 7B."""

    def __init__(self, vocabulary=32000, layers=32, width=4096, inner=11008, heads=32):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, dtype=torch.bfloat16).requires_grad_(False)
        self.layers = nn.ModuleList(LlamaLayer(width, inner, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, dtype=torch.bfloat16).requires_grad_(False)
        self.head = nn.Linear(width, vocabulary, bias=False, dtype=torch.bfloat16).requires_grad_(False)
        self.head_width = width // heads

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)[:, None]
        angles = places / 10000 ** (torch.arange(0, self.head_width, 2, device=x.device) / self.head_width)
        cos, sin = (f(torch.cat((angles, angles), -1)).bfloat16() for f in (torch.cos, torch.sin))
        y = self.tokens(x)
        for layer in self.layers:
            y = layer(y, cos, sin)
        return self.head(self.norm(y)).float()


def make_step(what, way, device):
    """A function that runs one step and returns the loss, still on the device."""
    torch.manual_seed(0)
    on_gpu = device == "cuda"
    with torch.device(device):
        if what == "mlp":
            model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=on_gpu, capturable=way == "graph")
            x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
        else:
            if what == "lora":
                model, vocabulary, shape = Llama(), 32000, (1, 2048)
            else:
                sizes = GPTS[what]
                model, vocabulary, shape = Gpt(*sizes), sizes[0], (sizes[5], sizes[1])
            trained = [p for p in model.parameters() if p.requires_grad]
            optimizer = torch.optim.AdamW(trained, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=on_gpu)
            x, y = (torch.randint(0, vocabulary, shape) for _ in range(2))
    clip = what != "mlp"
    bf16 = what in ("char_gpt", "gpt2")
    forward = torch.compile(model) if way == "compiled" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            scores = forward(x)
            loss = F.cross_entropy(scores.view(-1, scores.shape[-1]), y.view(-1))
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
        optimizer.step()
        return loss

    if way != "graph":
        return step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def measure(step, steps, on_gpu):
    for _ in range(5):
        step().item()
    fastest, cpu, begin = float("inf"), time.process_time(), time.perf_counter()
    for _ in range(steps):
        start = time.perf_counter()
        loss = step()
        if not on_gpu:
            loss.item()
            fastest = min(fastest, time.perf_counter() - start)
    loss.item()
    if on_gpu:
        fastest = (time.perf_counter() - begin) / steps
    return fastest * 1e3, (time.process_time() - cpu) / steps * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--ways", help="default: those that make sense for the model")
    parser.add_argument("model")
    parser.add_argument("steps", nargs="?", type=int, default=50)
    arguments = parser.parse_args()
    on_gpu = arguments.device == "cuda"
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))
    ways = WAYS.get(arguments.model, ["eager"]) if on_gpu else ["eager"]
    for way in arguments.ways.split(",") if arguments.ways else ways:
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        try:
            ms, cpu_ms = measure(make_step(arguments.model, way, arguments.device), arguments.steps, on_gpu)
        except (RuntimeError, ImportError) as error:  # one way may be missing, such as a compiler
            print(f"{arguments.model} {way}: {error}", file=sys.stderr)
            continue
        mib = torch.cuda.max_memory_allocated() / 2 ** 20 if on_gpu else 0
        print(way, ms, cpu_ms, mib, flush=True)


main()
