"""More tiny models in float64 as published_layers.py has them: those whose tensors have names of their own."""
import numpy

from published_layers import (LLAMAS, SMALL, attend, by_heads, fused_gated, gated, gelu, in_layers, layer_norm, linear,
                              normed, parts, rms, rotate, silu, slopes)

GPT = dict(n_embd=32, n_layer=3, n_head=4, n_positions=64, layer_norm_epsilon=1e-5, vocab_size=64, bos_token_id=1,
           eos_token_id=2)


def with_bias(shapes):
    return shapes | {name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items()}


# --- PLaMo
def plamo(c, w, tokens):
    """Attention and feed-forward side by side; heads of q take turns in sharing those of k and v."""
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(c["num_hidden_layers"]):
        name = f"model.layers.layers.{i}"
        seen = rms(x, w[f"{name}.norm.weight"])
        q, k, v = (by_heads(linear(seen, w, f"{name}.self_attn.{each}_proj"), heads)
                   for each, heads in (("q", 8), ("k", 2), ("v", 2)))
        k, v = (numpy.tile(each, (1, c["n_shared_head"], 1)) for each in (rotate(k), v))
        x = x + linear(attend(rotate(q), k, v), w, f"{name}.self_attn.o_proj") + gated(seen, w, f"{name}.mlp")
    return rms(x, w["model.norm.weight"])[-1] @ w["lm_head.weight"].T


def plamo_shapes(c):
    layer = {"norm": [32], "self_attn.q_proj": [32, 32], "self_attn.k_proj": [8, 32], "self_attn.v_proj": [8, 32],
             "self_attn.o_proj": [32, 32], "mlp.gate_proj": [48, 32], "mlp.up_proj": [48, 32], "mlp.down_proj": [32, 48]}
    return {"model.embed_tokens.weight": [64, 32], "model.norm.weight": [32], "lm_head.weight": [64, 32]} | in_layers(
        3, {f"model.layers.layers.{{}}.{name}.weight": shape for name, shape in layer.items()})


def plamo_blocks(c, w, tokens, mixer):
    """PLaMo 2 and 3: norms whose weights are differences from a number, before and after each block."""
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(c["num_hidden_layers"]):
        name = f"model.layers.layers.{i}"
        norm = lambda x, kind, base: rms(x, w[f"{name}.{kind}_norm.weight"] + base)
        x = x + norm(mixer(norm(x, "pre_mixer", 1), f"{name}.mixer", i), "post_mixer", 1 / 5)
        wide = fused_gated(norm(x, "pre_mlp", 1), w, f"{name}.mlp.gate_up_proj", f"{name}.mlp.down_proj")
        x = x + norm(wide, "post_mlp", 5**-1.5)
    return rms(x, w["model.norm.weight"] + 1)[-1] @ w["model.embed_tokens.weight"].T


def plamo_block_shapes(c, mixers):
    layer = {f"{name}_norm.weight": [32] for name in ("pre_mixer", "post_mixer", "pre_mlp", "post_mlp")}
    layer |= {"mlp.gate_up_proj.weight": [96, 32], "mlp.down_proj.weight": [32, 48]}
    shapes = {"model.embed_tokens.weight": [64, 32], "model.norm.weight": [32]}
    for i, mixer in enumerate(mixers):
        own = layer | {f"mixer.{name}": shape for name, shape in mixer.items()}
        shapes |= {f"model.layers.layers.{i}.{name}": shape for name, shape in own.items()}
    return shapes


def plamo2(c, w, tokens):
    def attention(x, name):
        q, k, v = (by_heads(each, heads) for each, heads in zip(
            parts(linear(x, w, f"{name}.qkv_proj"), 32, 16, 16), (4, 2, 2)))
        q, k = rms(q, w[f"{name}.q_weight"]), rms(k, w[f"{name}.k_weight"])
        return linear(attend(rotate(q), rotate(k), v), w, f"{name}.o_proj")

    def mamba(x, name):
        """Heads with a matrix of state each, whose rows decay alike; their steps, b and c are normed."""
        heads, states, taps = c["mamba_num_heads"], c["mamba_d_state"], c["mamba_d_conv"]
        gate, value = parts(by_heads(linear(x, w, f"{name}.in_proj"), heads), 8, 8)
        value = value.reshape(len(x), -1)
        padded = numpy.concatenate([numpy.zeros((taps - 1, value.shape[1])), value])
        kernel = w[f"{name}.conv1d.weight"][:, 0]
        value = silu(sum(padded[i:i + len(x)] * kernel[:, i] for i in range(taps)))
        b, out, steps = parts(linear(value, w, f"{name}.bcdt_proj"), states, states, 64)
        b, out, steps = (rms(rows, w[f"{name}.{kind}_norm_weight"])
                         for rows, kind in ((b, "B"), (out, "C"), (steps, "dt")))
        steps = numpy.log1p(numpy.exp(linear(steps, w, f"{name}.dt_proj") + w[f"{name}.dt_bias"]))
        decay = numpy.exp(-numpy.exp(w[f"{name}.A_log"]) * steps)
        value, state, rows = by_heads(value, heads), numpy.zeros((heads, 8, states)), []
        for t in range(len(x)):
            state = state * decay[t][:, None, None] + (steps[t][:, None] * value[t])[..., None] * b[t]
            rows.append(state @ out[t] + w[f"{name}.D"][:, None] * value[t])
        return linear((silu(gate) * numpy.array(rows)).reshape(len(x), -1), w, f"{name}.out_proj")
    return plamo_blocks(c, w, tokens, lambda x, name, i: attention(x, name) if i % 2 == 1 else mamba(x, name))


def plamo2_shapes(c):
    attention = {"qkv_proj.weight": [64, 32], "o_proj.weight": [32, 32], "q_weight": [4, 8], "k_weight": [2, 8]}
    mamba = {"in_proj.weight": [96, 32], "conv1d.weight": [48, 1, 4], "bcdt_proj.weight": [64 + 2 * 16, 48],
             "dt_proj.weight": [6, 64], "dt_bias": [6], "A_log": [6], "D": [6], "dt_norm_weight": [64],
             "B_norm_weight": [16], "C_norm_weight": [16], "out_proj.weight": [32, 48]}
    return plamo_block_shapes(c, [mamba, attention, mamba, attention])


def plamo3(c, w, tokens):
    """A window has its own base of rotation and, beside each token, as many before it as window_size says."""
    def attention(x, name, i):
        q, k, v = (by_heads(each, heads) for each, heads in zip(
            parts(linear(x, w, f"{name}.qkv_proj"), 64, 32, 32), (4, 2, 2)))
        is_full = (i + 1) % c["sliding_window_pattern"] == 0
        base = c["rope_theta"] if is_full else c["rope_local_theta"]
        q, k = (rotate(rms(each, w[f"{name}.{kind}_norm.weight"] + 1), base) for each, kind in ((q, "q"), (k, "k")))
        return linear(attend(q, k, v, window=None if is_full else c["window_size"]), w, f"{name}.o_proj")
    return plamo_blocks(c, w, tokens, attention)


def plamo3_shapes(c):
    attention = {"qkv_proj.weight": [128, 32], "o_proj.weight": [32, 64], "q_norm.weight": [16], "k_norm.weight": [16]}
    return plamo_block_shapes(c, [attention] * 4)


# --- with the names of GPT-2
def gpt(c, w, tokens, attention, feed_forward, norm=layer_norm, x=None):
    x = w["transformer.wte.weight"][tokens] if x is None else x
    for i in range(3):
        name = f"transformer.h.{i}"
        x = x + attention(norm(x, w, f"{name}.ln_1"), f"{name}.attn")
        x = x + feed_forward(norm(x, w, f"{name}.ln_2"), f"{name}.mlp")
    return norm(x, w, "transformer.ln_f")[-1] @ w.get("lm_head.weight", w["transformer.wte.weight"]).T


def gpt_shapes(layer, tied=False):
    ends = {"transformer.wte.weight": [64, 32], "transformer.ln_f.weight": [32]}
    return ends | ({} if tied else {"lm_head.weight": [64, 32]}) | in_layers(3, {
        f"transformer.h.{{}}.{name}.weight": shape for name, shape in ({"ln_1": [32], "ln_2": [32]} | layer).items()})


def rms_norm(x, w, name):
    return rms(x, w[f"{name}.weight"])


def qwen(c, w, tokens):
    def attention(x, name):
        q, k, v = (by_heads(each, 4) for each in numpy.split(linear(x, w, f"{name}.c_attn"), 3, -1))
        return linear(attend(rotate(q), rotate(k), v), w, f"{name}.c_proj")
    return gpt(c, w, tokens, attention, lambda x, name: gated(x, w, name, "w2", "w1", "c_proj"), rms_norm)


def qwen_shapes(c):
    shapes = gpt_shapes({"attn.c_attn": [96, 32], "attn.c_proj": [32, 32], "mlp.w1": [48, 32], "mlp.w2": [48, 32],
                         "mlp.c_proj": [32, 48]})
    return shapes | {f"transformer.h.{i}.attn.c_attn.bias": [96] for i in range(3)}


def codeshell(c, w, tokens):
    def attention(x, name):
        q, k, v = (by_heads(each, heads) for each, heads in zip(
            parts(linear(x, w, f"{name}.c_attn"), 32, 16, 16), (4, 2, 2)))
        return linear(attend(rotate(q), rotate(k), v), w, f"{name}.c_proj")
    return gpt(c, w, tokens, attention, lambda x, name: linear(gelu(linear(x, w, f"{name}.c_fc")), w, f"{name}.c_proj"))


def codeshell_shapes(c):
    shapes = gpt_shapes({"attn.c_attn": [64, 32], "attn.c_proj": [32, 32], "mlp.c_fc": [128, 32], "mlp.c_proj": [32, 128]})
    ends = {"transformer.wte.bias", "lm_head.bias"}
    return {name: shape for name, shape in with_bias(shapes).items() if name not in ends}


def refact(c, w, tokens):
    def attention(x, name):
        k, v = (by_heads(each, 1) for each in numpy.split(linear(x, w, f"{name}.kv"), 2, -1))
        q = by_heads(linear(x, w, f"{name}.q"), 4)
        return linear(attend(q, k, v, biases=slopes(4)), w, f"{name}.c_proj")
    return gpt(c, w, tokens, attention,
               lambda x, name: fused_gated(x, w, f"{name}.gate_up_proj", f"{name}.c_proj"), rms_norm)


def refact_shapes(c):
    return gpt_shapes({"attn.q": [32, 32], "attn.kv": [16, 32], "attn.c_proj": [32, 32], "mlp.gate_up_proj": [512, 32],
                       "mlp.c_proj": [32, 256]})


def jais(c, w, tokens):
    """Matrices have a row for each input; scores are divided by the length of a head, not by its root."""
    w = {name: each.T if each.ndim == 2 and name.startswith("transformer.h.") else each for name, each in w.items()}

    def attention(x, name):
        q, k, v = (by_heads(each, 6) for each in numpy.split(linear(x, w, f"{name}.c_attn"), 3, -1))
        return linear(attend(q, k, v, 1 / q.shape[-1], slopes(6)), w, f"{name}.c_proj")
    x = w["transformer.wte.weight"][tokens] * c.get("mup_embeddings_scale", c.get("embeddings_scale"))
    scale = c["mup_output_alpha"] * c["mup_width_scale"] if "mup_width_scale" in c else c["width_scale"]
    return scale * gpt(c, w, tokens, attention, lambda x, name: gated(x, w, name, "c_fc2", "c_fc", "c_proj"), x=x)


def jais_shapes(c):
    layer = {"attn.c_attn": [24, 72], "attn.c_proj": [24, 24], "mlp.c_fc": [24, 40], "mlp.c_fc2": [24, 40],
             "mlp.c_proj": [40, 24]}
    shapes = in_layers(3, {f"transformer.h.{{}}.{name}.weight": shape for name, shape in layer.items()})
    shapes |= {name.replace("weight", "bias"): shape[1:] for name, shape in shapes.items()}
    shapes |= normed("transformer.ln_f", *(f"transformer.h.{i}.ln_{n}" for i in range(3) for n in (1, 2)), width=24)
    shapes |= {"transformer.wte.weight": [64, 24], "transformer.relative_pe.slopes": [6, 1, 1]}
    return shapes if c["tie_word_embeddings"] else shapes | {"lm_head.weight": [64, 24]}


# --- with names of their own
def chatglm(c, w, tokens):
    """A half of each head is rotated, in pairs of neighbours."""
    x = w["transformer.embedding.word_embeddings.weight"][tokens]
    for i in range(3):
        name = f"transformer.encoder.layers.{i}"
        seen = linear(rms(x, w[f"{name}.input_layernorm.weight"], 1e-5), w, f"{name}.self_attention.query_key_value")
        q, k, v = (by_heads(each, heads) for each, heads in zip(parts(seen, 32, 16, 16), (4, 2, 2)))
        q, k = (rotate(each, 1e4 * c.get("rope_ratio", 1), 4, adjacent=True) for each in (q, k))
        x = x + linear(attend(q, k, v), w, f"{name}.self_attention.dense")
        seen = rms(x, w[f"{name}.post_attention_layernorm.weight"], 1e-5)
        x = x + fused_gated(seen, w, f"{name}.mlp.dense_h_to_4h", f"{name}.mlp.dense_4h_to_h")
    return rms(x, w["transformer.encoder.final_layernorm.weight"], 1e-5)[-1] @ w["transformer.output_layer.weight"].T


def chatglm_shapes(c):
    layer = {"input_layernorm.weight": [32], "post_attention_layernorm.weight": [32],
             "self_attention.query_key_value.weight": [64, 32], "self_attention.query_key_value.bias": [64],
             "self_attention.dense.weight": [32, 32], "mlp.dense_h_to_4h.weight": [96, 32],
             "mlp.dense_4h_to_h.weight": [32, 48]}
    return {"transformer.embedding.word_embeddings.weight": [64, 32], "transformer.output_layer.weight": [64, 32],
            "transformer.encoder.final_layernorm.weight": [32], "transformer.rotary_pos_emb.inv_freq": [2]} | in_layers(
                3, {f"transformer.encoder.layers.{{}}.{name}": shape for name, shape in layer.items()})


def openelm_width(c, i):
    wide, step = c["ffn_multipliers"][i] * c["model_dim"], c["ffn_dim_divisor"]
    rounded = max(step, int(wide + step / 2) // step * step)
    return rounded + step if rounded < 0.9 * wide else rounded


def openelm(c, w, tokens):
    """Each layer has its own number of heads and its own width."""
    x = w["transformer.token_embeddings.weight"][tokens]
    for i in range(3):
        name, heads, keys = f"transformer.layers.{i}", c["num_query_heads"][i], c["num_kv_heads"][i]
        seen = linear(rms(x, w[f"{name}.attn_norm.weight"]), w, f"{name}.attn.qkv_proj")
        q, k, v = (by_heads(each, count) for each, count in zip(
            parts(seen, heads * 8, keys * 8, keys * 8), (heads, keys, keys)))
        q, k = (rotate(rms(each, w[f"{name}.attn.{kind}_norm.weight"])) for each, kind in ((q, "q"), (k, "k")))
        x = x + linear(attend(q, k, v), w, f"{name}.attn.out_proj")
        x = x + fused_gated(rms(x, w[f"{name}.ffn_norm.weight"]), w, f"{name}.ffn.proj_1", f"{name}.ffn.proj_2")
    return rms(x, w["transformer.norm.weight"])[-1] @ w["transformer.token_embeddings.weight"].T


def openelm_shapes(c):
    shapes = {"transformer.token_embeddings.weight": [64, 32], "transformer.norm.weight": [32]}
    for i in range(3):
        heads, keys, wide = c["num_query_heads"][i], c["num_kv_heads"][i], openelm_width(c, i)
        layer = {"attn_norm": [32], "ffn_norm": [32], "attn.q_norm": [8], "attn.k_norm": [8], "ffn.proj_2": [32, wide],
                 "attn.qkv_proj": [(heads + 2 * keys) * 8, 32], "attn.out_proj": [32, heads * 8], "ffn.proj_1": [2 * wide, 32]}
        shapes |= {f"transformer.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    return shapes


def talkie(c, w, tokens):
    """Norms without weights; heads turn backwards; the embedding is added again behind each layer."""
    norm = lambda x: rms(x, epsilon=2.0**-23)
    first = x = norm(w["model.embed.weight"][tokens])
    for i in range(3):
        name = f"model.blocks.{i}"
        q, k, v = (by_heads(linear(norm(x), w, f"{name}.attn.attn_{each}"), 4) for each in ("query", "key", "value"))
        q, k = (norm(rotate(each, c["rope_theta"], direction=-1)) for each in (q, k))
        q = q * w[f"{name}.attn.head_gain.head_g"][:, None]
        x = x + w[f"{name}.attn_gain.a_g"] * linear(attend(q, k, v), w, f"{name}.attn.attn_resid")
        x = x + w[f"{name}.mlp_gain.a_g"] * gated(norm(x), w, f"{name}.mlp", "mlp_gate", "mlp_linear", "mlp_resid")
        x = x + w[f"{name}.embed_skip.a_g"] * first
    return norm(x)[-1] @ w["lm_head"].T * w["lm_head_gain.w_g"]


def talkie_shapes(c):
    layer = {f"attn.attn_{each}.weight": [32, 32] for each in ("query", "key", "value", "resid")}
    layer |= {"attn.head_gain.head_g": [4], "attn_gain.a_g": [1], "mlp_gain.a_g": [1], "embed_skip.a_g": [1],
              "mlp.mlp_gate.weight": [48, 32], "mlp.mlp_linear.weight": [48, 32], "mlp.mlp_resid.weight": [32, 48]}
    return {"model.embed.weight": [64, 32], "lm_head": [64, 32], "lm_head_gain.w_g": [1]} | in_layers(
        3, {f"model.blocks.{{}}.{name}": shape for name, shape in layer.items()})


def olmo(c, w, tokens):
    """The first OLMo's own class: norms without weights; the second half of ff_proj is the gate."""
    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = w["model.transformer.wte.weight"][tokens]
    for i in range(3):
        name = f"model.transformer.blocks.{i}"
        q, k, v = (by_heads(each, 4) for each in numpy.split(linear(norm(x), w, f"{name}.att_proj"), 3, -1))
        x = x + linear(attend(rotate(q), rotate(k), v), w, f"{name}.attn_out")
        up, gate = numpy.split(linear(norm(x), w, f"{name}.ff_proj"), 2, -1)
        x = x + linear(silu(gate) * up, w, f"{name}.ff_out")
    return norm(x)[-1] @ w["model.transformer.ff_out.weight"].T


def olmo_shapes(c):
    layer = {"att_proj": [96, 32], "attn_out": [32, 32], "ff_proj": [96, 32], "ff_out": [32, 48]}
    return {"model.transformer.wte.weight": [64, 32], "model.transformer.ff_out.weight": [64, 32]} | in_layers(
        3, {f"model.transformer.blocks.{{}}.{name}.weight": shape for name, shape in layer.items()})


def rugpt3xl(c, w, tokens):
    x = w["model.embed_tokens.weight"][tokens] + w["model.embed_positions.weight"][:len(tokens)]
    for i in range(3):
        name = f"model.layers.{i}"
        seen = layer_norm(x, w, f"{name}.input_layernorm")
        q, k, v = (by_heads(linear(seen, w, f"{name}.self_attn.{each}_proj"), 4) for each in "qkv")
        x = x + linear(attend(q, k, v), w, f"{name}.self_attn.o_proj")
        seen = layer_norm(x, w, f"{name}.post_attention_layernorm")
        x = x + linear(gelu(linear(seen, w, f"{name}.mlp.up_proj")), w, f"{name}.mlp.down_proj")
    return layer_norm(x, w, "model.norm")[-1] @ w["model.embed_tokens.weight"].T


def rugpt3xl_shapes(c):
    layer = {f"self_attn.{each}_proj.weight": [32, 32] for each in "qkvo"}
    layer |= {"mlp.up_proj.weight": [128, 32], "mlp.down_proj.weight": [32, 128], "input_layernorm.weight": [32],
              "post_attention_layernorm.weight": [32]}
    shapes = with_bias(in_layers(3, {f"model.layers.{{}}.{name}": shape for name, shape in layer.items()}))
    return {"model.embed_tokens.weight": [64, 32], "model.embed_positions.weight": [64, 32]} | normed("model.norm") | shapes


JAIS = dict(GPT, n_embd=24, n_head=6, n_inner=40, activation_function="swiglu", position_embedding_type="alibi",
            scale_attn_weights=True)
PUBLISHED = LLAMAS | {
    "plamo": ("PlamoForCausalLM", dict(num_attention_heads=8, num_key_value_heads=8, n_shared_head=4,
                                       max_position_embeddings=None), plamo, plamo_shapes),
    "plamo2": ("Plamo2ForCausalLM", dict(
        num_hidden_layers=4, num_key_value_heads=2, hidden_size_per_head=8, mamba_d_state=16, mamba_d_conv=4,
        mamba_num_heads=6, mamba_step=2, mamba_enabled=True, attention_window_size=64, tie_word_embeddings=True), plamo2,
               plamo2_shapes),
    "plamo3": ("Plamo3ForCausalLM", dict(
        num_hidden_layers=4, num_key_value_heads=2, head_dim=16, window_size=7, sliding_window_pattern=2, rope_theta=1e6,
        rope_local_theta=1e4, tie_word_embeddings=True), plamo3, plamo3_shapes),
    "qwen": ("QWenLMHeadModel", dict(intermediate_size=96, kv_channels=8, seq_length=64, layer_norm_epsilon=1e-6,
                                     no_bias=True, rotary_pct=1.0, rotary_emb_base=10000, use_dynamic_ntk=True,
                                     use_logn_attn=True, scale_attn_weights=True), qwen, qwen_shapes),
    "codeshell": ("CodeShellForCausalLM", dict(
        GPT, num_query_groups=2, group_query_attention=True, activation_function="gelu_pytorch_tanh",
        position_embedding_type="rope", scale_attn_weights=True), codeshell, codeshell_shapes),
    "refact": ("GPTRefactForCausalLM", dict(GPT, layer_norm_epsilon=1e-6, multi_query=True, tie_word_embeddings=False),
               refact, refact_shapes),
    "jais": ("JAISLMHeadModel", dict(JAIS, mup_embeddings_scale=3.5, mup_output_alpha=2.0, mup_width_scale=0.25,
                                     mup_scale_qk_dot_by_d=True, tie_word_embeddings=True), jais, jais_shapes),
    "jais-13b": ("JAISLMHeadModel", dict(JAIS, embeddings_scale=2.5, width_scale=0.125, scale_qk_dot_by_d=True,
                                         tie_word_embeddings=False), jais, jais_shapes),
    "chatglm": ("ChatGLMModel", dict(
        num_layers=3, hidden_size=32, ffn_hidden_size=48, num_attention_heads=4, kv_channels=8, seq_length=64,
        padded_vocab_size=64, vocab_size=64, layernorm_epsilon=1e-5, rmsnorm=True, multi_query_attention=True,
        multi_query_group_num=2, add_bias_linear=False, add_qkv_bias=True, post_layer_norm=True, rope_ratio=5,
        apply_residual_connection_post_layernorm=False, tie_word_embeddings=False), chatglm, chatglm_shapes),
    "openelm": ("OpenELMForCausalLM", dict(
        model_dim=32, num_transformer_layers=3, head_dim=8, num_query_heads=[3, 4, 6], num_kv_heads=[1, 2, 3],
        ffn_multipliers=[0.5, 1.7, 3.0], ffn_dim_divisor=16, max_context_length=64, rope_freq_constant=10000,
        ffn_with_glu=True, normalize_qk_projections=True, share_input_output_layers=True, activation_fn_name="swish",
        normalization_layer_name="rms_norm", vocab_size=64), openelm, openelm_shapes),
    "talkie": ("TalkieForCausalLM", dict(head_dim=8, rope_theta=1e6, rms_norm_eps=None), talkie, talkie_shapes),
    "olmo-first": ("OLMoForCausalLM", dict(
        d_model=32, n_layers=3, n_heads=4, mlp_hidden_size=96, max_sequence_length=64, vocab_size=64, embedding_size=64,
        activation_type="swiglu", block_type="sequential", layer_norm_type="default", layer_norm_with_affine=False,
        rope=True, alibi=False, weight_tying=False, include_bias=False), olmo, olmo_shapes),
    "rugpt3xl": ("RuGPT3XLForCausalLM", dict(
        intermediate_size=128, hidden_act="gelu_new", layer_norm_eps=1e-5, rms_norm_eps=None, tie_word_embeddings=True,
        sparse_mode="alternating", sparse_block_size=16, sparse_num_local_blocks=2), rugpt3xl, rugpt3xl_shapes),
}
OWN = ("n_embd", "num_layers", "model_dim", "d_model")  # config.json has no other names


def published(name, tokens, value):
    """What expected.json says of a model; value: gives a tensor of a name and a shape."""
    folder_class, own, compute, shapes_of = PUBLISHED[name]
    config = (own if any(each in own for each in OWN) else SMALL | own) | dict(architectures=[folder_class])
    config = {key: each for key, each in config.items() if each is not None} | dict(model_type="other")
    shapes = dict(sorted(shapes_of(config).items()))
    with numpy.errstate(over="raise", invalid="raise", divide="raise"):
        row = compute(config, {key: value(key, shape).astype(numpy.float64) for key, shape in shapes.items()}, tokens)
    return dict(config=config, tensors=shapes, tokens=tokens, expected=[float(f"{x:.7g}") for x in row])
