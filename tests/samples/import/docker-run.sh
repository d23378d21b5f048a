docker run --gpus '"device=0,1"' --rm -d --name qwen3.moe --shm-size 16g --ipc=host \
  -p 8000:8000 -v ~/.cache/huggingface:/root/.cache/huggingface \
  -e HF_TOKEN=hf_do_not_print_me -e VLLM_USE_V1=1 -e VLLM_FUSED_MOE_CHUNK_SIZE=8192 \
  vllm/vllm-openai:v0.33.0 \
  Qwen/Qwen3-30B-A3B --tensor-parallel-size 2 --enable-expert-parallel --max-model-len auto \
  --kv-offloading-size 32 --kv-offloading-backend native --shutdown-timeout 60 \
  --speculative-config '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 5, "prompt_lookup_min": 2}'
