#!/usr/bin/env bash
# The whole way with a small net: make data, train, evaluate, look, export, import, compare, interrupt, resume.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net

# Data, and the places where it is looked for.
expect "synth writes a set" 0 "200 training and 50 test images" data synth data --train 200 --test 50
expect "data info counts it" 0 "synthetic" data info data
holds "data info shows the total" grep -Eq 'total +200 +50' <<<"$output"
expect "data info as JSON" 0 '"train": 200' data info data --json
expect "./data is found" 0 "250 images" data info
expect "synth again" 0 "" data synth again --train 200 --test 50 --quiet
holds "same arguments, same bytes" diff -r data again
expect "synth with another seed" 0 "seed 2" data synth again --train 200 --test 50 --seed 2
holds "another seed, other bytes" bash -c '! diff -rq data again >/dev/null'
export LATENT_DATA=$folder/again
expect "\$LATENT_DATA goes before ./data" 0 "again" data info
export LATENT_DATA=$folder/missing
expect "a wrong \$LATENT_DATA is named" 1 "LATENT_DATA" data info
unset LATENT_DATA
mkdir -p "$XDG_CACHE_HOME"
mv again "$XDG_CACHE_HOME/latent"
mkdir elsewhere
cd elsewhere || exit 1
expect "the cache folder is found" 0 "250 images" data info
cd ..

# Train, evaluate, look.
expect "train" 0 "epochs  2 of 2" train tiny.net --run one --backend ref
for part in "engine  ref" "data    ./data, 200 of 200" "weights" "gradients" "optimizer" "activations" "masks" \
    "total" "epoch 1/2" "epoch 2/2" "images/s" "forward" "backward" "run     one"; do
    holds "train says '$part'" grep -qF -- "$part" <<<"$output"
done
for file in config.json metrics.jsonl checkpoint.safetensors model.safetensors; do
    holds "the run has $file" [ -s "one/$file" ]
done
said=$("$program" train tiny.net --run two --backend ref --quiet 2>&1 >two.txt)
holds "--quiet says nothing on stderr" [ -z "$said" ]
holds "the summary is on stdout" grep -q "^loss" two.txt
"$program" train tiny.net --backend ref --subset 5% --epochs 1 --json >three.json 2>/dev/null
holds "train --json" grep -q '"images": 10,' three.json
three=$(sed -n 's/.*"run": "\(.*\)",/\1/p' three.json)
holds "a run without a name is runs/tiny-DATE-TIME" grep -Eq '^runs/tiny-[0-9]{8}-[0-9]{6}$' <<<"$three"
holds "and it is there" [ -s "$three/model.safetensors" ]
expect "eval" 0 "test loss" eval one --backend ref
holds "eval counts the test images" grep -Eq '^images +50$' <<<"$output"
expect "eval of the training split as JSON" 0 '"images": 200' eval one --split train --json --backend ref
expect "eval of a model file" 0 "test loss" eval one/model.safetensors --data data --backend ref
expect "reconstruct" 0 "mean squared error" reconstruct one --backend ref
holds "the picture is a PNG" cmp -n 8 one/reconstruction.png <(printf '\x89PNG\r\n\x1a\n')
expect "reconstruct into a file" 0 "out.png" reconstruct one --out out.png --backend ref
holds "both pictures are equal" cmp one/reconstruction.png out.png
expect "info of a run" 0 "dec" info one
expect "info of a model file" 0 "dec" info one/model.safetensors

mkdir bare
cp one/model.safetensors bare
expect "eval of a folder with nothing but a model" 0 "test loss" eval bare --backend ref

# Weights in and out.
expect "two runs are equal" 0 "equal within the tolerance" compare one two
expect "another run is different" 3 "different:" compare one "$three"
expect "compare --quiet prints the verdict alone" 3 "different:" compare one "$three" --quiet
holds "one line" [ "$(wc -l <<<"$output")" = 1 ]
expect "within a large tolerance" 0 "equal within the tolerance" compare one "$three" --tolerance 100
expect "within a large relative tolerance" 0 "" compare one "$three" --relative 2.1
expect "compare as JSON" 3 '"equal": false' compare one "$three" --json
expect "export" 0 "wrote weights.safetensors" export one weights.safetensors
expect "import" 0 "wrote model.safetensors" import weights.safetensors --net tiny.net --out model.safetensors
expect "what was exported and imported is equal" 0 "equal" compare one model.safetensors
expect "the imported model names its net" 0 "test loss" eval model.safetensors --backend ref
"$program" train --data data --run auto --subset 1 --epochs 1 --batch 1 --backend ref --quiet >/dev/null 2>&1
expect "export as ae2024" 0 "wrote auto.ae2024" export auto auto.ae2024
holds "the ae2024 file has its size" [ "$(stat -c %s auto.ae2024)" = 3007508 ]
expect "import of ae2024" 0 "751,875 parameters" import auto.ae2024 --out auto.safetensors
expect "the ae2024 file lost nothing" 0 "equal" compare auto auto.safetensors

# Everything that --json prints is JSON.
if command -v python3 >/dev/null; then
    "$program" eval one --json --backend ref >eval.json 2>/dev/null
    "$program" compare one "$three" --json >compare.json
    "$program" data info data --json >data.json
    "$program" info one --json >info.json
    for file in three.json eval.json compare.json data.json info.json; do
        holds "$file is JSON" python3 -m json.tool "$file"
    done
fi

# Interrupt and resume: the same bits as a run that never stopped.
lines() { wc -l 2>/dev/null <"$1/metrics.jsonl" || echo 0; }
"$program" train tiny.net --run whole --epochs 12 --backend ref --quiet >/dev/null
for signal in INT TERM; do
    "$program" train tiny.net --run "cut-$signal" --epochs 12 --backend ref >cut.txt 2>&1 &
    job=$!
    for _ in $(seq 600); do
        [ "$(lines "cut-$signal")" -ge 2 ] && break
        sleep 0.05
    done
    kill "-$signal" $job
    code=0
    wait $job || code=$?
    holds "SIG$signal ends with 130" [ $code = 130 ]
    holds "it says how to go on" grep -qF "latent train --resume --run cut-$signal" cut.txt
    holds "it stopped before its end" [ "$(lines "cut-$signal")" -lt 12 ]
    expect "--resume after SIG$signal" 0 "12 of 12" train --resume --run "cut-$signal" --backend ref
    expect "the resumed run equals the whole one" 0 "equal" compare whole "cut-$signal"
    holds "its checkpoint, optimizer included, too" cmp whole/checkpoint.safetensors "cut-$signal/checkpoint.safetensors"
done
expect "--epochs extends a run" 0 "4 of 4" train --resume --run two --epochs 4 --backend ref
expect "a run of that length" 0 "" train tiny.net --run four --epochs 4 --backend ref --quiet
expect "the extended run equals it" 0 "equal" compare two four
expect "a complete run has nothing to do" 0 "complete already" train --resume --run two --backend ref
finish
