"""Tiny models whose code is not in transformers, in float64: their layers as they are published, on tensors with the names
of their folders. make_expected.py writes what they compute into expected.json.

A model is its config.json, the shapes of its tensors and a function of both that gives the logits of the last token."""
import numpy

SMALL = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, vocab_size=64,
             max_position_embeddings=64, hidden_act="silu", rms_norm_eps=1e-6, pad_token_id=0, bos_token_id=1,
             eos_token_id=2, tie_word_embeddings=False)


# --- parts of layers; x [tokens, width]
def rms(x, weight=1.0, epsilon=1e-6):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer_norm(x, w, name, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    normed = centred / numpy.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon)
    return normed * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(x, w, name):
    return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)


def silu(x):
    return x / (1 + numpy.exp(-x))


def gelu(x):
    return x / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3)))


def rotate(x, base=1e4, length=None, adjacent=False, direction=1):
    """x [tokens, heads, elements]: the first `length` elements of a head turn with the position."""
    length = length or x.shape[-1]
    angles = direction * numpy.arange(len(x))[:, None] / base ** (numpy.arange(0, length, 2) / length)
    cos, sin = numpy.cos(angles)[:, None], numpy.sin(angles)[:, None]
    turned = x.copy()
    first, second = (slice(0, length, 2), slice(1, length, 2)) if adjacent else (
        slice(0, length // 2), slice(length // 2, length))
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., second] * cos + x[..., first] * sin
    return turned


def slopes(heads):
    """ALiBi: powers of two for a power of two of heads; the others take every second one of twice as many."""
    whole = 2 ** int(numpy.log2(heads))
    powers = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
    return numpy.array(powers + [2 ** (-4 * (2 * i + 1) / whole) for i in range(heads - whole)])


def attend(q, k, v, scale=None, biases=None, window=None):
    """Causal attention: q [tokens, heads, elements]; each head of k and v serves as many heads of q, which follow each
    other. window: the positions before its own that a token sees."""
    heads = q.shape[1]
    k, v = (numpy.repeat(each, heads // each.shape[1], 1) for each in (k, v))
    scores = numpy.einsum("ihd,jhd->hij", q, k) * (scale or q.shape[-1] ** -0.5)
    distances = numpy.arange(len(q))[:, None] - numpy.arange(len(k))
    if biases is not None:
        scores = scores - biases[:, None, None] * distances
    scores = numpy.where((distances < 0) | (distances > (window or len(q))), -numpy.inf, scores)
    scores = numpy.exp(scores - scores.max(-1, keepdims=True))
    return numpy.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), v).reshape(len(q), -1)


def by_heads(rows, heads):
    return rows.reshape(len(rows), heads, -1)


def parts(rows, *lengths):
    return numpy.split(rows, numpy.cumsum(lengths)[:-1], -1)


def gated(x, w, name, gate="gate_proj", up="up_proj", down="down_proj"):
    return linear(silu(linear(x, w, f"{name}.{gate}")) * linear(x, w, f"{name}.{up}"), w, f"{name}.{down}")


def fused_gated(x, w, fused, down):
    gate, up = numpy.split(linear(x, w, fused), 2, -1)
    return linear(silu(gate) * up, w, down)


def in_layers(count, shapes):
    """The shapes of each layer, from those with "{}" for its number."""
    return {name.format(i): shape for i in range(count) for name, shape in shapes.items()}


def normed(*names, width=32):
    return {f"{name}.{part}": [width] for name in names for part in ("weight", "bias")}


# --- llama and its kin: what they share is a function of the parts in which they differ
def llama(c, w, tokens, *, attention, feed_forward=None, norm=None, layers=None):
    norm = norm or (lambda x, name: rms(x, w[f"{name}.weight"], c["rms_norm_eps"]))
    feed_forward = feed_forward or (lambda x, name: gated(x, w, f"{name}.mlp"))
    x = w["model.embed_tokens.weight"][tokens]
    for i in layers or range(c["num_hidden_layers"]):
        name = f"model.layers.{i}"
        x = x + attention(norm(x, f"{name}.input_layernorm"), f"{name}.self_attn")
        x = x + feed_forward(norm(x, f"{name}.post_attention_layernorm"), name)
    return norm(x, "model.norm")[-1] @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def projections(x, w, c, name, kv_heads=None):
    heads = c["num_attention_heads"]
    kv_heads = kv_heads or c.get("num_key_value_heads", heads)
    return [by_heads(linear(x, w, f"{name}.{each}_proj"), count) for each, count in
            (("q", heads), ("k", kv_heads), ("v", kv_heads))]


def llama_shapes(c, attention, mlp="mlp", gate=True):
    width, wide = c["hidden_size"], c.get("intermediate_size")
    layer = {f"{name}.weight": [width] for name in ("input_layernorm", "post_attention_layernorm")} | attention
    layer |= {f"{mlp}.{name}.weight": shape for name, shape in (
        ("gate_proj", [wide, width]), ("up_proj", [wide, width]), ("down_proj", [width, wide]))
        if gate or name != "gate_proj"}
    ends = {"model.embed_tokens.weight": [64, width], "model.norm.weight": [width]}
    if not c["tie_word_embeddings"]:
        ends["lm_head.weight"] = [64, width]
    return ends | in_layers(c["num_hidden_layers"], {f"model.layers.{{}}.{name}": shape for name, shape in layer.items()})


def separate(width=32, q=32, k=16, bias=False):
    rows = {"q": q, "k": k, "v": k}
    shapes = {f"self_attn.{each}_proj.weight": [count, width] for each, count in rows.items()}
    shapes["self_attn.o_proj.weight"] = [width, q]
    if bias:
        shapes |= {f"self_attn.{each}_proj.bias": [count] for each, count in (rows | {"o": width}).items()}
    return shapes


def rotated_attention(c, w, adjacent=False, after=None):
    def attention(x, name):
        q, k, v = projections(x, w, c, name)
        q, k = (rotate(each, c.get("rope_theta", 1e4), adjacent=adjacent) for each in (q, k))
        if after:
            q, k = after(q, k, name)
        return linear(attend(q, k, v), w, f"{name}.o_proj")
    return attention


def baichuan(c, w, tokens):
    def attention(x, name):
        q, k, v = (by_heads(each, c["num_attention_heads"]) for each in
                   numpy.split(linear(x, w, f"{name}.W_pack"), 3, -1))
        if c["num_hidden_layers"] == 32:
            return linear(attend(rotate(q), rotate(k), v), w, f"{name}.o_proj")
        return linear(attend(q, k, v, biases=slopes(c["num_attention_heads"])), w, f"{name}.o_proj")
    return llama(c, w, tokens, attention=attention)


def baichuan_shapes(c):
    width = c["hidden_size"]
    return llama_shapes(c, {"self_attn.W_pack.weight": [3 * width, width], "self_attn.o_proj.weight": [width, width]})


def orion(c, w, tokens):
    return llama(c, w, tokens, attention=rotated_attention(c, w),
                 norm=lambda x, name: layer_norm(x, w, name, c["rms_norm_eps"]))


def orion_shapes(c):
    shapes = llama_shapes(c, separate(k=32))
    return shapes | {name.replace("weight", "bias"): shape for name, shape in shapes.items() if "norm" in name}


def plain_llama(c, w, tokens):
    return llama(c, w, tokens, attention=rotated_attention(c, w))


def maincoder(c, w, tokens):
    def after(q, k, name):
        return rms(q, w[f"{name}.q_norm.weight"]), rms(k, w[f"{name}.k_norm.weight"])
    return llama(c, w, tokens, attention=rotated_attention(c, w, True, after),
                 feed_forward=lambda x, name: gated(x, w, f"{name}.feed_forward"))


def maincoder_shapes(c):
    heads = {"self_attn.q_norm.weight": [8], "self_attn.k_norm.weight": [8]}
    return llama_shapes(dict(c, intermediate_size=c["intermediate_size_mlp"]), separate() | heads, "feed_forward")


def deci(c, w, tokens):
    """Layers may lack either block, or have a matrix in place of attention."""
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(c["num_hidden_layers"]):
        name = f"model.layers.{i}"
        if f"{name}.input_layernorm.weight" in w:
            seen = rms(x, w[f"{name}.input_layernorm.weight"])
            if f"{name}.self_attn.linear_attn.weight" in w:
                x = x + linear(seen, w, f"{name}.self_attn.linear_attn")
            else:
                q, k, v = projections(seen, w, c, f"{name}.self_attn", len(w[f"{name}.self_attn.k_proj.weight"]) // 8)
                x = x + linear(attend(rotate(q), rotate(k), v), w, f"{name}.self_attn.o_proj")
        if f"{name}.post_attention_layernorm.weight" in w:
            x = x + gated(rms(x, w[f"{name}.post_attention_layernorm.weight"]), w, f"{name}.mlp")
    return rms(x, w["model.norm.weight"])[-1] @ w["lm_head.weight"].T


def deci_shapes(c):
    if "block_configs" not in c:
        shapes = llama_shapes(c, separate())
        return {name: [8 * c["num_key_value_heads_per_layer"][int(name.split(".")[2])], 32]
                if "k_proj" in name or "v_proj" in name else shape for name, shape in shapes.items()}
    shapes = llama_shapes(dict(c, num_hidden_layers=0), {})
    for i, block in enumerate(c["block_configs"]):
        layer = {}
        group = block["attention"]["n_heads_in_group"]
        if block["attention"]["replace_with_linear"]:
            layer["self_attn.linear_attn.weight"] = [32, 32]
        elif group:
            layer |= separate(k=32 // group)
        if layer:
            layer["input_layernorm.weight"] = [32]
        if block["ffn"]["ffn_mult"]:
            wide = -(-int(2 * block["ffn"]["ffn_mult"] * 32 / 3) // 256) * 256
            layer |= {"mlp.gate_proj.weight": [wide, 32], "mlp.up_proj.weight": [wide, 32],
                      "mlp.down_proj.weight": [32, wide], "post_attention_layernorm.weight": [32]}
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def block(group, mult, **attention):
    return dict(attention=dict(dict(n_heads_in_group=group, no_op=False, replace_with_linear=False, window_length=None),
                               **attention), ffn=dict(ffn_mult=mult, no_op=mult is None, replace_with_linear=False))


def nanbeige(c, w, tokens):
    """The layers run several times, with the last norm after each time."""
    attention = rotated_attention(c, w)
    norm = lambda x, name: rms(x, w[f"{name}.weight"])
    x = w["model.embed_tokens.weight"][tokens]
    for turn in range(c["num_loops"]):
        for i in range(c["num_hidden_layers"]):
            name = f"model.layers.{i}"
            x = x + attention(norm(x, f"{name}.input_layernorm"), f"{name}.self_attn")
            x = x + gated(norm(x, f"{name}.post_attention_layernorm"), w, f"{name}.mlp")
        if not c["skip_loop_final_norm"] or turn + 1 == c["num_loops"]:
            x = norm(x, "model.norm")
    return x[-1] @ w["lm_head.weight"].T


def plm(c, w, tokens):
    """Keys and values from a few latent elements; rotated elements are adjacent, and the rotated key is that of all heads."""
    heads, plain, turned = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]

    def attention(x, name):
        q = by_heads(linear(x, w, f"{name}.q_proj"), heads)
        latent, key = parts(linear(x, w, f"{name}.kv_a_proj_with_mqa"), c["kv_lora_rank"], turned)
        both = linear(rms(latent, w[f"{name}.kv_a_layernorm.weight"]), w, f"{name}.kv_b_proj")
        k, v = parts(by_heads(both, heads), plain, c["v_head_dim"])
        key = numpy.repeat(rotate(by_heads(key, 1), adjacent=True), heads, 1)
        q = numpy.concatenate([q[..., :plain], rotate(q[..., plain:], adjacent=True)], -1)
        return linear(attend(q, numpy.concatenate([k, key], -1), v), w, f"{name}.o_proj")

    def feed_forward(x, name):
        return linear(numpy.maximum(linear(x, w, f"{name}.mlp.up_proj"), 0) ** 2, w, f"{name}.mlp.down_proj")
    return llama(c, w, tokens, attention=attention, feed_forward=feed_forward)


def plm_shapes(c):
    attention = {"q_proj": [4 * 12, 32], "kv_a_proj_with_mqa": [16 + 4, 32], "kv_b_proj": [4 * (8 + 6), 16],
                 "o_proj": [32, 4 * 6], "kv_a_layernorm": [16]}
    return llama_shapes(c, {f"self_attn.{name}.weight": shape for name, shape in attention.items()}, gate=False)


def ternary(matrix):
    """BitNet: each element becomes -1, 0 or 1, times the mean of the absolute values."""
    scale = max(numpy.abs(matrix).mean(), 1e-5)
    return numpy.clip(numpy.round(matrix / scale), -1, 1) * scale


def bitnet(c, w, tokens):
    inner = ("attn_sub_norm", "ffn_sub_norm") if c["hidden_act"] == "relu2" else ("inner_attn_ln", "ffn_layernorm")
    w = {name: ternary(each) if name.endswith("_proj.weight") else each for name, each in w.items()}

    def attention(x, name):
        q, k, v = projections(x, w, c, name)
        return linear(rms(attend(rotate(q), rotate(k), v), w[f"{name}.{inner[0]}.weight"]), w, f"{name}.o_proj")

    def feed_forward(x, name):
        gate = linear(x, w, f"{name}.mlp.gate_proj")
        gate = numpy.maximum(gate, 0) ** 2 if c["hidden_act"] == "relu2" else silu(gate)
        rows = rms(gate * linear(x, w, f"{name}.mlp.up_proj"), w[f"{name}.mlp.{inner[1]}.weight"])
        return linear(rows, w, f"{name}.mlp.down_proj")
    return llama(c, w, tokens, attention=attention, feed_forward=feed_forward)


def bitnet_shapes(c):
    inner = ("attn_sub_norm", "ffn_sub_norm") if c["hidden_act"] == "relu2" else ("inner_attn_ln", "ffn_layernorm")
    return llama_shapes(c, separate() | {f"self_attn.{inner[0]}.weight": [32], f"mlp.{inner[1]}.weight": [48]})


LLAMAS = {
    "baichuan-7b": ("BaiChuanForCausalLM", dict(num_hidden_layers=32), baichuan, baichuan_shapes),
    "baichuan-13b": ("BaichuanForCausalLM", dict(num_hidden_layers=40, num_attention_heads=6, hidden_size=24,
                                                 max_position_embeddings=None, model_max_length=64),
                     baichuan, baichuan_shapes),
    "xverse": ("XverseForCausalLM", dict(num_key_value_heads=2), plain_llama, lambda c: llama_shapes(c, separate())),
    "orion": ("OrionForCausalLM", dict(rms_norm_eps=1e-5, max_sequence_length=64), orion, orion_shapes),
    "pangu-embedded": ("PanguEmbeddedForCausalLM", dict(num_key_value_heads=2, bias=True, rope_theta=16e6), plain_llama,
                       lambda c: llama_shapes(c, separate(bias=True))),
    "maincoder": ("MaincoderForCausalLM", dict(
        num_key_value_heads=2, head_dim=8, intermediate_size_mlp=40, use_qk_norm=True, tie_word_embeddings=True,
        rope_theta=1e6), maincoder, maincoder_shapes),
    "deci-7b": ("DeciLMForCausalLM", dict(num_key_value_heads_per_layer=[1, 2, 4]), deci, deci_shapes),
    "nemotron-nas": ("DeciLMForCausalLM", dict(num_hidden_layers=5, num_key_value_heads=None, intermediate_size=None,
                                               block_configs=[
        block(2, 1.5), block(None, 0.5, no_op=True), block(None, 1.5, replace_with_linear=True),
        block(None, None, no_op=True), block(4, 15.0)]), deci, deci_shapes),
    "nanbeige": ("NanbeigeForCausalLM", dict(num_key_value_heads=2, num_loops=2, skip_loop_final_norm=False), nanbeige,
                 lambda c: llama_shapes(c, separate())),
    "nanbeige-skipping": ("NanbeigeForCausalLM", dict(num_key_value_heads=2, num_loops=3, skip_loop_final_norm=True),
                          nanbeige, lambda c: llama_shapes(c, separate())),
    "plm": ("PLMForCausalLM", dict(num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=None, qk_nope_head_dim=8,
                                   qk_rope_head_dim=4, v_head_dim=6, hidden_act="relu2", tie_word_embeddings=True), plm,
            plm_shapes),
    "bitnet": ("BitnetForCausalLM", dict(num_key_value_heads=2, weight_bits=1, input_bits=8), bitnet, bitnet_shapes),
    "bitnet-2b": ("BitNetForCausalLM", dict(num_key_value_heads=2, hidden_act="relu2", tie_word_embeddings=True), bitnet,
                  bitnet_shapes),
}
