#!/bin/sh
# Installs what the build and the tests need and this machine lacks, from Debian's packages. What comes from PyPI (the
# generator's Jinja2 and, without a CUDA toolkit, NVIDIA's compiler) is installed by configure.py, into build/venv.
set -e

missing=
need() { # need PACKAGE COMMAND...: the command succeeds where the package is not needed
  package=$1
  shift
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}
has_header() { # each of the headers, in this order
  for header; do echo "#include <$header>"; done | cc -E -x c -
}

need gcc sh -c 'command -v cc'
need g++ sh -c 'command -v c++'
need libc6-dev has_header stdio.h
need binutils sh -c 'command -v ar && command -v nm && command -v objdump'
need ninja-build sh -c 'command -v ninja'
need cmake sh -c 'command -v ctest'
need python3 sh -c 'command -v python3'
need python3-venv python3 -c 'import ensurepip, venv'
need libcmocka-dev has_header setjmp.h stdarg.h stddef.h stdint.h cmocka.h
need libjansson-dev has_header jansson.h

if [ -z "$missing" ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "setup: install what these Debian packages hold:$missing" >&2
  exit 1
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
echo "setup: installing$missing"
$as_root apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
