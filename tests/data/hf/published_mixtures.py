"""Models with experts or diffusion whose code is not in transformers, in float64, from their published definitions."""
import math

import torch
from torch.nn.functional import relu, silu

import published_grok
import published_kimi
import published_mimo
import published_rwkv
from published_parts import (USUAL, attention, best, causal, decoder, gated, layers_of, mixed, to_one, turned,
                             usual_attention)

def deepseek(f, c, tokens):
    def inner(at, x, i):
        at = at.within("mlp.")
        if i < c["first_k_dense_replace"]:
            return gated(at, x, c["intermediate_size"])
        wide = c["moe_intermediate_size"]
        weights = best(at.linear(x, "gate", c["n_routed_experts"]).softmax(-1), c["num_experts_per_tok"])
        return mixed(weights, lambda e: gated(at.within(f"experts.{e}."), x, wide)) + gated(
            at.within("shared_experts."), x, c["n_shared_experts"] * wide)

    sees = causal(len(tokens))
    return decoder(f, c, tokens, layers_of(
        c, lambda at, x, i: usual_attention(at, x, c, sees, base=c["rope_theta"]), inner))


def llada(f, c, tokens):
    width, heads, f = c["d_model"], c["n_heads"], f.within("model.transformer.")
    x = f("wte.weight", c["embedding_size"], width)[tokens]
    for i in range(c["n_layers"]):
        at = f.within(f"blocks.{i}.")
        h = at.rms(x, "attn_norm", c["rms_norm_eps"])
        q, k, v = (at.linear(h, name, count * width // heads).reshape(len(x), count, -1)
                   for name, count in (("q_proj", heads), ("k_proj", c["n_kv_heads"]), ("v_proj", c["n_kv_heads"])))
        seen = attention(turned(q, c["rope_theta"]), turned(k, c["rope_theta"]), v, torch.ones(len(x), len(x)).bool())
        x = x + at.linear(seen.flatten(1), "attn_out", width)
        x = x + gated(at, at.rms(x, "ff_norm", c["rms_norm_eps"]), c["mlp_hidden_size"], ("ff_proj", "up_proj", "ff_out"))
    return f.linear(f.rms(x, "ln_f", c["rms_norm_eps"]), "ff_out", c["embedding_size"])


def qwen_experts(c, wide, is_normed):
    def inner(at, x, i):
        at = at.within("mlp.")
        weights = best(at.linear(x, "gate", c["num_experts"]).softmax(-1), c["num_experts_per_tok"])
        return mixed(to_one(weights) if is_normed else weights,
                     lambda e: gated(at.within(f"experts.{e}."), x, wide))
    return inner


def seeing_all(biased=False, normed_heads=False, inner=None):
    """A decoder in which each position sees all others."""
    def forward(f, c, tokens):
        sees = torch.ones(len(tokens), len(tokens)).bool()
        block = inner(c) if inner else lambda at, x, i: gated(at.within("mlp."), x, c["intermediate_size"])
        return decoder(f, c, tokens, layers_of(
            c, lambda at, x, i: usual_attention(at, x, c, sees, biased, normed_heads, c["rope_theta"]), block))
    return forward


def scaled_as_llama3(base, count, scaling):
    """The divisors of the rotary frequencies."""
    waves = 2 * math.pi * base**(torch.arange(0, count, 2) / count)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = (scaling["original_max_position_embeddings"] / waves - low) / (high - low)
    smooth = smooth.clamp(0, 1)
    return 1 / ((1 - smooth) / scaling["factor"] + smooth)


def step35(f, c, tokens):
    epsilon, length, width = c["rms_norm_eps"], c["head_dim"], c["hidden_size"]

    def limited(at, x, wide, limit):
        gate, up = silu(at.linear(x, "gate_proj", wide)), at.linear(x, "up_proj", wide)
        if limit:
            gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
        return at.linear(gate * up, "down_proj", width)

    def experts(at, x, i):
        count, wide = c["moe_num_experts"], c["moe_intermediate_size"]
        scores = torch.sigmoid(at.linear(x, "moe.gate", count))
        weights = to_one(best(scores, c["moe_top_k"], scores + at("moe.router_bias", count))) * c["moe_router_scaling_factor"]
        gate, up, down = (at(f"moe.{name}_proj.weight", count, *shape) for name, shape in (
            ("gate", (wide, width)), ("up", (wide, width)), ("down", (width, wide))))
        limit = c["swiglu_limits"][i] or math.inf
        routed = mixed(weights, lambda e: (silu(x @ gate[e].T).clamp(max=limit) * (x @ up[e].T).clamp(-limit, limit)) @ down[e].T)
        return routed + limited(at.within("share_expert."), x, c["share_expert_dim"], c["swiglu_limits_shared"][i])

    def layer(block, x, i):
        is_windowed = c["layer_types"][i] == "sliding_attention"
        sizes = c["attention_other_setting"] if is_windowed else c
        heads, groups, base = sizes["num_attention_heads"], sizes["num_attention_groups"], c["rope_theta"][i]
        at, h = block.within("self_attn."), block.rms(x, "input_layernorm", epsilon, 1)
        q, k, v = (at.linear(h, name, count * length).reshape(len(x), count, length)
                   for name, count in (("q_proj", heads), ("k_proj", groups), ("v_proj", groups)))
        count = int(length * c["partial_rotary_factors"][i])
        divisors = 1.0 if is_windowed else scaled_as_llama3(base, count, c["rope_scaling"])
        q, k = (turned(at.rms(each, name, epsilon, 1), base, count, divisors) for each, name in ((q, "q_norm"), (k, "k_norm")))
        y = attention(q, k, v, causal(len(x), c["sliding_window"] if is_windowed else None))
        y = y * torch.sigmoid(at.linear(h, "g_proj", heads))[..., None]
        x = x + at.linear(y.flatten(1), "o_proj", width)
        h = block.rms(x, "post_attention_layernorm", epsilon, 1)
        if str(i) in c["moe_layers_enum"].split(","):
            return x + experts(block, h, i)
        return x + limited(block.within("mlp."), h, c["intermediate_size"], c["swiglu_limits_shared"][i])

    x = f("model.embed_tokens.weight", c["vocab_size"], width)[tokens]
    for i in range(c["num_hidden_layers"]):
        x = layer(f.within(f"model.layers.{i}."), x, i)
    return f.linear(f.rms(x, "model.norm", epsilon, 1), "lm_head", c["vocab_size"])


def smallthinker(f, c, tokens):
    def layer(at, x, i):
        h = at.rms(x, "input_layernorm", c["rms_norm_eps"])
        window = c["sliding_window_size"] if c["sliding_window_layout"][i] else None
        y = x + usual_attention(at.within("self_attn."), h, c, causal(len(x), window),
                                base=c["rope_theta"] if c["rope_layout"][i] else None)
        inner = at.within("block_sparse_moe.")
        scores = inner.linear(x, "primary_router", c["moe_num_primary_experts"])  # of the layer's input
        soft = c["moe_primary_router_apply_softmax"]
        weights = to_one(best(scores.softmax(-1) if soft else torch.sigmoid(scores), c["moe_num_active_primary_experts"]))
        h = at.rms(y, "post_attention_layernorm", c["rms_norm_eps"])
        return y + mixed(weights, lambda e: gated(inner.within(f"experts.{e}."), h, c["moe_ffn_hidden_size"],
                                                  ("gate", "up", "down"), relu))
    return decoder(f, c, tokens, layer)


def arctic(f, c, tokens):
    sees = causal(len(tokens))

    def layer(at, x, i):
        epsilon = c["rms_norm_eps"]
        seen = x + usual_attention(at.within("self_attn."), at.rms(x, "input_layernorm", epsilon), c, sees, base=c["rope_theta"])
        dense = gated(at.within("residual_mlp."), at.rms(seen, "residual_layernorm", epsilon), c["hidden_size"], ("w1", "w3", "w2"))
        h, at = at.rms(x, "post_attention_layernorm", epsilon), at.within("block_sparse_moe.")
        weights = to_one(best(at.linear(h, "gate", c["num_local_experts"]).softmax(-1), c["num_experts_per_tok"]))
        return seen + dense + mixed(weights, lambda e: gated(
            at.within(f"experts.{e}."), h, c["intermediate_size"], ("w1", "w3", "w2")))

    return decoder(f, c, tokens, layer)


def grovemoe(f, c, tokens):
    sees = causal(len(tokens))

    def inner(at, x, i):
        at, count = at.within("mlp."), c["num_experts"]
        weights = to_one(best(at.linear(x, "gate", count).softmax(-1), c["num_experts_per_tok"]))
        large = mixed(weights, lambda e: gated(at.within(f"experts.{e}."), x, c["moe_intermediate_size"]))
        return large + 0.05 * mixed(weights.reshape(len(x), -1, 2).sum(-1),  # two experts share a small one
                                    lambda e: gated(at.within(f"chunk_experts.{e}."), x, 8))

    return decoder(f, c, tokens, layers_of(
        c, lambda at, x, i: usual_attention(at, x, c, sees, normed_heads=True, base=c["rope_theta"]), inner))


EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
SMALLTHINKER = dict(USUAL, architectures=["SmallThinkerForCausalLM"], head_dim=16, moe_enable_early_router=True,
                    moe_enable_secondary_experts=False, moe_ffn_hidden_size=24, moe_num_active_primary_experts=2,
                    moe_num_primary_experts=4, norm_topk_prob=True, sliding_window_size=4096, rope_theta=1.5e6)
MODELS = {
    "deepseek": (deepseek, dict(
        USUAL, architectures=["DeepseekForCausalLM"], first_k_dense_replace=1, moe_intermediate_size=24, moe_layer_freq=1,
        n_routed_experts=4, n_shared_experts=2, norm_topk_prob=False, num_experts_per_tok=2, scoring_func="softmax")),
    "llada": (llada, dict(
        architectures=["LLaDAModelLM"], activation_type="silu", alibi=False, attention_layer_norm=False, block_type="llama",
        d_model=32, embedding_size=64, include_bias=False, input_emb_norm=False, layer_norm_type="rms", mask_token_id=63,
        max_sequence_length=64, mlp_hidden_size=48, mlp_ratio=4, multi_query_attention=None, n_heads=4, n_kv_heads=2,
        n_layers=4, rms_norm_eps=1e-5, rope=True, rope_theta=500000.0, scale_logits=False, vocab_size=64,
        weight_tying=False)),
    "llada-moe": (seeing_all(normed_heads=True, inner=lambda c: qwen_experts(c, c["expert_intermediate_size"], False)), dict(
        USUAL, architectures=["LLaDAMoEModelLM"], clip_qkv=None, dense_intermediate_size=48, expert_intermediate_size=24,
        moe_layer_freq=[1] * 4, moe_router_score_function="softmax", norm_topk_prob=None, num_experts=4,
        num_experts_per_tok=2, qk_layernorm=True, routed_scaling_factor=1, mask_token_id=62)),
    "dream": (seeing_all(biased=True), dict(
        USUAL, architectures=["DreamModel"], mask_token_id=61, use_sliding_window=False)),
    "rnd1": (seeing_all(normed_heads=True, inner=lambda c: qwen_experts(c, c["moe_intermediate_size"], True)), dict(
        USUAL, **EXPERTS, architectures=["RND1"], head_dim=16, norm_topk_prob=True, decoder_sparse_step=1,
        mlp_only_layers=[], mask_token_id=60)),
    "step35": (step35, dict(
        {key: each for key, each in USUAL.items() if key != "num_key_value_heads"}, architectures=["Step3p5ForCausalLM"], head_dim=16, num_attention_groups=2, moe_num_experts=4, moe_top_k=2,
        moe_intermediate_size=24, share_expert_dim=40, moe_router_scaling_factor=3.0, moe_router_activation="sigmoid",
        norm_expert_weight=True, sliding_window=8, moe_layers_enum="1,2,3", zero_centered=True,
        layer_types=["full_attention"] + ["sliding_attention"] * 2 + ["full_attention"],
        attention_other_setting=dict(num_attention_heads=6, num_attention_groups=2, head_dim=16),
        rope_theta=[5e6, 1e4, 1e4, 5e6], partial_rotary_factors=[0.5, 1.0, 1.0, 0.5],
        rope_scaling=dict(rope_type="llama3", factor=2.0, original_max_position_embeddings=32, low_freq_factor=1.0,
                          high_freq_factor=8.0),
        yarn_only_types=["full_attention"], swiglu_limits=[0.0, 0.0, 0.3, None], swiglu_limits_shared=[0.5, 0.0, 0.0, 0.4])),
    "smallthinker": (smallthinker, dict(SMALLTHINKER, sliding_window_layout=[0, 1, 1, 1], rope_layout=[0, 1, 1, 1],
                                        moe_primary_router_apply_softmax=False)),
    "smallthinker-full": (smallthinker, dict(SMALLTHINKER, sliding_window_layout=[0] * 4, rope_layout=[1] * 4,
                                             moe_primary_router_apply_softmax=True)),
    "arctic": (arctic, dict(USUAL, architectures=["ArcticForCausalLM"], num_local_experts=4, num_experts_per_tok=2,
                            moe_layer_frequency=1, parallel_attn_mlp_res=True, use_residual=True)),
    "grovemoe": (grovemoe, dict(
        USUAL, architectures=["GroveMoeForCausalLM"], decoder_sparse_step=1, head_dim=16, mlp_only_layers=[],
        moe_intermediate_size=24, norm_topk_prob=True, num_experts=8, num_experts_per_tok=3)),
    **published_rwkv.MODELS,
    **published_kimi.MODELS,
    **published_grok.MODELS,
    **published_mimo.MODELS,
}
