"""RWKV 6 and 7, alone and in the layers of Qwen 2, in float64, from their published definitions."""
import torch
from torch.nn.functional import layer_norm, normalize, relu, silu, softplus

from published_parts import USUAL, decoder, gated, heads_of, layers_of


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


ARWKV = dict(USUAL, architectures=["RwkvHybridForCausalLM"], head_size=8, head_size_divisor=8, num_wkv_heads=4,
             wkv_layers="full", wkv_version=7)
MODELS = {
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
}
