#!/usr/bin/env bash
# `latent run` with a small net on the plain backend: the whole way, what is skipped, what is redone after a
# change, and every way to be interrupted.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net
run=(run tiny.net --synthetic --synthetic-train 120 --synthetic-test 60 --backend ref)
stages="data train features svm eval report"

# skipped STAGES / worked STAGES: what the last call did with each of them.
skipped() { for s in $1; do holds "$2: $s is skipped" grep -Eq "\[./6\] $s +up to date" <<<"$output"; done; }
worked() {
    for s in $1; do
        holds "$2: $s is done" grep -Eq "\[./6\] $s +[a-z ]+$" <<<"$output"
        holds "$2: $s is not skipped" bash -c "! grep -Eq '\[./6\] $s +up to date' <<<\"\$0\"" "$output"
    done
}

# The whole way.
expect "the whole way" 0 "report  one/report.html" "${run[@]}" --run one
worked "$stages" "first call"
holds "it says that the set is synthetic" grep -q "making a synthetic set of 120 training and 60 test" <<<"$output"
for part in "target" "training  under 10 minutes" "features  60,000 images under 20 s" "accuracy  at least 60" \
    "GPU       over 20 times" "not measured" "accuracy [0-9.]*%, macro F1"; do
    holds "the summary has '$part'" grep -q -- "$part" <<<"$output"
done
for file in run.json config.json metrics.jsonl model.safetensors checkpoint.safetensors eval.json \
    pictures.safetensors profile.json report.html svm/model.safetensors svm/svm.json features/features.json \
    features/train.npy features/test.npy features/train_labels.npy features/test_labels.npy \
    features/scaling.safetensors data/data_batch_1.bin; do
    holds "the run has $file" [ -s "one/$file" ]
done
holds "nothing half-written is left" [ -z "$(find one -name '*.tmp*')" ]

# Again: nothing to do, nothing touched.
before=$(find one -type f -newermt @0 -printf '%p %T@\n' | grep -v run.json | sort)
expect "the second call" 0 "report  one/report.html" "${run[@]}" --run one
skipped "$stages" "second call"
holds "no file was touched" [ "$before" = "$(find one -type f -newermt @0 -printf '%p %T@\n' | grep -v run.json | sort)" ]
expect "as JSON" 0 '"stages_done_now": 0' "${run[@]}" --run one --json --quiet
holds "the JSON names the report" grep -q '"report": "one/report.html"' <<<"$output"
holds "--quiet leaves JSON alone" grep -q '^{' <<<"$(head -1 <<<"$output")"
mkdir -p deep/er
cd deep/er || exit 1
cp ../../tiny.net .
expect "from another folder" 0 "up to date" "${run[@]}" --run ../../one
skipped "$stages" "from another folder"
cd ../.. || exit 1

# A change redoes what depends on it, and no more.
expect "another C" 0 "C 2" "${run[@]}" --run one --c 2
skipped "data train features" "another C"
worked "svm eval report" "another C"
expect "raw features" 0 "512 features, raw" "${run[@]}" --run one --raw-features
skipped "data train" "raw features"
worked "features svm eval report" "raw features"
holds "raw features have no scaling" [ ! -e one/features/scaling.safetensors ]
expect "raw features, but of length 1" 0 "512 features, l2" "${run[@]}" --run one --raw-features --l2
expect "more epochs" 0 "resumed after epoch 2 of 3" "${run[@]}" --run one --epochs 3
skipped "data" "more epochs"
worked "train features svm eval report" "more epochs"
expect "another seed" 0 "epoch 1/2" "${run[@]}" --run one --seed 2
worked "train features svm eval report" "another seed"
expect "fewer images" 0 "2 epochs" "${run[@]}" --run one --seed 2 --subset 50
holds "the SVM sees them, too" grep -q "of 50 rows" <<<"$output"
rm one/svm/model.safetensors
expect "a missing model" 0 "" "${run[@]}" --run one --seed 2 --subset 50
skipped "data train features eval" "a missing model"
worked "svm report" "a missing model"
"$program" svm train one/features --out one/svm/model.safetensors --c 3 --backend ref --quiet >/dev/null
expect "a machine trained by hand" 0 "" "${run[@]}" --run one --seed 2 --subset 50
skipped "data train features" "a machine trained by hand"
worked "svm report" "a machine trained by hand"
holds "it says why" grep -q "one/svm/model.safetensors is not what the stage svm left there" <<<"$output"
truncate -s 1000 one/features/test.npy
expect "damaged features" 0 "" "${run[@]}" --run one --seed 2 --subset 50
worked "features" "damaged features"
skipped "svm eval" "damaged features"
expect "everything again" 0 "epoch 1/2" "${run[@]}" --run one --seed 2 --subset 50 --overwrite
holds "nothing is resumed" bash -c '! grep -q resumed <<<"$0"' "$output"
worked "data" "everything again"
worked "train features svm eval report" "everything again"

# The scores of a run.
expect "eval of the run" 0 "test accuracy" eval one --backend ref
holds "eval prints the confusion matrix" grep -q "rows: what it is, columns: what it was taken for" <<<"$output"
expect "eval as JSON" 0 '"confusion"' eval one --backend ref --json
for part in '"accuracy"' '"macro_f1"' '"per_class"' '"predict_seconds"' '"loss"' '"images": 60'; do
    holds "the JSON has $part" grep -q -- "$part" <<<"$output"
done
expect "eval of the training images" 0 "train accuracy" eval one --backend ref --split train --data one/data
expect "features alone" 0 "512 features, flip, standardize, l2" features one --backend ref --out elsewhere --subset 50
holds "they are the run's" cmp elsewhere/test.npy one/features/test.npy
expect "features as JSON" 0 '"write_seconds"' features one --backend ref --out elsewhere --format raw --json
holds "raw features have no header" [ "$(stat -c %s elsewhere/test.f32)" = $((60 * 512 * 4)) ]
expect "the steps contradict each other" 2 "--l2 and --no-l2 contradict" features one --l2 --no-l2
"$program" train tiny.net --run other --data one/data --backend ref --seed 9 --quiet >/dev/null
expect "an SVM of other weights" 1 "made from other weights" eval other --svm one/svm/model.safetensors --features one/features --backend ref
expect "an SVM without features" 2 "--svm needs --features" eval other/model.safetensors --svm one/svm/model.safetensors --data one/data

# Interrupted in the training, between two stages, by a full disk, and finished by the same command.
"$program" "${run[@]}" --run whole --epochs 12 --quiet >/dev/null 2>&1
wait_for() {
    for _ in $(seq 2000); do
        [ -s "$1" ] && return
        sleep 0.01
    done
}
cut() { # cut FOLDER FILE: starts a run and interrupts it as soon as the file is there
    "$program" "${run[@]}" --run "$1" --epochs 12 "${@:3}" >cut.txt 2>&1 &
    local job=$!
    wait_for "$1/$2"
    kill -INT $job
    code=0
    wait $job || code=$?
}
cut cut-train metrics.jsonl
holds "SIGINT in the training ends with 130" [ $code = 130 ]
holds "it says how to go on" grep -q "the same command goes on" cut.txt
holds "and names no flag that it has not" bash -c '! grep -q -- --resume cut.txt'
holds "nothing after it was made" [ ! -e cut-train/features ]
expect "the same command finishes" 0 "report  cut-train/report.html" "${run[@]}" --run cut-train --epochs 12
holds "it went on where it was" grep -q "resumed" <<<"$output"
expect "to the same model" 0 "equal" compare whole cut-train
holds "to the same features" cmp whole/features/train.npy cut-train/features/train.npy
holds "to the same machine" cmp whole/svm/model.safetensors cut-train/svm/model.safetensors
expect "--until train" 0 "train" "${run[@]}" --run cut-between --epochs 12 --until train
holds "it stopped there" [ ! -e cut-between/features ]
cut cut-between features/features.json --c 1e3
if [ $code = 130 ]; then
    pass "SIGINT after the features ends with 130"
    holds "the features are whole" [ -s cut-between/features/test.npy ]
else
    holds "the run was over before the signal" [ $code = 0 ]
fi
expect "the same command finishes that, too" 0 "report  cut-between/report.html" "${run[@]}" --run cut-between --epochs 12
skipped "data train features" "after the interruption"
holds "to the same machine" cmp whole/svm/model.safetensors cut-between/svm/model.safetensors
expect "up to the training" 0 "train" "${run[@]}" --run full --until train
code=0
said=$(bash -c 'ulimit -f 150; exec "$0" "$@"' "$program" "${run[@]}" --run full --no-flip 2>&1) || code=$?
holds "a full disk fails" [ $code = 1 ]
holds "and is named" grep -q "features/train.npy: cannot write" <<<"$said"
holds "no half of the features is left" [ -z "$(ls full/features)" ]
expect "with room the same command finishes" 0 "report  full/report.html" "${run[@]}" --run full --no-flip
skipped "data train" "after the full disk"

# What is wrong is said.
expect "a gamma that is none" 2 "--gamma wide: it takes scale, auto or a number above 0" "${run[@]}" --gamma wide
expect "a C of 0" 2 "--c 0: it takes a number above 0" "${run[@]}" --c 0
expect "two data sets" 2 "--data names a set and --synthetic makes one" "${run[@]}" --data one/data
expect "sizes of a set that is not made" 2 "one/data is taken" run tiny.net --data one/data --synthetic-train 90 --run no
expect "gamma for the linear kernel" 2 "the linear kernel has none" "${run[@]}" --kernel linear --gamma 3 --run no
expect "a file where the run should be" 1 "cannot create the folder tiny.net: a file has that name" \
    "${run[@]}" --run tiny.net
grep -v latent tiny.net >blind.net
expect "a net without a latent line" 1 "has no latent line" run blind.net --synthetic --run blind
holds "nothing is written for it" [ ! -e blind ]
expect "a run that was made by hand" 1 "did not make" "${run[@]}" --run other
echo '{"format": 1}' >one/run.json
expect "a damaged journal" 1 'run.json: "format" must be' "${run[@]}" --run one
holds "the way out is named" grep -q "with --overwrite does every stage again" <<<"$output"
expect "a data folder without data" 1 "nowhere" run tiny.net --data nowhere --run fresh --backend ref
holds "no folder is made for it" [ ! -e fresh ]
expect "a subset that there is not" 2 "has 120 training images" run tiny.net --data one/data --subset 500 --run fresh
holds "nor for that" [ ! -e fresh ]
expect "a ladder that is not there" 1 "missing.json" "${run[@]}" --run fresh --ladder missing.json
echo '{"rungs": 1}' >bad.json
expect "a ladder that is none" 1 'no list under "rungs"' "${run[@]}" --run fresh --ladder bad.json
holds "it is found before the first stage" [ ! -e fresh ]
expect "JSON of a run that has only its data" 0 '"stages_done_now": 1' "${run[@]}" --run fresh --until data --json --quiet
holds "with no targets yet" grep -q '"targets": \[\]' <<<"$(tr -d '\n' <<<"$output")"
expect "an engine that there is not" 1 "computes in fp32 only" "${run[@]}" --run cut-train --epochs 12 --precision bf16
expect "it has erased nothing" 0 "" "${run[@]}" --run cut-train --epochs 12
skipped "$stages" "after the engine that there is not"

# Without a data set at hand a synthetic one is made and said; one in ./data is taken.
mkdir empty
cd empty || exit 1
expect "no data at hand" 0 "no data set at hand" run ../tiny.net --synthetic-train 60 --synthetic-test 30 --backend ref
holds "the run is runs/NET" [ -s runs/tiny/report.html ]
mv runs/tiny/data data
holds "the command says so" grep -q '"command":"latent run ../tiny.net [^"]*--synthetic --run runs/tiny"' runs/tiny/run.json
expect "./data is taken" 0 "60 training and 30 test images" run ../tiny.net --run again --backend ref --until data
holds "no other set is made" [ ! -e again/data ]
holds "the command names it" grep -q -- "--data $PWD/data --run again" again/run.json
LATENT_DATA=$PWD/data expect "\$LATENT_DATA is taken" 0 "" run ../tiny.net --run third --backend ref --until data
holds "the command names that, too" grep -q -- "--data $PWD/data --run third" third/run.json
cd .. || exit 1
finish
