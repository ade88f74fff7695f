#!/usr/bin/env python3
"""Writes optimizer_vectors.json: parameters after 20 steps of each optimiser, by PyTorch in float64.

PyTorch has no Lion, and its Muon computes in bfloat16, so these two are the published formulas in float64.
usage: make_optimizer_vectors.py > optimizer_vectors.json (needs torch)
"""
import json

import torch

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)
STEPS = 20
X, Y = torch.randn(6, 4), torch.randn(6, 3)
START = {"w1": torch.randn(5, 4) * 0.5, "b1": torch.randn(5) * 0.1, "w2": torch.randn(3, 5) * 0.5}


def loss_of(p, x=X, y=Y):
    return ((torch.tanh(x @ p[0].T + p[1]) @ p[2].T - y) ** 2).mean()


def fresh():
    return [v.clone().requires_grad_() for v in START.values()]


class Lion(torch.optim.Optimizer):
    """Chen et al., Symbolic Discovery of Optimization Algorithms, algorithm 2."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(group["betas"][0] * m + (1 - group["betas"][0]) * p.grad)
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * update)
                m.mul_(group["betas"][1]).add_((1 - group["betas"][1]) * p.grad)


class Muon(torch.optim.Optimizer):
    """Jordan et al., Muon: An optimizer for hidden layers in neural networks; the default of torch.optim.Muon."""

    def __init__(self, params, lr, momentum, weight_decay, nesterov=True):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(m, group["momentum"]) if group["nesterov"] else m.clone()
                tall = x.shape[0] > x.shape[1]
                x = x.T if tall else x
                x = x / x.norm().clamp(min=1e-7)
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
                x = x.T if tall else x
                scale = max(1, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * scale * x)


def run(make, clip=None, schedule=None, parts=1, ema=None):
    p = fresh()
    optimizer = make(p)
    scheduler = schedule(optimizer) if schedule else None
    average = [v.detach().clone() for v in p]
    for _ in range(STEPS):
        optimizer.zero_grad()
        for part in range(parts):
            rows = slice(part * len(X) // parts, (part + 1) * len(X) // parts)
            (loss_of(p, X[rows], Y[rows]) / parts).backward()
        if clip and clip[0] == "norm":
            torch.nn.utils.clip_grad_norm_(p, clip[1])
        if clip and clip[0] == "value":
            torch.nn.utils.clip_grad_value_(p, clip[1])
        optimizer.step()
        if scheduler:
            scheduler.step()
        if ema:
            average = [ema * a + (1 - ema) * v.detach() for a, v in zip(average, p)]
    return [v.detach().flatten().tolist() for v in (average if ema else p)]


def factors(schedule, count=30):
    p = [torch.zeros(1, requires_grad=True)]
    optimizer = torch.optim.SGD(p, lr=1.0)
    scheduler = schedule(optimizer)
    result = []
    for _ in range(count):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return result


optim, rates = torch.optim, torch.optim.lr_scheduler
sgd = lambda p: optim.SGD(p, lr=0.1, momentum=0.9)
results = {
    "sgd": run(lambda p: optim.SGD(p, lr=0.1)),
    "sgd_momentum": run(sgd),
    "sgd_dampened": run(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    "sgd_nesterov": run(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.02)),
    "adam": run(lambda p: optim.Adam(p, lr=0.05)),
    "adam_decay": run(lambda p: optim.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    "adamw": run(lambda p: optim.AdamW(p, lr=0.05, betas=(0.9, 0.95), weight_decay=0.1)),
    "rmsprop": run(lambda p: optim.RMSprop(p, lr=0.02)),
    "rmsprop_momentum": run(lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.8, weight_decay=0.05)),
    "lion": run(lambda p: Lion(p, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)),
    "muon": run(lambda p: Muon([p[0], p[2]], lr=0.05, momentum=0.95, weight_decay=0.1)),
    "muon_plain": run(lambda p: Muon([p[0], p[2]], lr=0.05, momentum=0.9, weight_decay=0, nesterov=False)),
    "groups": run(lambda p: optim.SGD([{"params": [p[0]]}, {"params": p[1:], "lr": 0.02, "weight_decay": 0.5}], lr=0.1,
                                      momentum=0.9)),
    "clip_norm": run(sgd, clip=("norm", 0.3)),
    "clip_value": run(sgd, clip=("value", 0.05)),
    "cosine": run(sgd, schedule=lambda o: rates.CosineAnnealingLR(o, 20)),
    "accumulate": run(sgd, parts=2),
    "average": run(sgd, ema=0.9),
}
schedules = {
    "linear": factors(lambda o: rates.LinearLR(o, 1.0, 0.1, 20)),
    # PyTorch's own goes up again after the end.
    "cosine": factors(lambda o: rates.CosineAnnealingLR(o, 30, 0.05)),
    "step": factors(lambda o: rates.StepLR(o, 7, 0.5)),
    "one_cycle": factors(lambda o: rates.OneCycleLR(o, 1.0, total_steps=31)),
    "warm_up": factors(lambda o: rates.SequentialLR(
        o, [rates.LinearLR(o, 0.1, 1.0, 9), rates.CosineAnnealingLR(o, 20)], [10])),
}
print(json.dumps({"x": X.flatten().tolist(), "y": Y.flatten().tolist(),
                  "start": {k: v.flatten().tolist() for k, v in START.items()},
                  "results": results, "schedules": schedules},
                 default=float).replace("], ", "],\n"))
