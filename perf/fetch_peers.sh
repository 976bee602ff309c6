#!/bin/sh
# Downloads the libraries that perf/compare.py compares with, in exact versions, for Python 3.12 on x86-64 Linux, and
# packs them for a machine without a package registry:
#
#   sh perf/fetch_peers.sh [FOLDER]        FOLDER: build/peers where not given
#
# FOLDER/site is what PYTHONPATH names. FOLDER/carry/1, 2, ... hold pieces of it of at most $PIECE_MB (default 53)
# megabytes each. Where they arrive:
#
#   cat carry/*/peers.tar.xz.* > peers.tar.xz && mkdir site && python3 -m tarfile -e peers.tar.xz site
#   PYTHONPATH=$PWD/site python3 perf/compare.py ...
#
# That machine brings torch 2.11 for CUDA 13.0 with its Triton 3.6, numpy, einops, cuda-bindings, nvidia-ml-py,
# filelock, Jinja2, packaging, PyYAML, requests, tqdm, protobuf, typing-extensions, and nvcc with ninja for flashinfer's
# CUDA kernels.
#
# Not here: vllm. Its wheel (hundreds of megabytes) is compiled against one release of torch, not this one, and its
# kernels can't be had without it; compare.py takes it where it is installed and else shows why it did not.
set -eu

folder=${1:-build/peers}
piece_mb=${PIECE_MB:-53}
wheels='nvidia-cutlass-dsl==4.8.1 nvidia-cutlass-dsl-libs-base==4.8.1 nvidia-cutlass-dsl-libs-core==4.8.1
  nvidia-cutlass-dsl-libs-cu13==4.8.1 apache-tvm-ffi==0.1.15.post2 torch-c-dlpack-ext==0.1.5
  quack-kernels==0.6.5 flashinfer-python==0.7.4 flag_gems==5.0.2 sqlalchemy==2.0.48 liger-kernel==0.8.5'
flash_attn=flash-attn==2.8.3

mkdir -p "$folder/wheels"
folder=$(cd "$folder" && pwd)
[ -x "$folder/venv/bin/python" ] || python3 -m venv "$folder/venv"
pip="$folder/venv/bin/python -m pip --disable-pip-version-check --quiet"
target='--no-deps --only-binary=:all: --python-version 3.12 --implementation cp'
for glibc in 2_17 2_24 2_27 2_28 2_31 2_34 2_35; do target="$target --platform manylinux_${glibc}_x86_64"; done
target="$target --platform manylinux2014_x86_64"

for wheel in $wheels; do
  echo "fetch_peers: $wheel"
  $pip download $target --dest "$folder/wheels" "$wheel"
done

# flash-attn comes as source only. Its Triton layer norm needs nothing compiled, so neither is torch needed here: pip
# asks setup.py for the name and version alone, which imports torch all the same and is content with a stand-in.
echo "fetch_peers: $flash_attn (source)"
stand_in="$folder/stand_in/torch"
mkdir -p "$stand_in/utils"
echo '__version__ = "0"' >"$stand_in/__init__.py"
: >"$stand_in/utils/__init__.py"
cat >"$stand_in/utils/cpp_extension.py" <<'END'
BuildExtension = CppExtension = CUDAExtension = object
CUDA_HOME = ROCM_HOME = None
IS_HIP_EXTENSION = False
END
$pip install setuptools wheel packaging psutil ninja
FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE PYTHONPATH="$folder/stand_in" $pip download --no-deps --no-build-isolation \
  --no-binary :all: --dest "$folder/wheels" "$flash_attn"

echo "fetch_peers: unpacking"
rm -rf "$folder/site" "$folder/carry" "$folder/source"
$pip install $target --no-index --no-compile --target "$folder/site" "$folder"/wheels/*.whl
mkdir -p "$folder/source"
tar -xzf "$folder"/wheels/flash_attn-*.tar.gz -C "$folder/source" --strip-components=1
(
  cd "$folder/site"
  mkdir -p flash_attn/ops/triton flash_attn/utils "flash_attn-${flash_attn#*==}.dist-info"
  cp ../source/flash_attn/ops/triton/layer_norm.py flash_attn/ops/triton
  cp ../source/flash_attn/utils/torch.py ../source/flash_attn/utils/library.py flash_attn/utils
  cp ../source/PKG-INFO "flash_attn-${flash_attn#*==}.dist-info/METADATA"
  cp ../source/LICENSE "flash_attn-${flash_attn#*==}.dist-info"

  # What normalisations don't use of flashinfer, 700 MB: other operations' sources and compiled kernels.
  find flashinfer -path flashinfer/data -prune -o -type f ! -name '*.py' -exec rm {} +
  find flashinfer/data -mindepth 1 -maxdepth 1 ! -name csrc ! -name include ! -name cccl ! -name spdlog -exec rm -r {} +
  find flashinfer/data/csrc -mindepth 1 ! -name 'norm.cu' ! -name 'flashinfer_norm_binding.cu' ! -name logging.cc \
    ! -path 'flashinfer/data/csrc/*.h' -delete 2>/dev/null || true
  rm -rf b12x build_backend.py build_utils.py bin nvidia_cutlass_dsl/cu13/lib/stubs
)

echo "fetch_peers: packing"
mkdir -p "$folder/carry"
tar -C "$folder/site" -cf - . | nice xz -T0 -2 | split -b "${piece_mb}M" -d -a 1 - "$folder/carry/peers.tar.xz."
for piece in "$folder"/carry/peers.tar.xz.*; do
  number=$((${piece##*.} + 1))
  mkdir "$folder/carry/$number"
  mv "$piece" "$folder/carry/$number"
done
du -m "$folder"/carry/*/* | sed 's/^/fetch_peers: MB and piece: /'
