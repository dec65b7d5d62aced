#!/usr/bin/env bash
# `latent run` and `latent eval` on a run folder that was damaged, killed, tampered with, or whose data is not
# what it was: what can be made again is, what is not the run's is not taken for it.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net
"$program" data synth set --train 120 --test 60 --quiet
"$program" data synth other --train 120 --test 60 --seed 5 --quiet
run=(run tiny.net --data set --backend ref)
# done_now: the stages that the last call did, in one line.
done_now() { grep -oE '\[./6\] [a-z]+ +[a-z ]+$' <<<"$output" | awk '{printf "%s ", $2}'; }
heals() { # heals WHAT STAGES [OPTION...]: the same command does these stages again, and then nothing more
    expect "$1: finishes" 0 "report  one/report.html" "${run[@]}" --run one "${@:3}"
    holds "$1: does '$2' ($(done_now))" [ "$(done_now)" = "$2 " ]
    expect "$1: is healed" 0 "" "${run[@]}" --run one
    holds "$1: nothing is left to do ($(done_now))" [ -z "$(done_now)" ]
}
expect "a run" 0 "report  one/report.html" "${run[@]}" --run one
cp -r one good

# Files that are gone or cut short.
for file in model.safetensors config.json profile.json; do
    rm one/$file
    heals "no $file" "train report"
    holds "no $file: it is back" [ -s one/$file ]
done
holds "the model is the same" cmp good/model.safetensors one/model.safetensors
holds "the summary still has the loss" grep -q '2 epochs, loss' one/run.json
truncate -s 100 one/model.safetensors
heals "half a model" "train report"
truncate -s 100 one/checkpoint.safetensors
heals "half a checkpoint" "train report"
holds "the training was the same" cmp good/model.safetensors one/model.safetensors
rm one/metrics.jsonl
expect "no metrics" 0 "metrics.jsonl has 0 of 2 epochs" "${run[@]}" --run one
holds "the way out is named" grep -q -- "--overwrite trains anew and restores it" <<<"$output"
expect "everything again" 0 "epoch 1/2" "${run[@]}" --run one --overwrite
holds "the metrics are back" [ "$(wc -l <one/metrics.jsonl)" = 2 ]
for file in svm/model.safetensors svm/svm.json; do
    rm one/$file
    heals "no $file" "svm report"
done
truncate -s 50 one/svm/model.safetensors
heals "half a machine" "svm report"
holds "the machine is the same" cmp good/svm/model.safetensors one/svm/model.safetensors
rm one/features/scaling.safetensors
heals "no scaling" "features report"
rm one/pictures.safetensors
heals "no pictures" "eval report"
rm one/report.html
heals "no report" "report"
sed -i 's/\("name":"eval.json","fingerprint":"\)[0-9a-f]*/\1x/' one/run.json
heals "a record that names no file's mark" "eval report"
for file in run.json model.safetensors checkpoint.safetensors metrics.jsonl svm/model.safetensors \
    features/features.json eval.json; do
    truncate -s 20 one/$file
done
expect "half of everything" 1 "with --overwrite does every stage again" "${run[@]}" --run one
heals "half of everything" "data train features svm eval report" --overwrite

# What somebody else put there.
"$program" svm train one/features --out one/svm/model.safetensors --c 0.01 --backend ref --quiet >/dev/null
heals "another machine" "svm report"
holds "the machine is the run's" cmp good/svm/model.safetensors one/svm/model.safetensors
# A CPU without AMX computes in fp32 only; there, the bits of one feature stand for another precision.
if ! "$program" features one --backend cpu --precision bf16 --quiet >/dev/null 2>&1; then
    printf '\001' | dd of=one/features/train.npy bs=1 seek=5000 conv=notrunc status=none
    sed -i 's/"precision":"fp32"/"precision":"bf16"/' one/features/features.json
fi
expect "other features" 0 "is not what the SVM was trained on: it was made anew since, in bf16" eval one --backend ref
heals "other features" "features eval report"

# Killed before the first checkpoint: the settings are there, and nothing to go on from.
expect "only the data" 0 "" "${run[@]}" --run early --until data
cp good/config.json early/
expect "killed early" 0 "report  early/report.html" "${run[@]}" --run early
holds "to the same model" cmp good/model.safetensors early/model.safetensors

# Killed in the features: what it left goes with the next run of the stage.
sh -c 'exit 0' &
gone=$!
wait $gone
expect "only the training" 0 "" "${run[@]}" --run killed --until train
mkdir killed/features
touch killed/features/train.npy.tmp.$gone killed/features/test.npy.tmp.$gone killed/features/mine.tmp.$gone
expect "killed in the features" 0 "" "${run[@]}" --run killed --until features
holds "nothing half-written is left" [ "$(find killed -name '*.tmp.*')" = killed/features/mine.tmp.$gone ]

# Interrupted in the training: the stage takes what all its pieces took.
seconds() { sed 's/{"name"/\n&/g' "$1/run.json" | sed -n 's/^{"name":"train".*"seconds":\([0-9.e-]*\).*/\1/p'; }
"$program" "${run[@]}" --run pieces --epochs 40 >/dev/null 2>&1 &
job=$!
for _ in $(seq 2000); do
    [ -s pieces/metrics.jsonl ] && break
    sleep 0.01
done
sleep 0.5
kill -INT $job
wait $job
first=$(seconds pieces)
holds "the first piece is on record: ${first:-none}" awk "BEGIN { exit !(${first:-0} > 0.4) }"
expect "the rest" 0 "resumed" "${run[@]}" --run pieces --epochs 40 --until train
holds "both pieces count: $(seconds pieces)" awk "BEGIN { exit !($(seconds pieces) > $first) }"

# Other contents under the same path.
cp -r set was
cp other/*.bin set/
expect "other contents" 0 "epoch 1/2" "${run[@]}" --run one
holds "all is made again ($(done_now))" [ "$(done_now)" = "data train features svm eval report " ]
expect "train --resume on other contents" 2 "started on other images or labels" train --resume --run good --epochs 3 --backend ref
cp was/*.bin set/
expect "the contents it was started on" 0 '"resumed_epoch": 2' train --resume --run good --epochs 3 --backend ref --quiet --json
mv set moved
expect "the same contents elsewhere" 0 "" run tiny.net --data moved --backend ref --run early
holds "only the data is looked at anew ($(done_now))" [ "$(done_now)" = "data report " ]

# eval on data that is not the run's.
before=$(find early -type f -printf '%p %T@\n' | sort)
expect "eval on other data" 0 "test loss" eval early --data other --backend ref
holds "no accuracy of other images" bash -c '! grep -q "test accuracy" <<<"$0"' "$output"
holds "it says why" grep -q "no accuracy: the features in early/features are not those of the images in other" <<<"$output"
expect "as JSON" 0 '"unscored"' eval early --data other --backend ref --json
holds "nothing in the run has changed" [ "$before" = "$(find early -type f -printf '%p %T@\n' | sort)" ]
expect "asked for by name it is refused" 1 "are not those of the images" eval early --data other --features early/features --backend ref
expect "features of the other data" 0 "" features early --data other --out theirs --backend ref
expect "with those there is an accuracy" 0 "test accuracy" eval early --data other --features theirs --backend ref
holds "and still nothing is kept" [ "$before" = "$(find early -type f -printf '%p %T@\n' | sort)" ]
rm -r early/features
expect "a run without features" 0 "no accuracy: early/features holds no features" eval early --data moved --backend ref
holds "the loss is there" grep -q "test loss" <<<"$output"
holds "and the scores of before are kept" grep -q '"accuracy"' early/eval.json

# Fewer images decide nothing.
expect "a summary of fewer images" 0 "not comparable: 50 of 50,000 images" run tiny.net --data moved --subset 50 --run few --backend ref
expect "as JSON" 0 '"reached": "not comparable"' run tiny.net --data moved --subset 50 --run few --backend ref --json --quiet
finish
