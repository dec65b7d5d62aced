#!/usr/bin/env bash
# Input that is wrong, each kind once: the exit code and the part of the sentence that helps.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net
holds "a small data set is made" "$program" data synth good --train 40 --test 20 --quiet
train() { # WHAT CODE PART DATA NET RUN
    expect "$1" "$2" "$3" train "$5" --data "$4" --run "$6" --backend ref --quiet
}
broken_copy() { # NAME: a copy of the good set to spoil
    rm -rf "$1"
    cp -r good "$1"
    batch=$(find "$1" -name data_batch_1.bin)
}

# Data.
train "missing data folder" 1 "nowhere" nowhere tiny.net run
holds "nothing is left of a run that could not begin" [ ! -e run ]
expect "no data set anywhere" 1 "latent data synth" train tiny.net --run run
for place in '$LATENT_DATA' ./data "$XDG_CACHE_HOME/latent" "latent data download"; do
    holds "the message names $place" grep -qF -- "$place" <<<"$output"
done
broken_copy truncated
truncate -s -100 "$batch"
train "truncated batch file" 1 "data_batch_1.bin" truncated tiny.net run
broken_copy labelled
printf '\x11' | dd of="$batch" bs=1 seek=$((3 * 3073)) conv=notrunc status=none
train "label 17" 1 "data_batch_1.bin" labelled tiny.net run
holds "the label is named" grep -q "17" <<<"$output"
holds "its offset is named" grep -q "9219" <<<"$output"
broken_copy empty
: >"$batch"
train "empty file" 1 "data_batch_1.bin" empty tiny.net run
mkdir hollow
train "a folder without batch files" 1 "hollow" hollow tiny.net run
expect "data info of a broken set" 1 "data_batch_1.bin" data info truncated
expect "more images than there are" 2 "--subset 41: the data set has 40" train tiny.net --data good --subset 41
cp -r good real
find real -type f ! -name '*.bin' -delete
expect "synth spares a set that is not synthetic" 2 "never overwritten" data synth real --train 10 --test 10
expect "synth replaces a synthetic set" 0 "" data synth truncated --train 10 --test 10 --quiet
expect "download from a missing archive" 1 "missing.tar.gz" data download d --from missing.tar.gz
holds "a failed download leaves no set" [ ! -e d/cifar-10-batches-bin ]

# Run folders.
: >file
train "a file in place of the run folder" 1 "file" good tiny.net file
train "a run folder that cannot be made" 1 "file/run" good tiny.net file/run
if [ "$(id -u)" != 0 ]; then
    mkdir -m 555 locked
    train "unwritable run folder" 1 "locked" good tiny.net locked
fi
train "a good run" 0 "loss" good tiny.net good-run
train "a folder that has a run" 1 "--overwrite" good tiny.net good-run
expect "--overwrite replaces a run" 0 "loss" train tiny.net --data good --run good-run --overwrite --backend ref
expect "--resume of nothing" 2 "nothing" train --resume --run nothing
expect "eval of nothing" 1 "nothing" eval nothing
expect "info of a missing file" 2 "missing.net" info missing.net
expect "compare with nothing" 1 "nothing" compare good-run nothing

# A full disk.
cat >wide.net <<'NET'
input 32x32x3
conv enc 64 3x3 relu pool2
conv mid 64 3x3 relu
latent
conv dec 3 3x3 up2
loss mse
train epochs 1 batch 16
NET
(ulimit -f 64 && "$program" train wide.net --data good --run full --backend ref >full.txt 2>&1)
holds "a full disk is a failure" [ $? = 1 ]
holds "a full disk is named" grep -qi "too large" full.txt
holds "no half file stays behind" [ -z "$(find full -size +60k)" ]
cp -r good-run grown
expect "a run before the disk is full" 0 "" compare good-run grown
(ulimit -f 1 && "$program" train --resume --run grown --epochs 4 --backend ref >full.txt 2>&1)
holds "a resumed run on a full disk fails" [ $? = 1 ]
expect "its checkpoint survives" 0 "4 of 4" train --resume --run grown --epochs 4 --backend ref

# Net files.
sed 's/^conv dec/cnov dec/' tiny.net >word.net
train "wrong word in a net file" 1 "word.net:4" good word.net run
holds "the right word is named" grep -q "conv" <<<"$output"
sed 's/relu/rleu/' tiny.net >attribute.net
train "wrong attribute in a net file" 1 "did you mean 'relu'" good attribute.net run
sed 's/^conv enc.*/conv enc 2 40x40 valid/' tiny.net >shape.net
train "shape that cannot work" 1 "shape.net:2" good shape.net run
sed 's/ up2//' tiny.net >small.net
train "output of another size than the input" 1 "small.net" good small.net run
sed 's/32x32x3/16x16x3/' tiny.net >other-input.net
expect "data of another size than the net" 2 "16x16x3" train other-input.net --data good --run run --backend ref
: >nothing.net
train "empty net file" 1 "nothing.net" good nothing.net run
head -c 3000 /dev/urandom >noise.net
train "noise for a net file" 1 "noise.net" good noise.net run

# Models and checkpoints.
expect "checkpoint of another net" 1 "the net 'wide' wants" eval good-run --net wide.net --data good
train "a run of another net" 0 "" good wide.net wide-run
expect "runs of different nets" 1 "wide-run" compare good-run wide-run
for kind in truncated flipped noise empty; do
    rm -rf "corrupt-$kind"
    cp -r good-run "corrupt-$kind"
    file=corrupt-$kind/checkpoint.safetensors
    case $kind in
    truncated) truncate -s -7 "$file" ;;
    flipped) printf '\xff\xff\xff\xff' | dd of="$file" bs=1 seek=4 conv=notrunc status=none ;;
    noise) head -c 5000 /dev/urandom >"$file" ;;
    empty) : >"$file" ;;
    esac
    expect "corrupt checkpoint: $kind" 1 "$file" train --resume --run "corrupt-$kind" --epochs 5 --backend ref
done
truncate -s -1 corrupt-noise/model.safetensors
expect "corrupt model file" 1 "model.safetensors" eval corrupt-noise/model.safetensors --data good
expect "ae2024 of a net that is not the autoencoder" 1 "" export good-run out.ae2024
holds "no file is left of it" [ ! -e out.ae2024 ]
printf '\x24\x20\xae\x00\x01\x00\x00\x00' >short.bin
expect "ae2024 file that is too short" 1 "short.bin" import short.bin --out model.safetensors
holds "no model is made of it" [ ! -e model.safetensors ]
expect "a picture that cannot be written" 1 "file/picture.png" reconstruct good-run --out file/picture.png --backend ref

# A rate that makes the weights explode ends with a sentence.
expect "training that diverges" 1 "--lr" train tiny.net --data good --run wild --optimizer sgd --lr 1e6 --backend ref
"$program" info --json | grep -q '"cuda"' ||
    expect "a backend that is not compiled in" 1 "cuda" train tiny.net --data good --run run --backend cuda
finish
