"""Encoders whose code is in their folders and that no class of transformers computes, in float64 by their published
definitions: the models of MODELS, which make_expected.py writes."""
import math

import numpy as np

erf = np.vectorize(math.erf)
SIZES = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, vocab_size=64, intermediate_size=48)
WIDTH, LAYERS, HEADS, INNER, LENGTH = 32, 3, 4, 48, 8


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


class Weights(dict):
    """Tensors by name, in float64."""

    def linear(self, name, x):
        y = x @ self[name + ".weight"].T
        return y + self[name + ".bias"] if name + ".bias" in self else y

    def layer_norm(self, name, x, epsilon):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        return scaled * self[name + ".weight"] + self[name + ".bias"]


def attention(q, k, v, bias=0.0):
    """q, k, v: [heads, positions, length]; every position sees all."""
    weights = softmax(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1]) + bias)
    return (weights @ v).swapaxes(0, 1).reshape(q.shape[1], -1)


def heads_of(rows):
    return rows.reshape(len(rows), HEADS, LENGTH).swapaxes(0, 1)


def angles(positions, base):
    return np.arange(positions)[:, None] / base ** (np.arange(0, LENGTH, 2) / LENGTH)


def rotate_halves(x, base):
    at = angles(x.shape[1], base)
    left, right = x[..., :LENGTH // 2], x[..., LENGTH // 2:]
    return np.concatenate([left * np.cos(at) - right * np.sin(at), right * np.cos(at) + left * np.sin(at)], -1)


def rotate_pairs(x, base):
    at, turned = angles(x.shape[1], base), np.empty_like(x)
    even, odd = x[..., ::2], x[..., 1::2]
    turned[..., ::2], turned[..., 1::2] = even * np.cos(at) - odd * np.sin(at), odd * np.cos(at) + even * np.sin(at)
    return turned


def slopes(heads):
    """Of ALiBi, for numbers of heads that are no power of two, too."""
    whole = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
    return np.array(first + [2 ** (-4 * (2 * i + 1) / whole) for i in range(heads - whole)])


def layer_norm_shapes(*names):
    return {f"{name}.{part}": [WIDTH] for name in names for part in ("weight", "bias")}


def linear_shapes(name, out, width=WIDTH, bias=True):
    return {f"{name}.weight": [out, width]} | ({f"{name}.bias": [out]} if bias else {})


# --- Jina 2: BERT with distances in place of positions, and a gate. The models for code have four norms more.
def jina_shapes(is_code):
    shapes = {"embeddings.word_embeddings.weight": [64, WIDTH], "embeddings.token_type_embeddings.weight": [2, WIDTH],
              **layer_norm_shapes("embeddings.LayerNorm"), **linear_shapes("pooler.dense", WIDTH)}
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}."
        for each in ("query", "key", "value"):
            shapes |= linear_shapes(f"{layer}attention.self.{each}", WIDTH)
        shapes |= linear_shapes(f"{layer}attention.output.dense", WIDTH)
        shapes |= layer_norm_shapes(f"{layer}attention.output.LayerNorm")
        gate, down = ("up_gated_layer", "down_layer") if is_code else ("gated_layers", "wo")
        shapes |= linear_shapes(f"{layer}mlp.{gate}", 2 * INNER, bias=False) | linear_shapes(f"{layer}mlp.{down}", WIDTH, INNER)
        shapes |= layer_norm_shapes(*([f"{layer}attention.self.layer_norm_q", f"{layer}attention.self.layer_norm_k",
                                       f"{layer}layer_norm_1", f"{layer}layer_norm_2"] if is_code else
                                      [f"{layer}mlp.layernorm"]))
    if is_code:
        shapes |= {"cls.predictions.bias": [64]} | linear_shapes("cls.predictions.transform.dense", WIDTH)
    return shapes


def jina(w, tokens, is_code):
    epsilon = 1e-12
    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.token_type_embeddings.weight"][0]
    x = w.layer_norm("embeddings.LayerNorm", x, epsilon)
    at = np.arange(len(tokens))
    bias = -slopes(HEADS)[:, None, None] * abs(at[:, None] - at)
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}."
        q, k, v = (w.linear(f"{layer}attention.self.{each}", x) for each in ("query", "key", "value"))
        if is_code:
            q = w.layer_norm(f"{layer}attention.self.layer_norm_q", q, epsilon)
            k = w.layer_norm(f"{layer}attention.self.layer_norm_k", k, epsilon)
        seen = w.linear(f"{layer}attention.output.dense", attention(heads_of(q), heads_of(k), heads_of(v), bias))
        seen = w.layer_norm(f"{layer}attention.output.LayerNorm", seen + x, epsilon)
        if is_code:
            seen = w.layer_norm(f"{layer}layer_norm_1", seen + x, epsilon)
            up, gate = np.split(w.linear(f"{layer}mlp.up_gated_layer", seen), 2, -1)
            inner = w.linear(f"{layer}mlp.down_layer", up * gelu(gate))
            x = w.layer_norm(f"{layer}layer_norm_2", seen + inner, epsilon)
        else:
            gate, up = np.split(w.linear(f"{layer}mlp.gated_layers", seen), 2, -1)
            x = w.layer_norm(f"{layer}mlp.layernorm", w.linear(f"{layer}mlp.wo", gelu(gate) * up) + seen, epsilon)
    return x.mean(0)


# --- NeoBERT: Llama's layers without a mask; q, k and v of each head follow each other.
def neo_bert_shapes(head):
    inner = (INNER * 2 // 3 + 7) // 8 * 8
    shapes = {"model.encoder.weight": [64, WIDTH], "model.layer_norm.weight": [WIDTH]} | head
    for i in range(LAYERS):
        layer = f"model.transformer_encoder.{i}."
        shapes |= {layer + "attention_norm.weight": [WIDTH], layer + "ffn_norm.weight": [WIDTH],
                   layer + "qkv.weight": [3 * WIDTH, WIDTH], layer + "wo.weight": [WIDTH, WIDTH],
                   layer + "ffn.w12.weight": [2 * inner, WIDTH], layer + "ffn.w3.weight": [WIDTH, inner]}
    return shapes


def neo_bert(w, tokens):
    x = w["model.encoder.weight"][tokens]
    for i in range(LAYERS):
        layer = f"model.transformer_encoder.{i}."
        rows = w.linear(layer + "qkv", rms_norm(x, w[layer + "attention_norm.weight"], 1e-5))
        q, k, v = np.split(rows.reshape(len(tokens), HEADS, 3 * LENGTH).swapaxes(0, 1), 3, -1)
        x = x + w.linear(layer + "wo", attention(rotate_pairs(q, 1e4), rotate_pairs(k, 1e4), v))
        gate, up = np.split(w.linear(layer + "ffn.w12", rms_norm(x, w[layer + "ffn_norm.weight"], 1e-5)), 2, -1)
        x = x + w.linear(layer + "ffn.w3", silu(gate) * up)
    return rms_norm(x, w["model.layer_norm.weight"], 1e-5)[0]  # its embedding is the first token's


def neo_bert_labels(w, tokens):
    return w.linear("classifier", np.tanh(w.linear("dense", neo_bert(w, tokens))))


# --- Nomic's BERT with experts in every second layer; one bias is added to their sum.
def nomic_shapes():
    shapes = {"embeddings.word_embeddings.weight": [64, WIDTH], "embeddings.token_type_embeddings.weight": [1, WIDTH],
              **layer_norm_shapes("emb_ln")}
    for i in range(LAYERS):
        layer = f"encoder.layers.{i}."
        shapes |= linear_shapes(layer + "attn.Wqkv", 3 * WIDTH) | linear_shapes(layer + "attn.out_proj", WIDTH)
        shapes |= layer_norm_shapes(layer + "norm1", layer + "norm2")
        if i % 2:
            shapes |= {layer + "mlp.experts.bias": [WIDTH], layer + "mlp.router.layer.weight": [4, WIDTH],
                       layer + "mlp.experts.mlp.w1": [4 * INNER, WIDTH], layer + "mlp.experts.mlp.w2": [4 * INNER, WIDTH]}
        else:
            shapes |= linear_shapes(layer + "mlp.fc1", INNER) | linear_shapes(layer + "mlp.fc2", WIDTH, INNER)
    return shapes


def nomic_experts(w, layer, x):
    chances = softmax(x @ w[layer + "router.layer.weight"].T)
    into, out = (w[f"{layer}experts.mlp.{each}"].reshape(4, INNER, WIDTH) for each in ("w1", "w2"))
    result = np.tile(w[layer + "experts.bias"], (len(x), 1))
    for row, chance in enumerate(chances):
        for expert in np.argsort(-chance)[:2]:
            result[row] += chance[expert] * (gelu(x[row] @ into[expert].T) @ out[expert])
    return result


def nomic(w, tokens):
    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.token_type_embeddings.weight"][0]
    x = w.layer_norm("emb_ln", x, 1e-5)
    for i in range(LAYERS):
        layer = f"encoder.layers.{i}."
        q, k, v = (heads_of(each) for each in np.split(w.linear(layer + "attn.Wqkv", x), 3, -1))
        seen = w.linear(layer + "attn.out_proj", attention(rotate_halves(q, 1e4), rotate_halves(k, 1e4), v))
        x = w.layer_norm(layer + "norm1", seen + x, 1e-5)
        inner = (nomic_experts(w, layer + "mlp.", x) if i % 2 else
                 w.linear(layer + "mlp.fc2", gelu(w.linear(layer + "mlp.fc1", x))))
        x = w.layer_norm(layer + "norm2", inner + x, 1e-5)
    return x.mean(0)


JINA = dict(SIZES, hidden_act="gelu", position_embedding_type="alibi", feed_forward_type="geglu", emb_pooler="mean",
            layer_norm_eps=1e-12, type_vocab_size=2, max_position_embeddings=64, model_type="bert")
NEO_BERT = dict(SIZES, norm_eps=1e-5, max_length=64, hidden_act="SwiGLU", rope=True, rms_norm=True, ngpt=False, dim_head=8,
                model_type="neobert")
NOMIC = dict(n_embd=32, n_layer=3, n_head=4, n_inner=48, vocab_size=64, n_positions=64, max_trained_positions=64,
             activation_function="gelu", layer_norm_epsilon=1e-5, rotary_emb_base=10000, rotary_emb_fraction=1.0,
             rotary_emb_interleaved=False, rotary_emb_scale_base=None, prenorm=False, causal=False, type_vocab_size=1,
             qkv_proj_bias=True, mlp_fc1_bias=True, mlp_fc2_bias=True, moe_every_n_layers=2, num_experts=4, moe_top_k=2,
             moe_normalize_expert_weights=False, expert_choice_router=False, num_shared_experts=0, model_type="nomic_bert")

# By name: the class in config.json, its settings, the shapes of its tensors, what it computes of weights and tokens.
MODELS = {
    "bert-jina": ("JinaBertModel", JINA, jina_shapes(False), lambda w, tokens: jina(w, tokens, False)),
    "bert-jina-code": ("JinaBertForMaskedLM", JINA, jina_shapes(True), lambda w, tokens: jina(w, tokens, True)),
    "neo-bert": ("NeoBERTLMHead", NEO_BERT, neo_bert_shapes(linear_shapes("decoder", 64)), neo_bert),
    "neo-bert-ranker": ("NeoBERTForSequenceClassification", NEO_BERT, neo_bert_shapes(
        linear_shapes("dense", WIDTH) | linear_shapes("classifier", 2)), neo_bert_labels),
    "nomic-bert-moe": ("NomicBertModel", NOMIC, nomic_shapes(), nomic),
}


def expected(name, value, tokens):
    """The entry of expected.json. value: makes a tensor of its name and shape."""
    folder_class, config, shapes, compute = MODELS[name]
    weights = Weights({each: value(each, shape).astype(np.float64) for each, shape in shapes.items()})
    return dict(config=dict(config, architectures=[folder_class]), tensors=dict(sorted(shapes.items())), tokens=tokens,
                expected=[float(f"{x:.7g}") for x in compute(weights, tokens).tolist()])
