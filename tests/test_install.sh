#!/usr/bin/env bash
# Installs the build into an empty prefix and uses it as a stranger would: the header alone, pkg-config,
# the example against the shared and the static library, the program without the source tree.
set -euo pipefail
program=$1
build=$(dirname "$program")
source=$(cd "$(dirname "$0")/.." && pwd)
compiler=${CC:-cc}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "test_install: $*" >&2
    exit 1
}

prefix=$folder/prefix
cmake --install "$build" --prefix "$prefix" >"$folder/log" || fail "cmake --install: $(cat "$folder/log")"
shared=$(find "$prefix" -name liblatent.so)
static=$(find "$prefix" -name liblatent.a)
[ -n "$shared" ] || fail "no liblatent.so was installed"
[ -n "$static" ] || fail "no liblatent.a was installed"
libdir=$(dirname "$shared")

# The shared library shows the public names and nothing else, and all of those that the header declares.
nm -D --defined-only "$shared" | awk '{ print $NF }' | sort >"$folder/names"
# The sanitizers' own run-time names are not ours to hide.
foreign=$(grep -vE '^latent_|^__(asan|ubsan|odr_asan)' "$folder/names" || true)
[ -z "$foreign" ] || fail "the shared library exports $foreign"
declared=$(grep -ohE '^LATENT_API .*' "$prefix/include/latent.h" | grep -oE 'latent_[a-z0-9_]+\(' | tr -d '(')
[ "$(wc -w <<<"$declared")" -gt 40 ] || fail "found only these functions in the header: $declared"
for name in $declared; do
    grep -qx "$name" "$folder/names" || fail "the header declares $name and the shared library lacks it"
done

# The header stands alone in C11 and in C++, and brings no types of CUDA, MPI or BLAS along.
echo '#include <latent.h>' >"$folder/alone.c"
"$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -c "$folder/alone.c" -o "$folder/alone.o" ||
    fail "the header does not compile by itself"
"$compiler" -x c++ -std=c++11 -fsyntax-only -I"$prefix/include" "$folder/alone.c" 2>"$folder/log" ||
    grep -q 'cc1plus' "$folder/log" || fail "the header is not C++: $(cat "$folder/log")"
if grep -nE '\b(cuda|cublas|cudnn|nccl|MPI_|cblas)[A-Za-z_]*_t\b|#include <(cuda|cublas|cudnn|nccl|mpi|cblas)' \
    "$prefix/include/latent.h"; then
    fail "the public header shows types of a library that it should hide"
fi

# The example, against either library.
export PKG_CONFIG_PATH=$libdir/pkgconfig
version=$(pkg-config --modversion latent) || fail "pkg-config does not find latent"
grep -q "LATENT_VERSION \"$version\"" "$prefix/include/latent.h" || fail "latent.pc says version $version"
cp "$source/examples/train.c" "$folder/train.c"
flags="-std=c11 -Wall -Wextra -Werror ${CFLAGS:-} $(pkg-config --cflags latent)"
# shellcheck disable=SC2086
"$compiler" $flags "$folder/train.c" $(pkg-config --libs latent) -o "$folder/train-shared" ||
    fail "the example does not build against the shared library"
# shellcheck disable=SC2046,SC2086
"$compiler" $flags "$folder/train.c" $(pkg-config --static --libs latent | sed 's/-llatent/-l:liblatent.a/') \
    -o "$folder/train-static" || fail "the example does not build against the static library"
LD_LIBRARY_PATH=$libdir "$folder/train-shared" "$folder/one" >"$folder/one.txt" || fail "train-shared failed"
"$folder/train-static" "$folder/two" >"$folder/two.txt" || fail "train-static failed"
grep -qE '^epoch 1 of 1: loss 0\.[0-9]+' "$folder/one.txt" || fail "no loss in: $(cat "$folder/one.txt")"
cmp "$folder/one/weights.safetensors" "$folder/two/weights.safetensors" || fail "the two builds differ in weights"

# The installed program needs nothing of the source tree: the presets are in it.
(cd / && "$prefix/bin/latent" info autoencoder >"$folder/info.txt") || fail "the installed program failed"
grep -q '751,875\|751875' "$folder/info.txt" || fail "latent info autoencoder says: $(cat "$folder/info.txt")"
echo "installed version $version works from $prefix"
