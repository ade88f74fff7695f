"""MiMo V2.5 in float64, from its published definition."""
import torch

from published_parts import USUAL, attention, best, causal, decoder, gated, layers_of, mixed, to_one, turned


def mimo25(f, c, tokens):
    heads, length, value, ranks = (c[key] for key in ("num_attention_heads", "head_dim", "v_head_dim", "num_key_value_heads"))
    count = int(length * c["partial_rotary_factor"])

    def attend(at, x, i):
        is_windowed = c["hybrid_layer_pattern"][i] == 1
        groups = c["swa_num_key_value_heads"] if is_windowed else c["num_key_value_heads"]
        base, window = (c["swa_rope_theta"], c["sliding_window_size"] + 1) if is_windowed else (c["rope_theta"], None)
        # Each rank has some heads of q, of k and of v.
        sizes = [heads // ranks * length, groups // ranks * length, groups // ranks * value]
        rows = at.linear(x, "qkv_proj", ranks * sum(sizes)).reshape(len(x), ranks, -1)
        q, k, v = (part.reshape(len(x), -1, size) for part, size in zip(rows.split(sizes, -1), (length, length, value)))
        sinks = at("attention_sink_bias", heads) if is_windowed else None
        y = attention(turned(q, base, count), turned(k, base, count), v * c["attention_value_scale"],
                      causal(len(x), window), sinks=sinks)
        return at.linear(y.flatten(1), "o_proj", x.shape[-1])

    def inner(at, x, i):
        at = at.within("mlp.")
        if not c["moe_layer_freq"][i]:
            return gated(at, x, c["intermediate_size"])
        scores = torch.sigmoid(at.linear(x, "gate", c["n_routed_experts"]))
        weights = best(scores, c["num_experts_per_tok"], scores + at("gate.e_score_correction_bias", c["n_routed_experts"]))
        return mixed(to_one(weights), lambda e: gated(at.within(f"experts.{e}."), x, c["moe_intermediate_size"]))

    return decoder(f, dict(c, rms_norm_eps=c["layernorm_epsilon"]), tokens,
                   layers_of(dict(c, rms_norm_eps=c["layernorm_epsilon"]), attend, inner))


CONFIG = dict(USUAL, architectures=["MiMoV2ForCausalLM"], attention_bias=False, attention_projection_layout="fused_qkv",
              attention_value_scale=0.707, head_dim=12, hybrid_layer_pattern=[0, 1, 1, 0], layernorm_epsilon=1e-5,
              moe_intermediate_size=24, moe_layer_freq=[0, 1, 1, 1], n_group=1, n_routed_experts=4, norm_topk_prob=True,
              num_attention_heads=8, num_experts_per_tok=2, num_key_value_heads=4, partial_rotary_factor=0.334,
              routed_scaling_factor=None, scoring_func="sigmoid", sliding_window=8, sliding_window_size=8, swa_head_dim=12,
              swa_num_attention_heads=8, swa_num_key_value_heads=8, swa_rope_theta=1e4, swa_v_head_dim=8, topk_group=1,
              topk_method="noaux_tc", v_head_dim=8, vision_config=dict(depth=1))
MODELS = {
    "mimo-v2-5": (mimo25, {key: each for key, each in CONFIG.items() if key != "rms_norm_eps"}),
}
