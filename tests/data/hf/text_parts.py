"""Models that also see images or hear sounds, which make_expected.py writes: only their text part is computed."""
import transformers as t

EYES = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, patch_size=4, image_size=8)
QWEN_EYES = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=32, patch_size=4, image_size=8)
EARS = dict(d_model=32, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=32, num_mel_bins=8,
            max_source_positions=8)
OMNI = dict(audio_config=dict(EARS, output_dim=32), vision_config=QWEN_EYES)
SECTIONS = dict(rope_type="default", rope_theta=1e4, mrope_section=[1, 1, 2])
HALF_ROTATED = dict(SECTIONS, partial_rotary_factor=0.5)
QUANTISER = dict(embed_dim=8, latent_channels=8, base_channels=32, channel_multiplier=[1], num_res_blocks=1,
                 num_embeddings=8)
OCR_EYES = dict(
    sam_config=dict(hidden_size=32, output_channels=32, num_hidden_layers=1, num_attention_heads=2, image_size=16,
                    patch_size=4, window_size=2, global_attn_indexes=[0], downsample_channels=[32, 32], mlp_dim=32),
    encoder_config=dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                        num_key_value_heads=2, vocab_size=8))


def beside(configuration, **parts):
    """The configuration of a model whose text part has the settings given."""
    return lambda **text: configuration(text_config=text, **parts)


def seeing(configuration, **vision):
    return beside(configuration, vision_config=vision)


MODELS = {
    "idefics3": (t.Idefics3ForConditionalGeneration, seeing(t.Idefics3Config, **EYES), dict(model_type="llama")),
    "internvl": (t.InternVLForConditionalGeneration, seeing(
        t.InternVLConfig, **dict(EYES, patch_size=[4, 4], image_size=[8, 8])), dict(model_type="qwen2")),
    "llava": (t.LlavaForConditionalGeneration, seeing(
        t.LlavaConfig, **EYES, model_type="clip_vision_model", projection_dim=32), dict(
            model_type="mistral", sliding_window=None)),
    "glm4v": (t.Glm4vForConditionalGeneration, seeing(t.Glm4vConfig, **QWEN_EYES), dict(
        num_attention_heads=2, num_key_value_heads=1, rope_parameters=HALF_ROTATED)),
    "glm4v-moe": (t.Glm4vMoeForConditionalGeneration, seeing(t.Glm4vMoeConfig, **QWEN_EYES), dict(
        head_dim=16, n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=24, first_k_dense_replace=1,
        num_experts_per_tok=2, rope_parameters=HALF_ROTATED, attention_bias=True)),
    "glm-ocr": (t.GlmOcrForConditionalGeneration, seeing(t.GlmOcrConfig, **QWEN_EYES), dict(
        head_dim=16, rope_parameters=dict(SECTIONS, mrope_section=[2, 3, 3], partial_rotary_factor=1.0))),
    "hunyuan-vl": (t.HunYuanVLForConditionalGeneration, seeing(t.HunYuanVLConfig, **dict(
        EYES, out_hidden_size=32, text_hidden_size=32, num_key_value_heads=2)), dict(head_dim=16, rope_parameters=dict(
            rope_type="dynamic", rope_theta=1e4, alpha=100.0, factor=1.0, mrope_section=[2, 2, 2, 2]))),
    "paddleocr": (t.PaddleOCRVLForConditionalGeneration, seeing(t.PaddleOCRVLConfig, **EYES), dict(
        head_dim=16, rope_parameters=dict(SECTIONS, mrope_section=[2, 3, 3]))),
    "qwen2-audio": (t.Qwen2AudioForConditionalGeneration, beside(t.Qwen2AudioConfig, audio_config=EARS), dict(
        model_type="qwen2")),
    "qwen2-5-omni": (t.Qwen2_5OmniThinkerForConditionalGeneration, beside(t.Qwen2_5OmniThinkerConfig, **OMNI), dict(
        rope_parameters=SECTIONS)),
    "qwen3-omni": (t.Qwen3OmniMoeThinkerForConditionalGeneration, beside(t.Qwen3OmniMoeThinkerConfig, **OMNI), dict(
        head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True,
        decoder_sparse_step=1, mlp_only_layers=[], rope_parameters=dict(SECTIONS, mrope_section=[3, 3, 2]))),
    "granite4-vision": (t.Granite4VisionForConditionalGeneration, beside(
        t.Granite4VisionConfig, vision_config=dict(EYES, hidden_size=64, model_type="siglip_vision_model"), deepstack_layer_map=[],
        spatial_target_layers=[], downsample_rate="1/2"), dict(
            embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0)),
    "muse-glimmer": (t.MuseGlimmerForConditionalGeneration, beside(
        t.MuseGlimmerConfig, vision_config=dict(EYES, pos_emb_height=4, pos_emb_width=4), out_hidden_size=32,
        projector_hidden_size=32), dict(head_dim=16, sliding_window=8)),
    "exaone4-5": (t.Exaone4_5_ForConditionalGeneration, seeing(t.Exaone4_5_Config, **dict(
        QWEN_EYES, num_key_value_heads=2, fullatt_block_indexes=[0])), dict(
            model_type="exaone4", sliding_window=None, layer_types=["full_attention"] * 4)),
    "gemma4-unified": (t.Gemma4UnifiedForConditionalGeneration, beside(t.Gemma4UnifiedConfig), dict(
        head_dim=8, global_head_dim=16, sliding_window=8, num_kv_shared_layers=0, hidden_size_per_layer_input=0,
        layer_types=["sliding_attention", "full_attention"] * 2)),
    "deepseek-ocr2": (t.DeepseekOcr2ForConditionalGeneration, seeing(t.DeepseekOcr2Config, **OCR_EYES), dict(
        n_routed_experts=4, n_shared_experts=2, num_experts_per_tok=2, moe_intermediate_size=24,
        mlp_layer_types=["dense"] + ["sparse"] * 3)),
    "chameleon": (t.ChameleonForConditionalGeneration, t.ChameleonConfig, dict(
        vocabulary_map={"<image>": 4}, vq_config=QUANTISER)),
    "chameleon-swin": (t.ChameleonForConditionalGeneration, t.ChameleonConfig, dict(
        vocabulary_map={"<image>": 4}, vq_config=QUANTISER, swin_norm=True)),
}
