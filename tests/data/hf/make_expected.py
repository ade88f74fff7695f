#!/usr/bin/env python3
"""Writes expected.json beside this file: what transformers computes for tiny models of each architecture.

usage: make_expected.py [NAME...]     (default: all; needs PyPI's torch and transformers; written with torch 2.15 and transformers 5.23)

A model's weights are not stored. value() makes them from the tensor's name, and tests/llm/convert_test.cpp does the same.
Stored are config.json, the names and shapes of the tensors, some tokens and, in float64, the logits of the last token, of
a classifier those of the labels, or the mean of the hidden states of a model without logits."""
import copy
import json
import pathlib
import re
import sys

import numpy
import torch
import transformers as t

import published_encoders
import published_mixtures
import published_parts
from published_decoders import PUBLISHED, published
from transformers_models import COMMON, GPT, MAMBA, MODELS, ROUTED, TOKENS

# Models whose code is in their folders, computed by classes with the same layers: the name of the folder's class, changes
# of config.json, and the folder's tensors as (pattern of the class's name, the folder's name). "{1}" and "{2}" stand for
# the numbers; several patterns with one name are stacked in that order.
QKV = tuple(f"model.layers.{{1}}.self_attn.{each}_proj.weight" for each in "qkv")
LING = [("model.embed_tokens.weight", "model.word_embeddings.weight"),
        (QKV, "model.layers.{1}.attention.query_key_value.weight"),
        ("model.layers.{1}.self_attn.o_proj.weight", "model.layers.{1}.attention.dense.weight"),
        ("model.layers.{1}.self_attn.q_norm.weight", "model.layers.{1}.attention.query_layernorm.weight"),
        ("model.layers.{1}.self_attn.k_norm.weight", "model.layers.{1}.attention.key_layernorm.weight"),
        ("model.layers.{1}.mlp.gate.e_score_correction_bias", "model.layers.{1}.mlp.gate.expert_bias")]
JINA_MATRICES = ["embeddings.word_embeddings", "embeddings.token_type_embeddings", "pooler.dense",
                 *[f"encoder.layers.{{1}}.{each}" for each in ("mixer.Wqkv", "mixer.out_proj", "mlp.fc1", "mlp.fc2")]]
FOREIGN = {
    "bailingmoe": ("BailingMoeForCausalLM", dict(
        num_experts=4, num_experts_per_tok=2, num_shared_experts=2, norm_topk_prob=True, first_k_dense_replace=0,
        norm_head=False), LING, (t.Ernie4_5_MoeForCausalLM, t.Ernie4_5_MoeConfig, dict(
            moe_num_experts=4, moe_k=2, moe_num_shared_experts=2, moe_intermediate_size=24, moe_layer_start_index=0))),
    "bailingmoe2": ("BailingMoeV2ForCausalLM", dict(
        num_experts=8, num_shared_experts=1, partial_rotary_factor=0.5, score_function="sigmoid", use_qk_norm=True), LING, (
            t.Glm4MoeForCausalLM, t.Glm4MoeConfig, dict(
                ROUTED, n_routed_experts=8, n_group=4, topk_group=2, use_qk_norm=True, norm_topk_prob=True,
                routed_scaling_factor=2.5))),
    "sarvam": ("SarvamMoEForCausalLM", dict(
        num_experts=4, num_shared_experts=1, score_function="sigmoid", use_qk_norm=True), LING, (
            t.Glm4MoeForCausalLM, t.Glm4MoeConfig, dict(
                ROUTED, use_qk_norm=True, norm_topk_prob=True, routed_scaling_factor=2.5,
                rope_parameters=dict(rope_type="default", rope_theta=8e6, partial_rotary_factor=1.0)))),
    "internlm2": ("InternLM2ForCausalLM", {}, [
        ("model.embed_tokens.weight", "model.tok_embeddings.weight"), ("lm_head.weight", "output.weight"),
        (QKV, "model.layers.{1}.attention.wqkv.weight"),
        ("model.layers.{1}.self_attn.o_proj.weight", "model.layers.{1}.attention.wo.weight"),
        ("model.layers.{1}.mlp.gate_proj.weight", "model.layers.{1}.feed_forward.w1.weight"),
        ("model.layers.{1}.mlp.up_proj.weight", "model.layers.{1}.feed_forward.w3.weight"),
        ("model.layers.{1}.mlp.down_proj.weight", "model.layers.{1}.feed_forward.w2.weight"),
        ("model.layers.{1}.input_layernorm.weight", "model.layers.{1}.attention_norm.weight"),
        ("model.layers.{1}.post_attention_layernorm.weight", "model.layers.{1}.ffn_norm.weight"),
    ], (t.LlamaForCausalLM, t.LlamaConfig, dict(tie_word_embeddings=False))),
    "exaone": ("ExaoneForCausalLM", dict(num_layers=4, activation_function="silu", layer_norm_epsilon=1e-6), [
        ("model.embed_tokens.weight", "transformer.wte.weight"), ("model.norm.weight", "transformer.ln_f.weight"),
        ("model.layers.{1}.self_attn.q_proj.weight", "transformer.h.{1}.attn.attention.q_proj.weight"),
        ("model.layers.{1}.self_attn.k_proj.weight", "transformer.h.{1}.attn.attention.k_proj.weight"),
        ("model.layers.{1}.self_attn.v_proj.weight", "transformer.h.{1}.attn.attention.v_proj.weight"),
        ("model.layers.{1}.self_attn.o_proj.weight", "transformer.h.{1}.attn.attention.out_proj.weight"),
        ("model.layers.{1}.mlp.gate_proj.weight", "transformer.h.{1}.mlp.c_fc_0.weight"),
        ("model.layers.{1}.mlp.up_proj.weight", "transformer.h.{1}.mlp.c_fc_1.weight"),
        ("model.layers.{1}.mlp.down_proj.weight", "transformer.h.{1}.mlp.c_proj.weight"),
        ("model.layers.{1}.input_layernorm.weight", "transformer.h.{1}.ln_1.weight"),
        ("model.layers.{1}.post_attention_layernorm.weight", "transformer.h.{1}.ln_2.weight"),
    ], (t.LlamaForCausalLM, t.LlamaConfig, dict(tie_word_embeddings=False))),
    "llama-bidirectional": ("LlamaBidirectionalModel", dict(pooling="avg"), [], (
        t.EuroBertModel, t.EuroBertConfig, dict(head_dim=8, mask_token_id=4))),
    "jina-bert-v3": ("XLMRobertaModel", dict(
        position_embedding_type="rotary", rotary_emb_base=20000.0, rope_parameters=None, emb_pooler=None,
        lora_adaptations=["separation"]), [
            *[(f"{each}.weight", f"roberta.{each}.parametrizations.weight.original") for each in JINA_MATRICES],
            *[(f"{each}.bias", f"roberta.{each}.bias") for each in JINA_MATRICES],
            *[(f"{each}.{part}", f"roberta.{each}.{part}") for part in ("weight", "bias")
              for each in ("emb_ln", "encoder.layers.{1}.norm1", "encoder.layers.{1}.norm2")],
        ], (t.JinaEmbeddingsV3Model, t.JinaEmbeddingsV3Config, dict(pad_token_id=4, rope_parameters=dict(
            rope_type="default", rope_theta=20000.0)))),
    "cogvlm": ("CogVLMForCausalLM", {}, [
        (QKV, "model.layers.{1}.self_attn.language_expert_query_key_value.weight"),
        ("model.layers.{1}.self_attn.o_proj.weight", "model.layers.{1}.self_attn.language_expert_dense.weight"),
        *[(f"model.layers.{{1}}.mlp.{each}_proj.weight", f"model.layers.{{1}}.mlp.language_mlp.{each}_proj.weight")
          for each in ("gate", "up", "down")],
    ], (t.LlamaForCausalLM, t.LlamaConfig, dict(num_key_value_heads=4, tie_word_embeddings=False))),
    "minicpm": ("MiniCPMForCausalLM", dict(scale_emb=12, scale_depth=1.4, dim_model_base=16), [], (
        t.GraniteForCausalLM, t.GraniteConfig, dict(
            embedding_multiplier=12.0, residual_multiplier=0.7, attention_multiplier=8**-0.5, logits_scaling=2.0))),
    "internlm3": ("InternLM3ForCausalLM", {}, [], (t.LlamaForCausalLM, t.LlamaConfig, dict(
        attention_bias=True, mlp_bias=True, tie_word_embeddings=False, rope_scaling=dict(rope_type="dynamic", factor=6.0)))),
    "kormo": ("KORMoForCausalLM", {}, [
        ("model.layers.{1}.input_layernorm.weight", "model.layers.{1}.pre_attention_layernorm.weight"),
        ("model.layers.{1}.post_attention_layernorm.weight", "model.layers.{1}.pre_mlp_layernorm.weight"),
    ], (t.LlamaForCausalLM, t.LlamaConfig, dict(head_dim=16, tie_word_embeddings=False))),
    "stablelm-epoch": ("StableLMEpochForCausalLM", dict(
        norm_eps=1e-5, rope_pct=0.25, rope_theta=10000, layer_norm_eps=None, rope_parameters=None), [], (
            t.StableLmForCausalLM, t.StableLmConfig, dict(use_qkv_bias=True))),
    "falcon-rw": ("RWForCausalLM", dict(n_layer=3, n_head=4, num_hidden_layers=None, num_attention_heads=None,
                                        new_decoder_architecture=None, num_kv_heads=None), [], (
        t.FalconForCausalLM, t.FalconConfig, dict(GPT, activation="gelu_new", bare=True))),
    "falcon-rw-40b": ("RWForCausalLM", dict(n_layer=3, n_head=4, n_head_kv=2, num_hidden_layers=None, multi_query=None,
                                            num_attention_heads=None, new_decoder_architecture=None, num_kv_heads=None), [], (
        t.FalconForCausalLM, t.FalconConfig, dict(
            GPT, activation="gelu_new", new_decoder_architecture=True, num_kv_heads=2, bare=True))),
    "mamba-package": ("MambaLMHeadModel", dict(
        d_model=32, n_layer=3, ssm_cfg={}, rms_norm=True, hidden_size=None, num_hidden_layers=None, state_size=None,
        intermediate_size=None, expand=None, conv_kernel=None, time_step_rank=None), [
            ("backbone.embeddings.weight", "backbone.embedding.weight")], (
                t.MambaForCausalLM, t.MambaConfig, dict(MAMBA, state_size=16, time_step_rank=2, bare=True))),
}


def halves_to_pairs(rows, config):
    """The rows of q or k for a class that rotates adjacent elements, from those of a model that rotates halves."""
    length = config["hidden_size"] // config["num_attention_heads"]
    return rows.reshape(-1, 2, length // 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def groups_apart(rows, config):
    """The rows of q, k and v from those of groups, which have some heads of q, one of k and one of v each."""
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    grouped = rows.reshape(groups, heads // groups + 2, -1, rows.shape[-1])
    parts = grouped[:, :-2], grouped[:, -2:-1], grouped[:, -1:]
    return numpy.concatenate([each.reshape(-1, rows.shape[-1]) for each in parts])


def foreign(folder_class, changes, names, base):
    """Like expected(), for a model that the class of `base` computes under other names."""
    def renamed(name):
        for pattern, other in names:
            patterns = (pattern,) if isinstance(pattern, str) else pattern
            for place, each in enumerate(patterns):
                found = re.fullmatch(re.escape(each).replace(r"\{1\}", r"(\d+)").replace(r"\{2\}", r"(\d+)"), name)
                if found:
                    return other.replace("{1}", found[1] if found.groups() else ""), place
        return name, 0

    def own_values(config, shapes):
        parts = {}
        for name in sorted(shapes):
            other, place = renamed(name)
            parts.setdefault(other, {})[place] = name
        values, folder = {}, {}
        for other, by_place in parts.items():
            sources = [by_place[place] for place in sorted(by_place)]
            rows = [shapes[each][0] for each in sources]
            folder[other] = [sum(rows), *shapes[sources[0]][1:]]
            whole = value(other, folder[other])
            if other.endswith("wqkv.weight"):
                whole = groups_apart(whole, config)
            for name, part in zip(sources, numpy.split(whole, numpy.cumsum(rows)[:-1])):
                turns = config["model_type"] == "ernie4_5_moe" and name.endswith(("q_proj.weight", "k_proj.weight"))
                values[name] = numpy.ascontiguousarray(halves_to_pairs(part, config) if turns else part)
            if "moe_statics" in other:  # biases that the folder's model does not have
                values[sources[0]] = numpy.zeros(folder.pop(other), numpy.float32)
        return values, folder

    result = expected(*base, own_values=own_values)
    result["config"] |= dict(changes, architectures=[folder_class], model_type="other")
    return result


def value(name, shape):
    """Elements between -1 and 1 by splitmix64 over the name's FNV-1a hash, then scaled by the kind of tensor."""
    seed = 0xcbf29ce484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001b3 % 2**64
    count = int(numpy.prod(shape))
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(seed) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9e3779b97f4a7c15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        x = x ^ (x >> numpy.uint64(31))
    u = (x >> numpy.uint64(40)).astype(numpy.float64) / 2**23 - 1
    if len(shape) <= 1:
        u = u / 4 + (1 if "norm" in name.lower() and name.endswith("weight") else 0)
    elif "embed" not in name:
        u = u * 3 / numpy.sqrt(shape[-1])
    return u.astype(numpy.float32).reshape(shape)


def saved_tensors(model):
    """The tensors as save_pretrained writes them, with their names in the file."""
    import tempfile
    from safetensors.numpy import load_file
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        tensors = load_file(pathlib.Path(folder) / "model.safetensors")
        # MiniMax's decays follow from the number of a layer.
        return config, {name: each for name, each in tensors.items() if not name.endswith(("_decay", "slope_rate"))}


def expected(make, configuration, own, own_values=None):
    import tempfile
    from safetensors.numpy import save_file
    own = copy.deepcopy(own)  # transformers adds to settings that models share
    is_bare = own.pop("bare", False) or "d_model" in own or "n_embd" in own
    model = make(configuration(**(own if is_bare else COMMON) | dict(vocab_size=64) | own))
    config, tensors = saved_tensors(model)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(json.dumps(config))
        shapes = {name: list(each.shape) for name, each in sorted(tensors.items())}
        values = {name: value(name, shape) for name, shape in shapes.items()}
        if own_values:
            values, shapes = own_values(config, shapes)
        save_file(values, folder / "model.safetensors", metadata={"format": "pt"})
        has_experts = any(key in own for key in ("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"))
        plain = dict(experts_implementation="eager") if has_experts else {}
        model = make.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", **plain).eval()
    if make.__name__.endswith("MaskedLM"):  # embeddings are made of what its head reads
        model = model.base_model
    for module in model.modules():  # the approximation is the one that runs
        if isinstance(module, torch.nn.GELU):
            module.approximate = "tanh"
    # GGUF's Gemma 3n divides by one less than the width, which is at least 8192 in its models.
    of_all = torch.std
    torch.std = lambda x, **options: of_all(x, **dict(options, unbiased=True))
    # A decoder answers what its encoder sees: its first token.
    inputs = dict(input_ids=torch.tensor([TOKENS]))
    if "lm_head.weight" in model.state_dict() and config.get("is_encoder_decoder"):
        inputs["decoder_input_ids"] = torch.tensor([[config["decoder_start_token_id"]]])
    with torch.no_grad():
        result = model(**inputs)
    torch.std = of_all
    if hasattr(result, "logits"):
        row = result.logits[0] if result.logits.ndim == 2 else result.logits[0, -1]
    else:
        row = result.last_hidden_state[0].mean(0)
    if make is t.Qwen3ForSequenceClassification:  # of one label
        row = torch.cat([row, 0 * row]).softmax(-1)
    if config["model_type"] == "chameleon":
        row = row[:4]  # the others stand for images
    for key in ("transformers_version", "dtype", "_name_or_path"):
        config.pop(key, None)
    return dict(config=config, tensors=dict(sorted(shapes.items())), tokens=TOKENS,
                expected=[float(f"{x:.7g}") for x in row.tolist()])


def main():
    torch.manual_seed(1)
    path = pathlib.Path(__file__).parent / "expected.json"
    models = json.loads(path.read_text()) if len(sys.argv) > 1 else {}
    for name in sys.argv[1:] or [*MODELS, *FOREIGN, *published_mixtures.MODELS, *PUBLISHED, *published_encoders.MODELS]:
        if name in published_mixtures.MODELS:
            models[name] = published_parts.expected(published_mixtures.MODELS[name], value, TOKENS)
        elif name in published_encoders.MODELS:
            models[name] = published_encoders.expected(name, value, TOKENS)
        elif name in PUBLISHED:
            models[name] = published(name, TOKENS, value)
        else:
            models[name] = foreign(*FOREIGN[name]) if name in FOREIGN else expected(*MODELS[name])
        print(name, models[name]["expected"][:3], max(models[name]["expected"]))
    lines = [f" {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}" for name, each in models.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
