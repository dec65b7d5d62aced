#!/usr/bin/env bash
# Measuring and proving: bench, profile, selftest; and two that train in one folder, and the engine of a resumed
# run.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net
json() { # json FILE EXPRESSION: what Python makes of it; without Python the check is left to grep
    python3 -c "import json, sys; d = [json.loads(l) for l in open(sys.argv[1])]; assert $2, d" "$1"
}

expect "bench train prints a table" 0 "images/s" bench train tiny.net --backend ref --batch 8 --seconds 0.2
holds "with each op and its share" grep -qE '^enc +forward +[^ ]+ +[0-9.]+ +[0-9.]+%' <<<"$output"
holds "and the kinds of work" grep -qE '^convolution backward +[0-9.]+ ms +[0-9.]+%' <<<"$output"
cat >small.net <<'NET'
input 7x9x2
conv enc 2 3x3
loss mse
train epochs 1 batch 3 optimizer sgd lr 1e-3
NET
expect "images of any size" 0 "images/s" bench train small.net --backend ref --seconds 0.1 --out small.jsonl
expect "bench train again" 0 "" bench train tiny.net --backend ref --batch 8 --seconds 0.2 --json
holds "the file has a line for each" [ "$(wc -l <bench.jsonl)" = 2 ]
if command -v python3 >/dev/null; then
    holds "of JSON" json bench.jsonl 'len(d) == 2 and d[1]["batch"] == 8 and d[1]["images_per_second"] > 0 and len(d[1]["ops"]) >= 4'
fi
expect "a file that cannot be written is told" 1 "cannot append" bench train tiny.net --backend ref --seconds 0.1 --out no/such/file

expect "the ladder climbs" 0 "over ref" bench ladder tiny.net --seconds 0.1 --batch 8 --quiet
holds "from the reference" grep -qE '^ref .* 1.0x' <<<"$output"
holds "says what is extrapolated" grep -qF 'images, extrapolated' <<<"$output"
holds "and writes it for the report" grep -qF '"speedup_over_previous"' ladder.json

expect "profile names the kernels" 0 "reference" profile tiny.net --backend ref --batch 8
expect "selftest of the reference itself" 0 "the same computation" selftest tiny.net --backend ref --images 64
holds "writes no file unless asked" [ ! -e weights.safetensors ]
expect "selftest through a weight file" 0 '"good": true' selftest tiny.net --backend ref --images 0 --weights weights.safetensors --json
holds "which is a model file" "$program" compare weights.safetensors weights.safetensors

holds "a small data set is made" "$program" data synth data --train 60 --test 10 --quiet
expect "train --profile" 0 "convolution forward" train tiny.net --backend ref --data data --run run --epochs 2 --profile
holds "writes it for the report" grep -qF '"kind": "convolution backward"' run/profile.json
expect "the same bits as without" 0 "" train tiny.net --backend ref --data data --run plain --epochs 2
holds "compared" "$program" compare run plain

holds "the run remembers its engine" grep -qF '"backend":"ref"' run/config.json
expect "a resumed run takes it" 0 "engine  ref" train --resume --run run --epochs 3

if command -v python3 >/dev/null && "$program" info | grep -qE '^ *cpu +available' && ! ldd "$program" | grep -q asan; then
    # The table that train prints is the process's memory: the peak may lie 10% beside it.
    holds "a larger data set is made" "$program" data synth more --train 256 --test 10 --quiet
    peak=$(python3 - "$program" <<'PYTHON'
import re, resource, subprocess, sys
run = subprocess.run([sys.argv[1], "train", "--backend", "cpu", "--data", "more", "--run", "peak", "--epochs", "1",
                      "--batch", "128"],
                     capture_output=True, text=True, check=True)
size, unit = re.search(r"total +([0-9.]+) ([kMG])B", run.stderr).groups()
table = float(size) * {"k": 1e3, "M": 1e6, "G": 1e9}[unit]
print(round(100 * 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / table))
PYTHON
    )
    holds "peak memory is $peak% of the table" [ "${peak:-0}" -ge 90 -a "${peak:-0}" -le 110 ]
fi

"$program" train tiny.net --backend ref --data data --run busy --epochs 1000000 --quiet &
other=$!
for _ in $(seq 100); do
    [ -e busy/checkpoint.safetensors ] && break
    sleep 0.1
done
expect "two cannot train in one folder" 1 "another process is training" train tiny.net --backend ref --data data --run busy --overwrite --epochs 1
expect "nor resume there" 1 "another process is training" train --resume --run busy
kill -INT $other
wait $other
holds "the first is not disturbed" [ $? = 130 ]
expect "and afterwards the folder is free" 0 "" train tiny.net --backend ref --data data --run busy --overwrite --epochs 1
finish
