"""The tiny models whose classes are in transformers: class, configuration, and settings beside COMMON."""
import transformers as t

import text_parts

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
TOKEN_IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT = dict(TOKEN_IDS, hidden_size=32, num_hidden_layers=3, num_attention_heads=4)  # with names of their own
DEEPSEEK = dict(num_key_value_heads=4, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6,
                n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=24, first_k_dense_replace=1,
                num_experts_per_tok=2)
DEEP_YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.7, mscale_all_dim=0.7,
                 beta_fast=32, beta_slow=1)
ROUTED = dict(head_dim=16, n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=24, first_k_dense_replace=1,
              num_experts_per_tok=2)
GRANITE = dict(embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0,
               num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=40)
MAMBA = dict(TOKEN_IDS, hidden_size=32, num_hidden_layers=3, state_size=8)
MAMBA_BESIDE = dict(mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8)
DELTA = dict(head_dim=16, linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_value_head_dim=6, linear_num_key_heads=2,
             linear_num_value_heads=4)
SHORT_CONV = dict(layer_types=["conv", "conv", "full_attention", "conv"], conv_L_cache=3)
EYES = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, patch_size=4, image_size=8)
QWEN_EYES = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=32, patch_size=4)


def seeing(configuration, vision):
    """The configuration of a model whose text part has the settings given."""
    return lambda **text: configuration(text_config=text, vision_config=vision)


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
    "gemma3-seeing": (t.Gemma3ForConditionalGeneration, seeing(t.Gemma3Config, EYES), dict(
        head_dim=16, query_pre_attn_scalar=16, sliding_window=8)),
    "mistral3": (t.Mistral3ForConditionalGeneration, seeing(t.Mistral3Config, dict(EYES, model_type="pixtral")), dict(
        model_type="mistral", head_dim=16, sliding_window=None)),
    "qwen2-5-vl": (t.Qwen2_5_VLForConditionalGeneration, seeing(t.Qwen2_5_VLConfig, dict(
        QWEN_EYES, fullatt_block_indexes=[0])), dict(rope_parameters=dict(rope_type="default", mrope_section=[1, 1, 2]))),
    "qwen3-vl": (t.Qwen3VLForConditionalGeneration, seeing(t.Qwen3VLConfig, dict(
        QWEN_EYES, deepstack_visual_indexes=[0], num_position_embeddings=16)), dict(
            head_dim=16, rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[3, 3, 2]))),
    "smolvlm": (t.SmolVLMForConditionalGeneration, seeing(t.SmolVLMConfig, EYES), dict(model_type="llama")),
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
    "gpt-bigcode": (t.GPTBigCodeForCausalLM, t.GPTBigCodeConfig, dict(n_embd=32, n_layer=3, n_head=4, n_positions=64)),
    "falcon": (t.FalconForCausalLM, t.FalconConfig, dict(GPT, activation="gelu_new", bare=True)),
    "falcon-grouped": (t.FalconForCausalLM, t.FalconConfig, dict(
        GPT, activation="gelu_new", new_decoder_architecture=True, num_kv_heads=2, bare=True)),
    "bloom": (t.BloomForCausalLM, t.BloomConfig, dict(TOKEN_IDS, hidden_size=32, n_layer=3, n_head=4, bare=True)),
    "mpt": (t.MptForCausalLM, t.MptConfig, dict(d_model=32, n_heads=4, n_layers=3, max_seq_len=64,
                                                attn_config=dict(clip_qkv=0.5))),
    "apertus": (t.ApertusForCausalLM, t.ApertusConfig, dict(rope_scaling=LLAMA3)),
    "olmo3": (t.Olmo3ForCausalLM, t.Olmo3Config, dict(sliding_window=8)),
    "gpt-oss": (t.GptOssForCausalLM, t.GptOssConfig, dict(
        head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=8, rope_scaling=dict(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16, truncate=False))),
    "deepseek-v2": (t.DeepseekV2ForCausalLM, t.DeepseekV2Config, dict(DEEPSEEK, q_lora_rank=None, norm_topk_prob=False,
                                                                      n_group=1, topk_group=1)),
    "deepseek-v3": (t.DeepseekV3ForCausalLM, t.DeepseekV3Config, dict(
        DEEPSEEK, q_lora_rank=12, n_routed_experts=8, n_group=4, topk_group=2, rope_scaling=DEEP_YARN)),
    "glm4moe-lite": (t.Glm4MoeLiteForCausalLM, t.Glm4MoeLiteConfig, dict(DEEPSEEK, q_lora_rank=12)),
    "glm4moe": (t.Glm4MoeForCausalLM, t.Glm4MoeConfig, dict(ROUTED, use_qk_norm=True, attention_bias=True)),
    "dots1": (t.Dots1ForCausalLM, t.Dots1Config, dict(ROUTED, routed_scaling_factor=2.5, norm_topk_prob=True)),
    "ernie4-5-moe": (t.Ernie4_5_MoeForCausalLM, t.Ernie4_5_MoeConfig, dict(
        moe_num_experts=4, moe_k=2, moe_num_shared_experts=2, moe_intermediate_size=24, moe_layer_start_index=1)),
    "hunyuan-moe": (t.HunYuanMoEV1ForCausalLM, t.HunYuanMoEV1Config, dict(head_dim=16, num_experts=4, moe_topk=2)),
    "minimax-m2": (t.MiniMaxM2ForCausalLM, t.MiniMaxM2Config, dict(head_dim=16, rotary_dim=8, num_local_experts=4,
                                                                   num_experts_per_tok=2)),
    "granitemoe-shared": (t.GraniteMoeSharedForCausalLM, t.GraniteMoeSharedConfig, GRANITE),
    "granite-hybrid": (t.GraniteMoeHybridForCausalLM, t.GraniteMoeHybridConfig, dict(
        GRANITE, **MAMBA_BESIDE, mamba_n_groups=1, layer_types=["mamba", "mamba", "attention", "mamba"])),
    "granite-hybrid-dense": (t.GraniteMoeHybridForCausalLM, t.GraniteMoeHybridConfig, dict(
        GRANITE, **MAMBA_BESIDE, mamba_n_groups=1, layer_types=["mamba", "attention", "mamba", "attention"],
        num_local_experts=0, position_embedding_type="rope")),
    "granite-4-attention": (t.GraniteMoeHybridForCausalLM, t.GraniteMoeHybridConfig, dict(
        GRANITE, **MAMBA_BESIDE, layer_types=["attention"] * 4, num_local_experts=0, position_embedding_type="rope")),
    "lfm2": (t.Lfm2ForCausalLM, t.Lfm2Config, dict(SHORT_CONV, block_multiple_of=8)),
    "lfm2moe": (t.Lfm2MoeForCausalLM, t.Lfm2MoeConfig, dict(
        SHORT_CONV, moe_intermediate_size=24, num_dense_layers=1, num_experts=4, num_experts_per_tok=2)),
    "mamba": (t.MambaForCausalLM, t.MambaConfig, dict(MAMBA, time_step_rank=4, bare=True)),
    "falcon-mamba": (t.FalconMambaForCausalLM, t.FalconMambaConfig, dict(MAMBA, time_step_rank=4, bare=True)),
    "mamba2": (t.Mamba2ForCausalLM, t.Mamba2Config, dict(MAMBA, num_heads=8, head_dim=8, n_groups=2, bare=True)),
    "jamba": (t.JambaForCausalLM, t.JambaConfig, dict(
        num_experts=4, num_experts_per_tok=2, expert_layer_period=2, expert_layer_offset=1, attn_layer_period=4,
        attn_layer_offset=2, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False)),
    "nemotron-h": (t.NemotronHForCausalLM, t.NemotronHConfig, dict(
        head_dim=16, hybrid_override_pattern="M-*-", ssm_state_size=8, mamba_num_heads=8, mamba_head_dim=8, n_groups=2)),
    "falcon-h1": (t.FalconH1ForCausalLM, t.FalconH1Config, dict(
        head_dim=16, **MAMBA_BESIDE, mamba_d_ssm=64, mamba_n_groups=2, mamba_rms_norm=False,
        mamba_norm_before_gate=False, embedding_multiplier=2.0, lm_head_multiplier=0.5, attention_in_multiplier=0.9,
        attention_out_multiplier=1.3, key_multiplier=0.7, mlp_multipliers=[0.8, 1.2], ssm_in_multiplier=1.1,
        ssm_multipliers=[0.9, 1.1, 0.8, 1.2, 0.7], ssm_out_multiplier=0.6)),
    "qwen3next": (t.Qwen3NextForCausalLM, t.Qwen3NextConfig, dict(
        EXPERTS, **DELTA, shared_expert_intermediate_size=40, decoder_sparse_step=1, mlp_only_layers=[])),
    "qwen3-5": (t.Qwen3_5ForCausalLM, t.Qwen3_5TextConfig, DELTA),
    "qwen3-5-moe": (t.Qwen3_5MoeForCausalLM, t.Qwen3_5MoeTextConfig, dict(DELTA, **EXPERTS,
                                                                           shared_expert_intermediate_size=40)),
    "qwen3-5-seeing": (t.Qwen3_5ForConditionalGeneration, seeing(t.Qwen3_5Config, dict(
        QWEN_EYES, num_position_embeddings=16)), DELTA),
    "qwen3-5-moe-seeing": (t.Qwen3_5MoeForConditionalGeneration, seeing(t.Qwen3_5MoeConfig, dict(
        QWEN_EYES, num_position_embeddings=16)), dict(DELTA, **EXPERTS, shared_expert_intermediate_size=40)),
    "lfm2-vl": (t.Lfm2VlForConditionalGeneration, seeing(t.Lfm2VlConfig, dict(
        EYES, model_type="siglip2_vision_model", num_patches=16)), dict(SHORT_CONV, block_multiple_of=8)),
    "qwen2-vl": (t.Qwen2VLForConditionalGeneration, seeing(t.Qwen2VLConfig, dict(
        depth=1, embed_dim=32, hidden_size=32, num_heads=2, patch_size=4)), dict(
            rope_parameters=dict(rope_type="default", mrope_section=[1, 1, 2]))),
    "qwen3-vl-moe": (t.Qwen3VLMoeForConditionalGeneration, seeing(t.Qwen3VLMoeConfig, dict(
        QWEN_EYES, deepstack_visual_indexes=[0], num_position_embeddings=16)), dict(
            EXPERTS, head_dim=16, decoder_sparse_step=1, mlp_only_layers=[], rope_parameters=dict(
                rope_type="default", rope_theta=1e4, mrope_section=[3, 3, 2]))),
    "phimoe": (t.PhimoeForCausalLM, t.PhimoeConfig, dict(
        num_local_experts=4, num_experts_per_tok=2, sliding_window=None, attention_bias=True, lm_head_bias=True)),
    "llama4": (t.Llama4ForCausalLM, t.Llama4TextConfig, dict(
        head_dim=16, intermediate_size_mlp=40, num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=1,
        use_qk_norm=True)),
    "llama4-interleaved": (t.Llama4ForConditionalGeneration, seeing(t.Llama4Config, dict(
        EYES, vision_output_dim=32, projector_input_dim=32, projector_output_dim=32)), dict(
        head_dim=16, intermediate_size_mlp=40, num_local_experts=128, num_experts_per_tok=1,
        interleave_moe_layer_step=2, use_qk_norm=False)),
    "gemma3n": (t.Gemma3nForCausalLM, t.Gemma3nTextConfig, dict(
        head_dim=16, num_hidden_layers=21, sliding_window=8, num_kv_shared_layers=1, intermediate_size=48,
        activation_sparsity_pattern=[0.95] * 10 + [0.0] * 11,
        hidden_size_per_layer_input=256, vocab_size_per_layer_input=64, laurel_rank=64)),
    "gemma4": (t.Gemma4ForCausalLM, t.Gemma4TextConfig, dict(
        head_dim=8, global_head_dim=16, num_hidden_layers=4, sliding_window=8, num_kv_shared_layers=2,
        hidden_size_per_layer_input=8, vocab_size_per_layer_input=64, use_double_wide_mlp=True,
        layer_types=["sliding_attention", "full_attention"] * 2)),
    "gemma4-moe": (t.Gemma4ForCausalLM, t.Gemma4TextConfig, dict(
        head_dim=8, global_head_dim=16, num_global_key_value_heads=1, attention_k_eq_v=True, num_kv_shared_layers=0,
        sliding_window=8, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=4, top_k_experts=2,
        moe_intermediate_size=24, layer_types=["sliding_attention", "full_attention"] * 2)),
    "nemotron-h-moe": (t.NemotronHForCausalLM, t.NemotronHConfig, dict(
        head_dim=16, hybrid_override_pattern="ME*E", ssm_state_size=8, mamba_num_heads=8, mamba_head_dim=8, n_groups=2,
        n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=2, moe_intermediate_size=24,
        moe_shared_expert_intermediate_size=40, n_shared_experts=1, routed_scaling_factor=1.5)),
    "ministral3": (t.Ministral3ForCausalLM, t.Ministral3Config, dict(head_dim=16, sliding_window=None, rope_parameters=dict(
        rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0,
        beta_fast=32.0, beta_slow=1.0, llama_4_scaling_beta=0.1))),
    "mistral4": (t.Mistral4ForCausalLM, t.Mistral4Config, dict(DEEPSEEK, q_lora_rank=12, rope_parameters=dict(
        rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0,
        beta_fast=32.0, beta_slow=1.0, llama_4_scaling_beta=0.1))),
    "deepseek-v32": (t.DeepseekV32ForCausalLM, t.DeepseekV32Config, dict(
        DEEPSEEK, q_lora_rank=12, n_routed_experts=8, n_group=4, topk_group=2, index_n_heads=8, index_head_dim=8,
        index_topk=4)),
    "glm-dsa": (t.GlmMoeDsaForCausalLM, t.GlmMoeDsaConfig, dict(
        DEEPSEEK, q_lora_rank=12, index_n_heads=8, index_head_dim=8, index_topk=4)),
    "minicpm3": (t.MiniCPM3ForCausalLM, t.MiniCPM3Config, dict(
        num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8)),
    "hy-v3": (t.HYV3ForCausalLM, t.HYV3Config, dict(
        head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, num_shared_experts=1,
        first_k_dense_replace=1)),
    "exaone-moe": (t.ExaoneMoeForCausalLM, t.ExaoneMoeConfig, dict(
        head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, num_shared_experts=2,
        first_k_dense_replace=1, sliding_window=8)),
    "afmoe": (t.AfmoeForCausalLM, t.AfmoeConfig, dict(
        head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, num_dense_layers=1,
        num_shared_experts=2, sliding_window=8, mup_enabled=True)),
    "mellum": (t.MellumForCausalLM, t.MellumConfig, dict(
        EXPERTS, head_dim=16, sliding_window=8, layer_types=["sliding_attention", "full_attention"] * 2)),
    "laguna": (t.LagunaForCausalLM, t.LagunaConfig, dict(
        head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=40,
        sliding_window=8, layer_types=["full_attention", "sliding_attention"] * 2,
        num_attention_heads_per_layer=[4, 6, 4, 6])),
    "jais2": (t.Jais2ForCausalLM, t.Jais2Config, dict(head_dim=8)),
    "granite-swa": (t.GraniteSWAForCausalLM, t.GraniteSWAConfig, dict(
        sliding_window=8, embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.25,
        logits_scaling=2.0)),
    "kimi-linear": (t.KimiLinearForCausalLM, t.KimiLinearConfig, dict(
        DEEPSEEK, num_local_experts=4, linear_head_dim=8, linear_num_heads=4, num_hidden_layers=5,
        layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention", "full_attention"])),
    "mimo2": (t.MiMoV2FlashForCausalLM, t.MiMoV2FlashConfig, dict(
        num_attention_heads=8, head_dim=12, v_head_dim=8, n_routed_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=24, sliding_window=8)),
    "minimax-m3": (t.MiniMaxM3SparseForConditionalGeneration, seeing(t.MiniMaxM3VLConfig, dict(
        EYES, num_attention_heads=2)), dict(
        head_dim=16, rotary_dim=8, partial_rotary_factor=0.5, dense_intermediate_size=48, intermediate_size=24, shared_intermediate_size=24,
        num_local_experts=4, num_experts_per_tok=2, index_n_heads=2, index_head_dim=8, index_block_size=4,
        index_topk_blocks=2, mlp_layer_types=["dense"] + ["sparse"] * 3,
        layer_types=["full_attention"] + ["minimax_m3_sparse"] * 3)),
    "cohere2moe": (t.Cohere2MoeForCausalLM, t.Cohere2MoeConfig, dict(
        head_dim=8, num_experts=4, num_experts_per_tok=2, num_shared_experts=2, expert_selection_fn="sigmoid",
        sliding_window=8, prefix_dense_intermediate_size=40, num_hidden_layers=5, mlp_layer_types=["dense"] + ["sparse"] * 4)),
    "eurobert": (t.EuroBertModel, t.EuroBertConfig, dict(head_dim=8)),
    "gemma-embedding": (t.Gemma3TextModel, t.Gemma3TextConfig, dict(
        head_dim=16, query_pre_attn_scalar=16, sliding_window=8, num_hidden_layers=7, use_bidirectional_attention=True)),
    "t5": (t.T5ForConditionalGeneration, t.T5Config, dict(T5, feed_forward_proj="relu", num_decoder_layers=3)),
    "t5-gated": (t.T5ForConditionalGeneration, t.T5Config, dict(T5, feed_forward_proj="gated-gelu",
                                                                tie_word_embeddings=False)),
    "umt5": (t.UMT5ForConditionalGeneration, t.UMT5Config, dict(T5, feed_forward_proj="gated-gelu")),
    "t5-encoder": (t.T5EncoderModel, t.T5Config, dict(T5, feed_forward_proj="relu")),
    "minimax-01": (t.MiniMaxForCausalLM, t.MiniMaxConfig, dict(
        head_dim=16, num_local_experts=4, num_experts_per_tok=2, full_attn_alpha_factor=3.5, linear_attn_alpha_factor=3.5,
        mlp_alpha_factor=3.5, layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"])),
    "dbrx": (t.DbrxForCausalLM, t.DbrxConfig, dict(
        TOKEN_IDS, d_model=32, n_heads=4, n_layers=3, max_seq_len=64, tie_word_embeddings=False,
        attn_config=dict(kv_n_heads=2, clip_qkv=0.5, rope_theta=5e5),
        ffn_config=dict(ffn_hidden_size=24, moe_num_experts=4, moe_top_k=2))),
    "solar-open": (t.SolarOpenForCausalLM, t.SolarOpenConfig, dict(
        head_dim=16, n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=24, num_experts_per_tok=2,
        routed_scaling_factor=1.5)),
    "granitemoe-swa": (t.GraniteMoeSWAForCausalLM, t.GraniteMoeSWAConfig, dict(
        GRANITE, sliding_window=8, layer_rope_theta=[0, 1e4, 0, 1e4])),
    "bailingmoe3": (t.BailingHybridForCausalLM, t.BailingHybridConfig, dict(
        head_dim=8, num_key_value_heads=4, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6,
        num_local_experts=8, n_group=4, topk_group=2, num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=24,
        first_k_dense_replace=1, layer_group_size=3, num_hidden_layers=6, num_mtp_layers=0)),
    "dots3note": (t.Dots3NoteForCausalLM, t.Dots3NoteTextConfig, dict(
        num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=16, qk_rope_head_dim=4, v_head_dim=6, qk_nope_head_dim=8,
        n_routed_experts=4, moe_intermediate_size=24, num_experts_per_tok=2, index_topk=4, index_head_dim=8, index_n_heads=4,
        head_dim=12, shared_experts_intermediate_size=24, sliding_window_size=8, swa_num_attention_heads=2,
        swa_num_key_value_heads=2, swa_q_lora_rank=12, swa_kv_lora_rank=20, swa_head_dim=12, swa_qk_nope_head_dim=8,
        swa_v_head_dim=10, layer_types=["full_attention", "sliding_attention"] * 2)),
    "bamba": (t.BambaForCausalLM, t.BambaConfig, dict(MAMBA_BESIDE, mamba_n_groups=1, attn_layer_indices=[1, 3])),
    "bert-masked": (t.BertForMaskedLM, t.BertConfig, {}),
    "bert-distil": (t.DistilBertForMaskedLM, t.DistilBertConfig, dict(
        TOKEN_IDS, dim=32, hidden_dim=48, n_layers=3, n_heads=4, max_position_embeddings=64, bare=True)),
    "bert-distil-ranker": (t.DistilBertForSequenceClassification, t.DistilBertConfig, dict(
        TOKEN_IDS, dim=32, hidden_dim=48, n_layers=3, n_heads=4, max_position_embeddings=64, num_labels=2, bare=True)),
    "camembert": (t.CamembertForMaskedLM, t.CamembertConfig, dict(type_vocab_size=1, pad_token_id=4)),
    "modern-bert-masked": (t.ModernBertForMaskedLM, t.ModernBertConfig, dict(local_attention=8)),
    "jina-embeddings-v3": (t.JinaEmbeddingsV3Model, t.JinaEmbeddingsV3Config, {}),
    "qwen3-embedder": (t.Qwen3Model, t.Qwen3Config, dict(head_dim=16)),
    "qwen3-ranker": (t.Qwen3ForSequenceClassification, t.Qwen3Config, dict(head_dim=16, num_labels=1)),
    "qwen2-bidirectional": (t.Qwen2Model, t.Qwen2Config, dict(is_causal=False)),
}
MODELS |= text_parts.MODELS
