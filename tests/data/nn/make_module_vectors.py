#!/usr/bin/env python3
"""Writes module_vectors.json: outputs and gradients of layers and losses, by PyTorch in float64.

usage: make_module_vectors.py > module_vectors.json (needs torch)
"""
import json

import torch
import torch.nn.functional as F

torch.manual_seed(21)
torch.set_default_dtype(torch.float64)


def shown(t):
    return {"shape": list(t.shape), "values": [float(f"{v:.9g}") for v in t.detach().flatten().tolist()]}


def layer_case(function, x, parameters):
    """function(x, parameters): the gradients are those of the sum of y * factors."""
    x = x.clone()
    if x.is_floating_point():
        x.requires_grad_()
    parameters = {k: v.clone().requires_grad_() for k, v in parameters.items()}
    y = function(x, parameters)
    factors = torch.randn_like(y)
    (y * factors).sum().backward()
    case = {"x": shown(x), "y": shown(y), "factors": shown(factors),
            "parameters": {k: shown(v) for k, v in parameters.items()},
            "gradients": {k: shown(v.grad) for k, v in parameters.items()}}
    if x.is_floating_point():
        case["x_gradient"] = shown(x.grad)
    return case


def loss_case(function, prediction, *more):
    p = prediction.clone().requires_grad_()
    value = function(p, *more)
    value.backward()
    return {"prediction": shown(p), "more": [shown(m) for m in more], "value": value.item(), "gradient": shown(p.grad)}


def rotate(x):  # [batch, heads, length, dims]; pairs are an element and the one half a head further
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-2 * torch.arange(half) / x.shape[-1])
    angles = torch.arange(x.shape[2]).to(torch.float64)[:, None] * frequencies
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


def attention(heads, kv_heads, causal, rotary):
    def run(x, p):
        batch, length, width = x.shape
        split = lambda name, count: F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"]).view(
            batch, length, count, width // heads).transpose(1, 2)
        q, k, v = split("query", heads), split("key", kv_heads), split("value", kv_heads)
        if rotary:
            q, k = rotate(q), rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return F.linear(y.transpose(1, 2).reshape(batch, length, width), p["output.weight"], p["output.bias"])
    return run


def attention_weights(width, kv_width):
    sizes = {"query": width, "key": kv_width, "value": kv_width, "output": width}
    result = {}
    for name, size in sizes.items():
        result[f"{name}.weight"] = torch.randn(size, width) * 0.4
        result[f"{name}.bias"] = torch.randn(size) * 0.1
    return result


n = torch.randn
layers = {
    "linear": layer_case(lambda x, p: F.linear(x, p["weight"], p["bias"]), n(3, 2, 5), {"weight": n(4, 5), "bias": n(4)}),
    "embedding": layer_case(lambda x, p: F.embedding(x, p["weight"]), torch.tensor([[1, 3, 1], [0, 1, 6]]), {"weight": n(7, 3)}),
    "conv2d": layer_case(lambda x, p: F.conv2d(x, p["weight"], p["bias"], stride=2, padding=1, groups=2), n(2, 4, 5, 7),
                         {"weight": n(6, 2, 3, 3), "bias": n(6)}),
    "conv1d": layer_case(lambda x, p: F.conv1d(x, p["weight"], p["bias"], padding=2, dilation=2), n(2, 3, 9),
                         {"weight": n(5, 3, 3), "bias": n(5)}),
    "layer_norm": layer_case(lambda x, p: F.layer_norm(x, (7,), p["weight"], p["bias"]), n(3, 7) * 2 + 1,
                             {"weight": n(7), "bias": n(7)}),
    "rms_norm": layer_case(lambda x, p: F.rms_norm(x, (7,), p["weight"], 1e-5), n(3, 7) * 2, {"weight": n(7)}),
    "group_norm": layer_case(lambda x, p: F.group_norm(x, 3, p["weight"], p["bias"]), n(2, 6, 3, 2),
                             {"weight": n(6), "bias": n(6)}),
    "attention": layer_case(attention(4, 4, True, False), n(2, 5, 8), attention_weights(8, 8)),
    "attention_open": layer_case(attention(2, 2, False, False), n(1, 4, 8), attention_weights(8, 8)),
    "attention_grouped": layer_case(attention(4, 2, True, True), n(2, 6, 16), attention_weights(16, 8)),
}
# Batch norm: training, with the statistics that remain, then evaluation with them.
mean, var = n(5), n(5).abs() + 0.5
before = {"mean": shown(mean), "var": shown(var)}
layers["batch_norm"] = layer_case(lambda x, p: F.batch_norm(x, mean, var, p["weight"], p["bias"], True), n(4, 5, 3) * 2 + 1,
                                  {"weight": n(5), "bias": n(5)})
layers["batch_norm"] |= {"before": before, "after": {"mean": shown(mean), "var": shown(var)}}
layers["batch_norm_eval"] = layer_case(lambda x, p: F.batch_norm(x, mean, var, p["weight"], p["bias"]), n(2, 5, 3),
                                       {"weight": n(5), "bias": n(5)})
layers["batch_norm_eval"]["before"] = layers["batch_norm"]["after"]

target = torch.tensor([2, 0, -100, 3, 1])
losses = {
    "cross_entropy": loss_case(lambda p: F.cross_entropy(p, target), n(5, 4)),
    "cross_entropy_smooth": loss_case(lambda p: F.cross_entropy(p, target, label_smoothing=0.2), n(5, 4)),
    "cross_entropy_sum": loss_case(lambda p: F.cross_entropy(p, target, reduction="sum"), n(5, 4)),
    "bce": loss_case(F.binary_cross_entropy_with_logits, n(3, 4) * 5, torch.rand(3, 4)),
    "mse": loss_case(F.mse_loss, n(3, 4), n(3, 4)),
    "l1": loss_case(F.l1_loss, n(3, 4), n(3, 4)),
    "huber": loss_case(lambda p, t: F.huber_loss(p, t, delta=0.7), n(3, 4), n(3, 4)),
    "kl": loss_case(lambda p, t: F.kl_div(p, t, reduction="batchmean"), n(3, 4), F.softmax(n(3, 4), -1)),
    "hinge": loss_case(lambda p, t: torch.clamp(1 - p * t, min=0).mean(), n(3, 4), torch.sign(n(3, 4))),
    "cosine": loss_case(lambda p, t, s: F.cosine_embedding_loss(p, t, s, margin=0.1), n(4, 3), n(4, 3),
                        torch.tensor([1.0, -1, -1, 1])),
}
print(json.dumps({"layers": layers, "losses": losses}).replace("}, ", "},\n"))
