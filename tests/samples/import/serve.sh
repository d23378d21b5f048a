# A command as it stands in many notes: continued lines, short flags, sizes with letters.
export HF_HUB_OFFLINE=1
VLLM_LOGGING_LEVEL=INFO CUDA_VISIBLE_DEVICES=0,1 vllm serve meta-llama/Llama-3.3-70B-Instruct \
  -tp 2 \
  --served-model-name llama-70b llama \
  --gpu-memory-utilization 0.92 \
  --max-model-len 32k --max-num-seqs 128 --max-num-batched-tokens 8192 \
  --kv-cache-dtype fp8 \
  --enable-auto-tool-choice --tool-call-parser llama3_json \
  --compilation-config.cudagraph_mode FULL_AND_PIECEWISE \
  --no-enable-prefix-caching --enable-log-requests -O2 \
  --host 0.0.0.0 --port 8080 > /var/log/vllm.log 2>&1 &
