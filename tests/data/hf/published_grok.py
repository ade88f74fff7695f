"""Grok 1 and 2 in float64, from their published definitions."""
import math

import torch
from torch.nn.functional import gelu

from published_parts import SIZES, best, causal, gated, heads_of, mixed, turned


def capped(x, cap):
    return cap * torch.tanh(x / cap)


def yarn_divisors(c, length):
    """The divisors of the rotary frequencies."""
    def element(turns):
        return length * math.log(c["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(c["rope_theta"]))
    low, high = max(math.floor(element(c["beta_fast"])), 0), min(math.ceil(element(c["beta_slow"])), length - 1)
    kept = 1 - ((torch.arange(length // 2).double() - low) / (high - low)).clamp(0, 1)
    return 1 / ((1 - kept) / c["scaling_factor"] + kept)


def attend(at, x, c, names):
    heads, groups, length = heads_of(c)
    q, k, v = (at.linear(x, name, count * length).reshape(len(x), count, length)
               for name, count in zip(names, (heads, groups, groups)))
    divisors = yarn_divisors(c, length) if c.get("rope_type") == "yarn" else 1.0
    q, k = (turned(each, c["rope_theta"], divisors=divisors) for each in (q, k))
    k, v = (each.repeat_interleave(heads // groups, 1) for each in (k, v))
    scores = capped(torch.einsum("qhd,khd->hqk", q, k) * length**-0.5, 30)
    shares = scores.masked_fill(~causal(len(x)), -math.inf).softmax(-1)
    return at.linear(torch.einsum("hqk,khd->qhd", shares, v).flatten(1), names[3], x.shape[-1])


def experts(at, x, c, router, names):
    """The weights are those of a softmax over all experts; the chosen ones' do not sum to 1."""
    wide = c.get("moe_intermediate_size") or c["intermediate_size"]
    weights = best(capped(at.linear(x, router, c["num_local_experts"]), 30).softmax(-1), c["num_experts_per_tok"])
    within = "moe.{}." if router == "router" else "block_sparse_moe.experts.{}."
    return mixed(weights, lambda e: gated(at.within(within.format(e)), x, wide, names, lambda y: gelu(y, approximate="tanh")))


def grok2(f, c, tokens):
    epsilon, act = c["rms_norm_eps"], lambda y: gelu(y, approximate="tanh")
    x = f("model.embed_tokens.weight", c["vocab_size"], c["hidden_size"])[tokens] * c["embedding_multiplier_scale"]
    for i in range(c["num_hidden_layers"]):
        at = f.within(f"model.layers.{i}.")
        y = attend(at.within("self_attn."), at.rms(x, "pre_attn_norm", epsilon), c, ("q_proj", "k_proj", "v_proj", "o_proj"))
        x = x + at.rms(y, "post_attn_norm", epsilon)
        h = at.rms(x, "pre_moe_norm", epsilon)
        y = experts(at, h, c, "block_sparse_moe.gate", ("w1", "w3", "w2")) + gated(
            at.within("mlp."), h, c["intermediate_size"], act=act)
        x = x + at.rms(y / math.sqrt(2), "post_moe_norm", epsilon)
    row = f.linear(f.rms(x, "model.norm", epsilon), "lm_head", c["vocab_size"])
    return capped(row * c["output_multiplier_scale"], c["final_logit_softcapping"])


def grok1(f, c, tokens):
    epsilon, f = c["rms_norm_eps"], f.within("transformer.")
    table = f("in_out_embed.weight", c["vocab_size"], c["hidden_size"])
    x = table[tokens] * c["embedding_multiplier_scale"]
    for i in range(c["num_hidden_layers"]):
        at = f.within(f"decoder_layer.{i}.")
        y = attend(at.within("multi_head_attention."), at.rms(x, "rms_norm", epsilon), c, ("query", "key", "value", "linear"))
        x = x + at.rms(y, "rms_norm_1", epsilon)
        y = experts(at, at.rms(x, "rms_norm_2", epsilon), c, "router", ("linear", "linear_v", "linear_1"))
        x = x + at.rms(y, "rms_norm_3", epsilon)
    return f.rms(x, "rms_norm", epsilon) @ table.T * c["output_multiplier_scale"]


GROK = dict(SIZES, attn_logit_softcapping=30.0, num_experts_per_tok=2, num_local_experts=4, rms_norm_eps=1e-5,
            rope_theta=10000.0, router_logit_softcapping=30.0)
MODELS = {
    "grok2": (grok2, dict(
        GROK, architectures=["Grok1ForCausalLM"], attn_factor=1.0, attn_temperature_len=48, beta_fast=8, beta_slow=1,
        embedding_multiplier_scale=9.05, extrapolation_factor=1.0, final_logit_softcapping=5.0, global_attn_every_n=1,
        head_dim=8, moe_intermediate_size=24, original_max_position_embeddings=32, output_multiplier_scale=0.5,
        residual_moe=True, rope_type="yarn", scaling_factor=4.0, sliding_window_size=-1, tie_word_embeddings=False)),
    "grok1": (grok1, dict(
        GROK, architectures=["GrokForCausalLM"], attn_output_multiplier=8**-0.5, embedding_multiplier_scale=7.8,
        output_multiplier_scale=0.577, tie_word_embeddings=True)),
}
