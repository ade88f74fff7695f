#!/usr/bin/env python3
"""Writes expected.json beside this file: what transformers computes for tiny models of each architecture.

usage: make_expected.py      (needs PyPI's torch and transformers; written with torch 2.15 and transformers 5.23)

A model's weights are not stored. value() makes them from the tensor's name, and tests/llm/convert_test.cpp does the same.
Stored are config.json, the names and shapes of the tensors, some tokens and, in float64, the logits of the last token, of
a classifier those of the labels, or the mean of the hidden states of a model without logits."""
import json
import pathlib

import numpy
import torch
import transformers as t

COMMON = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
              vocab_size=64, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
TOKENS = [1, 17, 42, 8, 33, 60, 5, 21, 50, 11, 29, 3, 44, 58, 9, 37, 26, 13, 62, 31]
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True)
LONG = dict(rope_type="longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.5, 2.0, 2.5, 3.0],
            original_max_position_embeddings=32)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
T5 = dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, relative_attention_num_buckets=12,
          decoder_start_token_id=0, n_positions=64)
MODELS = {
    "bert": (t.BertModel, t.BertConfig, dict(type_vocab_size=2)),
    "llama": (t.LlamaForCausalLM, t.LlamaConfig, dict(tie_word_embeddings=False)),
    "llama-biased": (t.LlamaForCausalLM, t.LlamaConfig, dict(attention_bias=True, tie_word_embeddings=True)),
    "llama3-scaling": (t.LlamaForCausalLM, t.LlamaConfig, dict(rope_theta=500000.0, rope_scaling=LLAMA3, head_dim=16)),
    "llama-linear": (t.LlamaForCausalLM, t.LlamaConfig, dict(rope_scaling=dict(rope_type="linear", factor=4.0))),
    "mistral": (t.MistralForCausalLM, t.MistralConfig, dict(sliding_window=None, head_dim=16)),
    "mixtral": (t.MixtralForCausalLM, t.MixtralConfig, dict(sliding_window=None, num_local_experts=4,
                                                            num_experts_per_tok=2)),
    "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config, dict(tie_word_embeddings=True)),
    "qwen2-yarn": (t.Qwen2ForCausalLM, t.Qwen2Config, dict(rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=16))),
    "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config, dict(head_dim=16, tie_word_embeddings=True)),
    "qwen3moe": (t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig, dict(head_dim=16, decoder_sparse_step=1, mlp_only_layers=[],
                                                               **EXPERTS)),
    "gemma": (t.GemmaForCausalLM, t.GemmaConfig, dict(head_dim=16)),
    "gemma2": (t.Gemma2ForCausalLM, t.Gemma2Config, dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=8)),
    "gemma3": (t.Gemma3ForCausalLM, t.Gemma3TextConfig, dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=8,
                                                             num_hidden_layers=7)),
    "phi3": (t.Phi3ForCausalLM, t.Phi3Config, dict(sliding_window=None)),
    "phi3-long": (t.Phi3ForCausalLM, t.Phi3Config, dict(sliding_window=None, rope_scaling=LONG,
                                                        original_max_position_embeddings=32)),
    "smollm3": (t.SmolLM3ForCausalLM, t.SmolLM3Config, dict(no_rope_layer_interval=4)),
    "granite": (t.GraniteForCausalLM, t.GraniteConfig, dict(embedding_multiplier=3.0, residual_multiplier=0.5,
                                                            attention_multiplier=0.25, logits_scaling=2.0)),
    "olmo2": (t.Olmo2ForCausalLM, t.Olmo2Config, {}),
    "seed-oss": (t.SeedOssForCausalLM, t.SeedOssConfig, dict(head_dim=16)),
    "arcee": (t.ArceeForCausalLM, t.ArceeConfig, {}),
    "olmoe": (t.OlmoeForCausalLM, t.OlmoeConfig, dict(EXPERTS, norm_topk_prob=False)),
    "qwen2moe": (t.Qwen2MoeForCausalLM, t.Qwen2MoeConfig, dict(EXPERTS, norm_topk_prob=False, mlp_only_layers=[],
                                                               shared_expert_intermediate_size=40)),
    "starcoder2": (t.Starcoder2ForCausalLM, t.Starcoder2Config, {}),
    "stablelm": (t.StableLmForCausalLM, t.StableLmConfig, dict(use_qkv_bias=True)),
    "stablelm-parallel": (t.StableLmForCausalLM, t.StableLmConfig, dict(use_parallel_residual=True)),
    "phi": (t.PhiForCausalLM, t.PhiConfig, {}),
    "cohere": (t.CohereForCausalLM, t.CohereConfig, {}),
    "cohere-normed": (t.CohereForCausalLM, t.CohereConfig, dict(use_qk_norm=True, attention_bias=True)),
    "cohere2": (t.Cohere2ForCausalLM, t.Cohere2Config, dict(sliding_window=8)),
    "glm4": (t.Glm4ForCausalLM, t.Glm4Config, dict(head_dim=16)),
    "exaone4": (t.Exaone4ForCausalLM, t.Exaone4Config, dict(sliding_window=None, layer_types=["full_attention"] * 4)),
    "hunyuan-dense": (t.HunYuanDenseV1ForCausalLM, t.HunYuanDenseV1Config, dict(
        head_dim=16, rope_scaling=dict(rope_type="dynamic", alpha=100.0, factor=1.0))),
    "nemotron": (t.NemotronForCausalLM, t.NemotronConfig, {}),
    "olmo": (t.OlmoForCausalLM, t.OlmoConfig, dict(clip_qkv=0.5)),
    "ernie4-5": (t.Ernie4_5ForCausalLM, t.Ernie4_5Config, dict(head_dim=16, use_bias=True)),
    "granitemoe": (t.GraniteMoeForCausalLM, t.GraniteMoeConfig, dict(
        embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0,
        num_local_experts=4, num_experts_per_tok=2)),
    "glm": (t.GlmForCausalLM, t.GlmConfig, dict(head_dim=16)),
    "xlm-roberta": (t.XLMRobertaModel, t.XLMRobertaConfig, dict(type_vocab_size=1, pad_token_id=4)),
    "roberta": (t.RobertaModel, t.RobertaConfig, dict(type_vocab_size=1, pad_token_id=4)),
    "bert-ranker": (t.BertForSequenceClassification, t.BertConfig, dict(num_labels=3)),
    "xlm-roberta-ranker": (t.XLMRobertaForSequenceClassification, t.XLMRobertaConfig, dict(num_labels=1, pad_token_id=4)),
    "roberta-ranker": (t.RobertaForSequenceClassification, t.RobertaConfig, dict(num_labels=2, pad_token_id=4)),
    "modern-bert": (t.ModernBertModel, t.ModernBertConfig, dict(local_attention=8)),
    "modern-bert-ranker": (t.ModernBertForSequenceClassification, t.ModernBertConfig, dict(
        local_attention=8, classifier_pooling="mean", num_labels=2)),
    "nomic-bert": (t.NomicBertModel, t.NomicBertConfig, {}),
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config, dict(n_embd=32, n_layer=3, n_head=4, n_positions=64)),
    "gptneox": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig, dict(tie_word_embeddings=False, hidden_act="gelu_new")),
    "gptneox-sequential": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig, dict(use_parallel_residual=False,
                                                                              hidden_act="gelu_new")),
    "t5": (t.T5ForConditionalGeneration, t.T5Config, dict(T5, feed_forward_proj="relu", num_decoder_layers=3)),
    "t5-gated": (t.T5ForConditionalGeneration, t.T5Config, dict(T5, feed_forward_proj="gated-gelu",
                                                                tie_word_embeddings=False)),
    "umt5": (t.UMT5ForConditionalGeneration, t.UMT5Config, dict(T5, feed_forward_proj="gated-gelu")),
    "t5-encoder": (t.T5EncoderModel, t.T5Config, dict(T5, feed_forward_proj="relu")),
}


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
    if len(shape) == 1:
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
        return config, load_file(pathlib.Path(folder) / "model.safetensors")


def expected(make, configuration, own):
    import tempfile
    from safetensors.numpy import save_file
    model = make(configuration(**(own if "d_model" in own or "n_embd" in own else COMMON) | dict(vocab_size=64) | own))
    config, tensors = saved_tensors(model)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(json.dumps(config))
        save_file({name: value(name, each.shape) for name, each in tensors.items()}, folder / "model.safetensors",
                  metadata={"format": "pt"})
        plain = dict(experts_implementation="eager") if "num_experts_per_tok" in own else {}
        model = make.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", **plain).eval()
    # A decoder answers what its encoder sees: its first token.
    inputs = dict(input_ids=torch.tensor([TOKENS]))
    if "lm_head.weight" in model.state_dict() and config.get("is_encoder_decoder"):
        inputs["decoder_input_ids"] = torch.tensor([[config["decoder_start_token_id"]]])
    with torch.no_grad():
        result = model(**inputs)
    if hasattr(result, "logits"):
        row = result.logits[0] if result.logits.ndim == 2 else result.logits[0, -1]
    else:
        row = result.last_hidden_state[0].mean(0)
    for key in ("transformers_version", "dtype", "_name_or_path"):
        config.pop(key, None)
    return dict(config=config, tensors={name: list(each.shape) for name, each in sorted(tensors.items())},
                tokens=TOKENS, expected=[float(f"{x:.7g}") for x in row.tolist()])


def main():
    torch.manual_seed(1)
    models = {}
    for name, row in MODELS.items():
        models[name] = expected(*row)
        print(name, models[name]["expected"][:3], max(models[name]["expected"]))
    lines = [f" {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}" for name, each in models.items()]
    (pathlib.Path(__file__).parent / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
