"""Models with experts, recurrence or diffusion whose code is not in transformers, in float64, from their published
definitions. A definition asks for its tensors by name and shape, and these are the tensors of the folder."""
import math

import torch
from torch.nn.functional import layer_norm, normalize, relu, silu, softplus

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


def before(x):
    """The row before each, and zeros before the first."""
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def head_norm(at, x, name, heads):
    rows = layer_norm(x.reshape(len(x), heads, -1), (x.shape[-1] // heads,), eps=64e-5).flatten(1)
    return rows * at(name + ".weight", x.shape[-1]) + at(name + ".bias", x.shape[-1])


def decayed_mixes(at, x, names, rank):
    """RWKV 6: x with parts of the row before it, as the row itself decides."""
    width, change = x.shape[-1], before(x) - x
    by = torch.tanh((x + change * at("time_maa_x", 1, 1, width)[0]) @ at("time_maa_w1", width, 5 * rank))
    parts = torch.einsum("tmr,mrc->mtc", by.reshape(len(x), 5, rank), at("time_maa_w2", 5, rank, width))
    return [x + change * (at(f"time_maa_{name}", 1, 1, width)[0] + part) for name, part in zip(names, parts)]


def decay_of(at, x, rank):
    inner = torch.tanh(x @ at("time_decay_w1", x.shape[-1], rank)) @ at("time_decay_w2", rank, x.shape[-1])
    return torch.exp(-torch.exp(at("time_decay", 1, 1, x.shape[-1])[0] + inner))


def rwkv6(f, c, tokens):
    width, length, wide = c["hidden_size"], c["head_size"], c["hidden_size"] * 7 // 2 // 32 * 32
    heads = width // length
    x = f("rwkv.embeddings.weight", c["vocab_size"], width)[tokens]
    x = f.layer_norm(x, "rwkv.blocks.0.pre_ln")
    for i in range(c["num_hidden_layers"]):
        block = f.within(f"rwkv.blocks.{i}.")
        at, h = block.within("attention."), block.layer_norm(x, "ln1")
        w, k, v, r, g = decayed_mixes(at, h, "wkvrg", 8)
        decay = decay_of(at, w, 8).reshape(-1, heads, length)
        k, v, r = (at.linear(each, name, width).reshape(-1, heads, length)
                   for each, name in ((k, "key"), (v, "value"), (r, "receptance")))
        first, state, read = at("time_faaaa", heads, length), torch.zeros(heads, length, length).double(), []
        for t in range(len(x)):
            given = k[t][:, :, None] * v[t][:, None]
            read.append(torch.einsum("hk,hkv->hv", r[t], state + first[:, :, None] * given))
            state = decay[t][:, :, None] * state + given
        y = head_norm(at, torch.stack(read).flatten(1), "ln_x", heads) * silu(at.linear(g, "gate", width))
        smaller = 0.5**(i // c["rescale_every"])  # so that sums stay within float16
        x = x + at.linear(y, "output", width) * smaller
        at, h = block.within("feed_forward."), block.layer_norm(x, "ln2")
        k, r = (h + (before(h) - h) * at("time_maa_" + name, 1, 1, width)[0] for name in "kr")
        inner = at.linear(relu(at.linear(k, "key", wide)).square(), "value", width)
        x = x + torch.sigmoid(at.linear(r, "receptance", width)) * inner * smaller
        x = x / 2 if (i + 1) % c["rescale_every"] == 0 else x
    return f.linear(f.layer_norm(x, "rwkv.ln_out"), "head", c["vocab_size"])


def qwen_with_rwkv6(f, c, tokens):
    heads, groups, length = heads_of(c)

    def attend(at, x, i):
        r, k, v, w, g = decayed_mixes(at, x, "rkvwg", 8)
        q, k, v = (at.linear(each, name, count * length, True).reshape(-1, count, length)
                   for each, name, count in ((r, "q_proj", heads), (k, "k_proj", groups), (v, "v_proj", groups)))
        k, v = (each.repeat_interleave(heads // groups, 1) for each in (k, v))
        decay = decay_of(at, w, 8).reshape(-1, heads, length)
        k, state, read = k * (1 - decay), torch.zeros(heads, length, length).double(), []
        for t in range(len(x)):
            state = decay[t][:, :, None] * state + k[t][:, :, None] * v[t][:, None]
            read.append(torch.einsum("hk,hkv->hv", q[t] * length**-0.5, state))
        gate = torch.sigmoid(at.linear(g, "gate", heads * length))
        return at.linear(torch.stack(read).flatten(1) * gate, "o_proj", x.shape[-1])

    return decoder(f, c, tokens, layers_of(
        c, attend, lambda at, x, i: gated(at.within("mlp."), x, c["intermediate_size"])))


def moving(r, decay, k, v, removed, rate):
    """RWKV 7: each row removes from the state what it holds for one key, and gives it a value for another."""
    state, read = torch.zeros(k.shape[1], k.shape[2], v.shape[2]).double(), []
    for t in range(len(k)):
        held = torch.einsum("hk,hkv->hv", -removed[t], state)
        state = (decay[t][:, :, None] * state + (removed[t] * rate[t])[:, :, None] * held[:, None]
                 + k[t][:, :, None] * v[t][:, None])
        read.append(torch.einsum("hk,hkv->hv", r[t], state))
    return torch.stack(read)


def rwkv7_mix(at, h, first_v, heads, low, names, parts, normed_name):
    """Time mixing; `low` gives the product with two narrow matrices, `parts` the rows that are mixed by their letters."""
    r_name, k_name, v_name, o_name = names
    width = h.shape[-1]
    split = lambda rows: rows.reshape(len(rows), heads, -1)
    r, k, v = (at.linear(parts[letter], name, width) for letter, name in zip("rkv", names))
    decay = torch.exp(-torch.exp(-softplus(-low("w", parts["w"], torch.tanh)) - 0.5))
    v_own = v
    if first_v is not None:
        v = v + (first_v - v) * torch.sigmoid(low("v", parts["v"]))
    rate = torch.sigmoid(low("a", parts["a"]))
    vector = lambda name: at(name, *((1, 1, width) if names[0] == "receptance" else (width,))).flatten()
    removed = normalize(split(k * vector("k_k")), dim=-1)
    k = k * (1 + (rate - 1) * vector("k_a"))
    y = moving(split(r), split(decay), split(k), split(v), removed, split(rate)).flatten(1)
    if normed_name:
        y = head_norm(at, y, normed_name, heads)
    own = (split(r) * split(k) * at("r_k", heads, width // heads)).sum(-1, keepdim=True) * split(v)
    y = y + own.flatten(1)
    if "g" in parts:
        y = y * low("g", parts["g"], torch.sigmoid)
    return at.linear(y, o_name, width), v_own if first_v is None else first_v


def rwkv7(f, c, tokens):
    width, heads = c["hidden_size"], c["hidden_size"] // c["head_dim"]
    ranks = dict(w=c["decay_low_rank_dim"], a=c["a_low_rank_dim"], v=c["v_low_rank_dim"], g=c["gate_low_rank_dim"])
    first = None
    x = f.layer_norm(f("model.embeddings.weight", c["vocab_size"], width)[tokens], "model.layers.0.pre_norm", c["norm_eps"])
    for i in range(c["num_hidden_layers"]):
        block = f.within(f"model.layers.{i}.")
        at, h = block.within("attn."), block.layer_norm(x, "attn_norm", c["norm_eps"])
        parts = {letter: h + (before(h) - h) * at("x_" + letter, 1, 1, width)[0] for letter in "rwkvag"}
        low = lambda letter, rows, act=lambda y: y: at.linear(
            act(at.linear(rows, letter + "_lora.lora.0", ranks[letter])), letter + "_lora.lora.2", width, letter != "g")
        y, first = rwkv7_mix(at, h, first, heads, low, ("r_proj", "k_proj", "v_proj", "o_proj"), parts, "g_norm")
        x = x + y
        at, h = block.within("ffn."), block.layer_norm(x, "ffn_norm", c["norm_eps"])
        h = h + (before(h) - h) * at("x_k", width)
        x = x + at.linear(relu(at.linear(h, "key", c["intermediate_size"])).square(), "value", width)
    return f.linear(f.layer_norm(x, "model.norm", c["norm_eps"]), "lm_head", c["vocab_size"])


def qwen_with_rwkv7(f, c, tokens):
    width, heads, kept = c["hidden_size"], c["num_wkv_heads"], {}
    ranks = dict(w=8, a=8, v=4, g=6)

    def attend(at, h, i):
        at = at.within("time_mixer.")
        letters = "rwkvag" if c["wkv_has_gate"] else "rwkva"
        parts = {letter: h + (before(h) - h) * at("x_" + letter, 1, 1, width)[0] for letter in letters}

        def low(letter, rows, act=lambda y: y):
            inner = act(rows @ at(letter + "1", width, ranks[letter])) @ at(letter + "2", ranks[letter], width)
            return inner if letter == "g" else inner + at(letter + "0", 1, 1, width)[0]

        if i == 0:
            low("v", h)  # the first layer's matrices are there and not used
        y, kept["v"] = rwkv7_mix(at, h, kept.get("v"), heads, low, ("receptance", "key", "value", "output"), parts,
                                 "ln_x" if c["wkv_has_group_norm"] else None)
        return y

    return decoder(f, c, tokens, layers_of(
        c, attend, lambda at, x, i: gated(at.within("mlp."), x, c["intermediate_size"])))


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


EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
SMALLTHINKER = dict(USUAL, architectures=["SmallThinkerForCausalLM"], head_dim=16, moe_enable_early_router=True,
                    moe_enable_secondary_experts=False, moe_ffn_hidden_size=24, moe_num_active_primary_experts=2,
                    moe_num_primary_experts=4, norm_topk_prob=True, sliding_window_size=4096, rope_theta=1.5e6)
ARWKV = dict(USUAL, architectures=["RwkvHybridForCausalLM"], head_size=8, head_size_divisor=8, num_wkv_heads=4,
             wkv_layers="full", wkv_version=7)
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
    "rwkv6": (rwkv6, dict(
        architectures=["Rwkv6ForCausalLM"], attention_hidden_size=32, head_size=8, head_size_divisor=8, hidden_size=32,
        intermediate_size=None, layer_norm_epsilon=1e-5, num_hidden_layers=4, rescale_every=2, vocab_size=64,
        tie_word_embeddings=False)),
    "rwkv7": (rwkv7, dict(
        architectures=["RWKV7ForCausalLM"], a_low_rank_dim=8, attn=None, decay_low_rank_dim=8, gate_low_rank_dim=6,
        head_dim=8, hidden_act="sqrelu", hidden_ratio=4.0, hidden_size=32, intermediate_size=128,
        max_position_embeddings=64, norm_bias=True, norm_eps=8e-5, norm_first=True, num_heads=4, num_hidden_layers=4,
        tie_word_embeddings=False, v_low_rank_dim=4, value_dim=[32] * 4, vocab_size=64)),
    "rwkv6qwen2": (qwen_with_rwkv6, dict(USUAL, architectures=["RWKV6Qwen2ForCausalLM"], attention_bias=True)),
    "arwkv7": (qwen_with_rwkv7, dict(ARWKV, wkv_has_gate=True, wkv_has_group_norm=True)),
    "arwkv7-plain": (qwen_with_rwkv7, dict(ARWKV, wkv_has_gate=False, wkv_has_group_norm=False)),
    "step35": (step35, dict(
        USUAL, architectures=["Step3p5ForCausalLM"], head_dim=16, num_attention_groups=2, moe_num_experts=4, moe_top_k=2,
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
}


def expected(name, value, tokens):
    """What make_expected.py stores: config.json, the tensors' shapes, the tokens and the last token's logits."""
    forward, config = MODELS[name]
    config = {key: each for key, each in config.items() if key != "num_key_value_heads" or "num_attention_groups" not in config}
    shapes = {}
    row = forward(Folder(value, shapes), config, torch.tensor(tokens))[-1]
    return dict(config=config, tensors=dict(sorted(shapes.items())), tokens=tokens,
                expected=[float(f"{x:.7g}") for x in row.tolist()])
