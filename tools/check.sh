#!/bin/sh
# Builds everything and runs all tests: the library as it is used, in build, and what runs on the software device once
# more with the address and undefined-behaviour sanitizers, in build/sanitized. One run of ctest covers both.
set -e
cd "$(dirname "$0")/.."
python3 configure.py
ninja -C build
python3 configure.py --build-dir build/sanitized --sanitizers address,undefined --image build/normstatic.fatbin
ninja -C build/sanitized
ctest --test-dir build --output-on-failure --parallel "$(nproc)"
