"""Kimi K3's part for text, in float64, from its published definition."""
import torch
from torch.nn.functional import pad, silu

from published_parts import SIZES, attention, best, causal, mixed, normed, to_one


def kept_deltas(q, k, v, decay, rate):
    """The delta rule with a decay for each key; all are [rows, heads, length], `rate` is [rows, heads]."""
    state, read = torch.zeros(q.shape[1], q.shape[2], v.shape[2]).double(), []
    for t in range(len(q)):
        state = decay[t][:, :, None] * state
        error = v[t] - torch.einsum("hk,hkv->hv", k[t], state)
        state = state + k[t][:, :, None] * (rate[t][:, None] * error)[:, None]
        read.append(torch.einsum("hk,hkv->hv", q[t] * q.shape[2]**-0.5, state))
    return torch.stack(read)


def delta_attention(at, x, c):
    own = c["linear_attn_config"]
    heads, length, taps = own["num_heads"], own["head_dim"], own["short_conv_kernel_size"]
    inner = heads * length

    def convolved(name):
        rows = pad(at.linear(x, name + "_proj", inner), (0, 0, taps - 1, 0))
        by = at(name + "_conv1d.weight", inner, 1, taps)[:, 0]
        return silu(sum(rows[i:i + len(x)] * by[:, i] for i in range(taps))).reshape(len(x), heads, length)

    q, k, v = (convolved(name) for name in "qkv")
    q, k = (each / (each.square().sum(-1, keepdim=True) + 1e-6).sqrt() for each in (q, k))
    speed = at("A_log", length)[:heads, None].exp()  # there are more of them than heads
    wish = (at.linear(at.linear(x, "f_a_proj", length), "f_b_proj", inner) + at("dt_bias", inner)).reshape(-1, heads, length)
    decay = torch.exp(own["gate_lower_bound"] * torch.sigmoid(speed * wish))
    y = kept_deltas(q, k, v, decay, torch.sigmoid(at.linear(x, "b_proj", heads)))
    y = at.rms(y, "o_norm", c["rms_norm_eps"]) * torch.sigmoid(at.linear(x, "g_proj", inner)).reshape(y.shape)
    return at.linear(y.flatten(1), "o_proj", x.shape[-1])


def latent_attention(at, x, c):
    heads, plain, shared, value = (c[key] for key in (
        "num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    q = at.linear(at.rms(at.linear(x, "q_a_proj", c["q_lora_rank"]), "q_a_layernorm", c["rms_norm_eps"]), "q_b_proj",
                  heads * (plain + shared)).reshape(len(x), heads, -1)
    latent, of_all = at.linear(x, "kv_a_proj_with_mqa", c["kv_lora_rank"] + shared).split([c["kv_lora_rank"], shared], -1)
    both = at.linear(at.rms(latent, "kv_a_layernorm", c["rms_norm_eps"]), "kv_b_proj", heads * (plain + value))
    k, v = both.reshape(len(x), heads, -1).split([plain, value], -1)
    k = torch.cat([k, of_all[:, None].expand(-1, heads, -1)], -1)  # nothing is rotated
    y = attention(q, k, v, causal(len(x))).flatten(1) * torch.sigmoid(at.linear(x, "g_proj", heads * value))
    return at.linear(y, "o_proj", x.shape[-1])


def bounded(at, x, wide, c, names=("gate_proj", "up_proj", "down_proj")):
    gate, up = (at.linear(x, name, wide) for name in names[:2])
    one, two = c["activation_situ_beta"], c["activation_situ_linear_beta"]
    return at.linear(one * torch.tanh(gate / one) * torch.sigmoid(gate) * two * torch.tanh(up / two), names[2], x.shape[-1])


def latent_experts(at, x, c):
    narrow, wide = c["routed_expert_hidden_size"], c["moe_intermediate_size"]
    scores = torch.sigmoid(at.linear(x, "gate", c["num_experts"]))
    weights = best(scores, c["num_experts_per_token"], scores + at("gate.e_score_correction_bias", c["num_experts"]))
    h = at.linear(x, "routed_expert_down_proj", narrow)
    y = mixed(to_one(weights) * c["routed_scaling_factor"],
              lambda e: bounded(at.within(f"experts.{e}."), h, wide, c, ("w1", "w3", "w2")))
    y = at.linear(at.rms(y, "routed_expert_norm", c["rms_norm_eps"]), "routed_expert_up_proj", x.shape[-1])
    return y + bounded(at.within("shared_experts."), x, c["num_shared_experts"] * wide, c)


def kimi3(f, config, tokens):
    c, f = config["text_config"], f.within("language_model.")
    kept = []  # inputs of earlier layers

    def read(at, name, x):
        """A mix of what is kept and x, as x itself and they decide."""
        if not kept:
            return x
        rows = torch.stack([*kept, x], 1)
        by = normed(rows, c["rms_norm_eps"]) * at(name + "_res_norm.weight", x.shape[-1])
        shares = (by @ at(name + "_res_proj.weight", 1, x.shape[-1])[0]).softmax(-1)
        return torch.einsum("tn,tnc->tc", shares, rows)

    x = f("model.embed_tokens.weight", c["vocab_size"], c["hidden_size"])[tokens]
    for i in range(c["num_hidden_layers"]):
        block = f.within(f"model.layers.{i}.")
        if i == 0:  # the first layer's are there and not used
            for part in ("norm", "proj"):
                block(f"self_attention_res_{part}.weight", *((1,) if part == "proj" else ()), c["hidden_size"])
        h = block.rms(read(block, "self_attention", x), "input_layernorm", c["rms_norm_eps"])
        attend = latent_attention if i + 1 in c["linear_attn_config"]["full_attn_layers"] else delta_attention
        y = attend(block.within("self_attn."), h, c)
        if i % c["attn_res_block_size"] == 0:
            kept.append(x)
            x = y
        else:
            x = x + y
        h = block.rms(read(block, "mlp", x), "post_attention_layernorm", c["rms_norm_eps"])
        if i < c["first_k_dense_replace"]:
            x = x + bounded(block.within("mlp."), h, c["intermediate_size"], c)
        else:
            x = x + latent_experts(block.within("block_sparse_moe."), h, c)
    x = read(f, "model.output_attn", x)
    return f.linear(f.rms(x, "model.norm", c["rms_norm_eps"]), "lm_head", c["vocab_size"])


KIMI3 = dict(SIZES, model_type="kimi_linear", hidden_act="situ", activation_situ_beta=0.9, activation_situ_linear_beta=0.7,
             attn_res_block_size=2, first_k_dense_replace=1, kv_lora_rank=16, latent_moe_use_norm=True, mla_use_nope=True,
             mla_use_output_gate=True, moe_intermediate_size=24, moe_layer_freq=1, moe_renormalize=True,
             moe_router_activation_func="sigmoid", num_expert_group=1, num_experts=4, num_experts_per_token=2,
             num_hidden_layers=5, num_key_value_heads=4, num_nextn_predict_layers=0, num_shared_experts=2, q_lora_rank=12,
             qk_nope_head_dim=8, qk_rope_head_dim=4, rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000.0,
             routed_expert_hidden_size=20, routed_scaling_factor=2.5, tie_word_embeddings=False, topk_group=1,
             topk_method="noaux_tc", use_grouped_topk=True, v_head_dim=6, linear_attn_config=dict(
                 full_attn_layers=[3, 5], gate_lower_bound=-5.0, head_dim=8, kda_layers=[1, 2, 4], num_heads=4,
                 short_conv_kernel_size=4, use_full_rank_gate=True))
MODELS = {
    "kimi-k3": (kimi3, dict(architectures=["KimiK3ForConditionalGeneration"], model_type="kimi_k3", text_config=KIMI3,
                            tie_word_embeddings=False, vision_config=dict(patch_size=14))),
}
