# What guides of past versions print; half of it is refused today.
python -m vllm.entrypoints.openai.api_server --model deepseek-ai/DeepSeek-R1-Distill-Qwen-32B \
  --tensor-parallel-size=4 --num-scheduler-steps 10 --swap-space 16 --preemption-mode swap \
  --guided-decoding-backend outlines --speculative-model Qwen/Qwen2.5-0.5B --num-speculative-tokens 5 \
  --rope-scaling '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}' \
  --enable-reasoning --reasoning-parser deepseek_r1 --limit-mm-per-prompt image=4,video=1 \
  --task generate --device cuda --max-concurrency 64 --quantization squeezellm --disable-log-requests \
  --max-seq-len-to-capture 8192 --worker-use-ray
