"""Parts of models in float64, from which published definitions are put together. A definition asks for its tensors by name
and shape, and these are the tensors of the folder."""
import math

import torch
from torch.nn.functional import layer_norm, silu

SIZES = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=64, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
USUAL = dict(SIZES, hidden_act="silu", rms_norm_eps=1e-6, rope_theta=10000.0, rope_scaling=None,
             tie_word_embeddings=False)


class Folder:
    """The tensors under a prefix, which are made when they are first used."""

    def __init__(self, value, shapes, prefix=""):
        self.value, self.shapes, self.prefix = value, shapes, prefix

    def __call__(self, name, *shape):
        self.shapes[self.prefix + name] = list(shape)
        return torch.from_numpy(self.value(self.prefix + name, shape)).double()

    def within(self, name):
        return Folder(self.value, self.shapes, self.prefix + name)

    def linear(self, x, name, rows, biased=False):
        result = x @ self(name + ".weight", rows, x.shape[-1]).T
        return result + self(name + ".bias", rows) if biased else result

    def rms(self, x, name, epsilon, offset=0):
        return normed(x, epsilon) * (self(name + ".weight", x.shape[-1]) + offset)

    def layer_norm(self, x, name, epsilon=1e-5, biased=True):
        bias = self(name + ".bias", x.shape[-1]) if biased else None
        return layer_norm(x, x.shape[-1:], self(name + ".weight", x.shape[-1]), bias, epsilon)


def normed(x, epsilon):
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt()


def turned(x, base, count=None, divisors=1.0):
    """Rotates the first `count` elements of each head of [rows, heads, length], the halves with each other."""
    count = x.shape[-1] if count is None else count
    angles = torch.arange(len(x)).double()[:, None] * base**(-torch.arange(0, count, 2) / count) / divisors
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    one, two, rest = x.split([count // 2, count // 2, x.shape[-1] - count], -1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin, rest], -1)


def causal(rows, window=None):
    distance = torch.arange(rows)[:, None] - torch.arange(rows)
    return (distance >= 0) & (distance < (window or rows))


def attention(q, k, v, sees, scale=None, sinks=None):
    """q, k and v are [rows, heads, length]; several heads of q may share one of k and v."""
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * (scale or q.shape[-1]**-0.5)
    scores = scores.masked_fill(~sees, -math.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, len(q), 1)], -1)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1)[..., :len(k)], v)


def gated(at, x, wide, names=("gate_proj", "up_proj", "down_proj"), act=silu):
    gate, up, down = names
    return at.linear(act(at.linear(x, gate, wide)) * at.linear(x, up, wide), down, x.shape[-1])


def best(scores, count, by=None):
    """The scores of the `count` best experts of each row, and 0 for the others; best by other scores if given."""
    chosen = (scores if by is None else by).topk(count, -1).indices
    return torch.zeros_like(scores).scatter(-1, chosen, scores.gather(-1, chosen))


def to_one(weights):
    return weights / weights.sum(-1, keepdim=True)


def mixed(weights, expert):
    return sum(weights[:, i:i + 1] * expert(i) for i in range(weights.shape[1]))


def heads_of(c):
    return c["num_attention_heads"], c["num_key_value_heads"], c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def usual_attention(at, x, c, sees, biased=False, normed_heads=False, base=None):
    """Llama's attention; without a base there is no rotation."""
    heads, groups, length = heads_of(c)
    q, k, v = (at.linear(x, name + "_proj", count * length, biased).reshape(len(x), count, length)
               for name, count in (("q", heads), ("k", groups), ("v", groups)))
    if normed_heads:
        q, k = at.rms(q, "q_norm", c["rms_norm_eps"]), at.rms(k, "k_norm", c["rms_norm_eps"])
    if base:
        q, k = turned(q, base), turned(k, base)
    return at.linear(attention(q, k, v, sees).flatten(1), "o_proj", x.shape[-1])


def decoder(f, c, tokens, layer):
    """The embedding, `layer` for each layer's part of the folder, its input and its number, the norm and the logits."""
    x = f("model.embed_tokens.weight", c["vocab_size"], c["hidden_size"])[tokens]
    for i in range(c["num_hidden_layers"]):
        x = layer(f.within(f"model.layers.{i}."), x, i)
    return f.linear(f.rms(x, "model.norm", c["rms_norm_eps"]), "lm_head", c["vocab_size"])


def layers_of(c, attend, inner):
    """Llama's layers with this attention and feed-forward block, each of the layer, its normed input and its number."""
    def layer(at, x, i):
        x = x + attend(at.within("self_attn."), at.rms(x, "input_layernorm", c["rms_norm_eps"]), i)
        return x + inner(at, at.rms(x, "post_attention_layernorm", c["rms_norm_eps"]), i)
    return layer


def expected(model, value, tokens):
    """What make_expected.py stores: config.json, the tensors' shapes, the tokens and the last token's logits."""
    forward, config = model
    shapes = {}
    row = forward(Folder(value, shapes), config, torch.tensor(tokens))[-1]
    return dict(config=config, tensors=dict(sorted(shapes.items())), tokens=tokens,
                expected=[float(f"{x:.7g}") for x in row.tolist()])
