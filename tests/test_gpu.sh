#!/usr/bin/env bash
# Training on a GPU, every generation of kernels: the same bits from a second run, from plain launches (--profile)
# and from streamed images as from replayed graphs; the same numbers as the reference; stopped and resumed to the
# same bits; and a profile that adds up. Skipped without a GPU.
. "$(dirname "$0")/cli_cases.sh"
"$program" info | grep -qE '^ *cuda +available' || { echo "skipped: no GPU"; exit 77; }

cat >net.net <<'NET'
input 32x32x3
conv enc1 32 3x3 relu pool2
conv enc2 16 3x3 relu pool2
latent
conv dec1 32 3x3 up2 relu
conv dec2 3 3x3 up2
loss mse
train epochs 3 batch 16 optimizer adam lr 1e-3 schedule cosine
NET
holds "a data set is made" "$program" data synth data --train 500 --test 60 --quiet

# train NAME ARGUMENTS...: a run of three epochs of 31 full steps and one of four images.
train() {
    local name=$1
    shift
    expect "$kernels: train, $name" 0 "" train net.net --backend cuda --kernels "$kernels" --data data --run "$kernels-$name" --quiet "$@"
}
same() {
    holds "$kernels: the bits of $1 and $2" cmp "$kernels-$1/model.safetensors" "$kernels-$2/model.safetensors"
}

for kernels in fused tiled basic gemm cudnn; do
    if ! "$program" profile net.net --backend cuda --kernels "$kernels" --batch 16 >/dev/null 2>said; then
        grep -qE 'cuBLAS|cuDNN' said && { echo "$kernels: left out, $(cat said)"; continue; }
    fi
    train graph
    train again
    same graph again
    train plain --profile
    same graph plain
    train streamed --stream-data
    same graph streamed
    expect "$kernels: selftest" 0 "" selftest net.net --backend cuda --kernels "$kernels" --images 640
done

kernels=fused
train whole --epochs 400
"$program" train net.net --backend cuda --data data --run fused-stopped --epochs 400 --quiet &
other=$!
for _ in $(seq 200); do
    [ -e fused-stopped/checkpoint.safetensors ] && break
    sleep 0.05
done
kill -INT $other
wait $other
holds "Ctrl-C ends with 130" [ $? = 130 ]
expect "and is resumed" 0 "" train --resume --run fused-stopped --quiet
same whole stopped

if command -v python3 >/dev/null; then
    # Rows of kernels add up to their op, and ops to the times of the epochs.
    cat >adds.py <<'PYTHON'
import json
ops, parts, step = json.load(open("fused-plain/profile.json"))["ops"], 0, 0
for i, op in enumerate(ops):
    if parts == 0:
        parts, step = op["parts"], step + op["seconds"] * (op["name"] != "other")
        told = sum(o["seconds"] for o in ops[i + 1:i + 1 + parts])
        assert parts == 0 or abs(told - op["seconds"]) < 0.01 * op["seconds"], op
    else:
        parts -= 1
epochs = [json.loads(line) for line in open("fused-plain/metrics.jsonl")]
keys = [key for key in epochs[0] if key.endswith("_seconds")]
booked = sum(e[k] for e in epochs for k in keys)
assert keys and abs(step * 32 * len(epochs) - booked) < 0.02 * booked, (step * 32 * len(epochs), booked, keys)
PYTHON
    holds "the profile adds up over the epochs" python3 adds.py
fi

expect "the ladder climbs" 0 "fused" bench ladder net.net --seconds 0.1 --batch 16 --quiet
expect "features on tensor cores" 0 "" features fused-graph --data data --precision bf16 --out bf16 --quiet
expect "and in fp32" 0 "" features fused-graph --data data --out fp32 --quiet
finish
