"""What a family's name alone decides, where its config leaves a key out: tying, pipeline support, and which are known.

Names are the `model_type` of the language model's config. Everything else is read from keys, never from names.
"""

from __future__ import annotations

KNOWN = frozenset(
    "llama llama4_text mllama_text_model deci nemotron-nas mistral ministral ministral3 mistral3 mistral4 mixtral pixtral"
    " qwen2 qwen2_moe qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text qwen3 qwen3_moe qwen3_next"
    " qwen3_vl_text qwen3_vl_moe_text qwen3_omni_moe_text qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text"
    " gemma gemma2 gemma3 gemma3_text gemma3n_text gemma4 gemma4_text gemma4_unified_text phi phi3 phimoe phi3small"
    " deepseek deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 kimi_k2 kimi_linear glm glm4 glm4_moe glm4_moe_lite"
    " glm4v_text glm4v_moe_text glm_moe_dsa chatglm minimax minimax_text_01 minimax_m1 minimax_m2 minimax_m3"
    " minimax_m3_vl_text gpt_oss granite granitemoe granitemoeshared granitemoehybrid bamba jamba falcon falcon_h1"
    " falcon_mamba mamba mamba2 nemotron nemotron_h zamba2 lfm2 lfm2_moe exaone exaone4 exaone_moe olmo olmo2 olmo3 olmoe"
    " smollm3 starcoder2 stablelm cohere cohere2 cohere2_moe opt gpt2 gpt_bigcode gpt_neox gptj bloom mpt internlm2"
    " internlm3 baichuan minicpm minicpm3 hunyuan_v1_dense hunyuan_v1_moe seed_oss ernie4_5 ernie4_5_moe dots1 step3_text"
    " step3p5 step3p7 mimo mimo_v2_flash arcee afmoe apertus bailing_moe solar_open dbrx sarvam_mla sarvam_moe"
    " bert roberta xlm-roberta camembert distilbert modernbert nomic_bert gte new electra mpnet".split()
)

TIED = frozenset(
    "gemma gemma2 gemma3 gemma3_text gemma3n_text gemma4 gemma4_text gemma4_unified_text cohere cohere2 cohere2_moe opt"
    " gpt2 gpt_bigcode falcon falcon_mamba bloom mpt starcoder2 smollm3 lfm2 lfm2_moe ernie4_5 mamba mamba2 zamba2 bert"
    " roberta xlm-roberta camembert distilbert modernbert nomic_bert gte new electra mpnet".split()
)
"""Families whose output head is the embedding unless the config says otherwise."""

WITHOUT_PIPELINE = frozenset(
    "gemma3n_text zamba2 mamba2 whisper mllama_text_model phi4mm bert roberta xlm-roberta camembert distilbert"
    " modernbert nomic_bert gte new electra mpnet".split()
)
"""Families that the engine cannot cut into pipeline stages."""
