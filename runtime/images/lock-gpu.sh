#!/usr/bin/env bash
# Resolves what the images for GPUs add to their bases and writes it with hashes: cuda/requirements.txt, the engine and Ray, and
# rocm/requirements.txt, Ray alone, since the engine is in that base. Needs uv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
VLLM=${VLLM:-0.33.0}
RAY=${RAY:-2.60.0}
MSGPACK=${MSGPACK:-1.2.4}
# vLLM 0.33.0 asks for a certifi of the day after; this is the newest that there was when this was written.
CERTIFI=${CERTIFI:-2026.10.18}

compiled=(uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --generate-hashes --python-version 3.12)
{ echo "# vLLM with Ray for CUDA 13 and Python 3.12 on x86-64. Written by lock-gpu.sh."
  "${compiled[@]}" --python-platform x86_64-manylinux_2_39 --override <(echo "certifi==$CERTIFI") \
    <(printf '%s\n' "vllm==$VLLM" "ray==$RAY" cupy-cuda13x); } >cuda/requirements.txt
{ echo "# Ray, and what of its needs vLLM does not have. Written by lock-gpu.sh."
  "${compiled[@]}" --no-deps <(printf '%s\n' "ray==$RAY" "msgpack==$MSGPACK"); } >rocm/requirements.txt
