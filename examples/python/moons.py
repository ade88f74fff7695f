"""Trains a network of scalars to tell two interleaved half circles apart. Usage: moons.py [DEVICE] [STEPS]"""
import math
import sys

import prismrt as prism

POINTS = 100
device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100

noise = prism.normal((POINTS, 2), key=1, deviation=0.1).tolist()
points = []
for i in range(POINTS):
    angle, lower = math.pi * (i // 2) / (POINTS // 2 - 1), i % 2 == 1
    x = 1 - math.cos(angle) if lower else math.cos(angle)
    y = 0.5 - math.sin(angle) if lower else math.sin(angle)
    points.append(([x + noise[i][0], y + noise[i][1]], 1 if lower else -1))

prism.seed(1337)
model = prism.MLP(2, [16, 16, 1], device)
for step in range(steps):
    scores = [model(point) for point, _ in points]
    # A margin of 1 between the classes, and small weights.
    losses = [(1 - label * score).relu() for score, (_, label) in zip(scores, points)]
    decay = sum(weight * weight for weight in model.parameters())
    loss = sum(losses) / POINTS + 1e-4 * decay
    model.zero_grad()
    loss.backward()
    right = sum(score.data * label > 0 for score, (_, label) in zip(scores, points))
    rate = 1 - 0.9 * step / steps
    for weight in model.parameters():
        weight.data -= rate * weight.grad
    if step % 10 == 0 or step + 1 == steps:
        print(f"step {step}, loss {loss.data:.4f}, {right}% right")

# The plane as the network sees it: # where it expects the lower moon.
grid = [[model([-1.5 + column * 4 / 47, 1.5 - row * 2.5 / 15]) for column in range(48)] for row in range(16)]
prism.Value.compute([score for row in grid for score in row])  # all of them in one plan
for row in grid:
    print("".join("#" if score > 0 else "." for score in row))
