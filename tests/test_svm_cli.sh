#!/usr/bin/env bash
# `latent svm`: train, predict and grid on small sets, with every kind of input file, and what it says when
# something is wrong.
. "$(dirname "$0")/cli_cases.sh"

# Three clusters in the plane as LIBSVM's text; awk's random numbers are the same everywhere that matters here.
rows() { # SEED COUNT
    awk -v seed="$1" -v count="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < count; i++) {
            c = i % 3
            printf "%d 1:%.6f 2:%.6f\n", c * 5 - 4, (c == 1) * 3 + rand() * 2, (c == 2) * 3 + rand() * 2
        }
    }'
}
rows 1 210 >train.txt
rows 2 30 >test.txt
cut -d' ' -f1 test.txt >labels.txt

expect "the model is trained" 0 "support vectors" svm train train.txt -C 10 --out m.safetensors
expect "the test rows are predicted" 0 "accuracy" svm predict m.safetensors test.txt --out predicted.txt
holds "clusters that far apart are told apart" grep -q "100.00% (30 of 30)" <<<"$output"
holds "a label a line" cmp -s predicted.txt labels.txt
# Where the labels go: a link is followed, a pipe is written to, a device stays one.
touch behind.txt && ln -s behind.txt link.txt
expect "labels through a link" 0 "" svm predict m.safetensors test.txt --out link.txt --quiet
holds "the link is still one" [ -L link.txt ]
holds "and they are behind it" cmp -s behind.txt labels.txt
holds "labels to stdout" bash -c '"$0" svm predict m.safetensors test.txt --out /dev/stdout --quiet 2>/dev/null |
    cmp -s - labels.txt' "$program"
holds "also behind >>" bash -c 'echo first >all.txt
    "$0" svm predict m.safetensors test.txt --out /dev/stdout --quiet >>all.txt 2>/dev/null &&
    cmp -s <(echo first; cat labels.txt) all.txt' "$program"
holds "also to a descriptor of a file" bash -c 'exec 5>open.txt; echo first >&5
    "$0" svm predict m.safetensors test.txt --out /dev/fd/5 --quiet && echo last >&5 &&
    cmp -s <(echo first; cat labels.txt; echo last) open.txt' "$program"
ln -s nowhere.txt dangling && ln -s round round
expect "a link that leads nowhere" 1 "a link that leads to no file" svm predict m.safetensors test.txt --out dangling
expect "or round" 1 "a link that leads to no file" svm predict m.safetensors test.txt --out round
holds "they are still links" [ -L dangling -a -L round ]
expect "labels and JSON in one place" 2 "name a file" svm predict m.safetensors test.txt --out /dev/stdout --json
if mknod node c 1 3 2>/dev/null; then # another /dev/null, to be spoilt if anything is
    expect "labels to a device" 0 "" svm predict m.safetensors test.txt --out node --quiet
    holds "which it still is" [ -c node ]
fi
expect "labels into a folder" 1 "it is a folder" svm predict none.model test.txt --out "$folder"
holds "nothing half-written is left" [ -z "$(find . -name '*.tmp.*')" ]

expect "JSON" 0 '"support"' svm train train.txt --json --out j.model --quiet
expect "JSON of a prediction" 0 '"correct": 30' svm predict m.safetensors test.txt --json
expect "labels from a file" 0 "100.00%" svm predict m.safetensors test.txt --labels labels.txt
expect "probabilities" 0 "" svm train train.txt --probability --format libsvm --out p.model --quiet
expect "probabilities in a file" 0 "" svm predict p.model test.txt --probability --out p.txt
holds "the header names the classes in their order" grep -qx "labels -4 1 6" p.txt
holds "three columns a row" awk 'NR > 1 && NF != 4 { exit 1 }' p.txt
holds "they add up to 1" awk 'NR > 1 && ($2 + $3 + $4 < 0.999 || $2 + $3 + $4 > 1.001) { exit 1 }' p.txt
expect "decision values" 0 "" svm predict m.safetensors test.txt --decisions --out d.txt
holds "three pairs" awk 'NF != 4 { exit 1 }' d.txt
expect "linear kernel" 0 "support" svm train train.txt --kernel linear --out l.model
expect "weights and balance" 0 "support" svm train train.txt --weight=-4=2,1=0.5 --balanced --out w.model
expect "folds" 0 "cross-validation" svm train train.txt --folds 3 --out f.model
expect "a small cache" 0 "in tiles" svm train train.txt --cache 70K --backend ref --out t.model
expect "a grid" 0 "best" svm grid train.txt -C 0.1,1,10 --gamma scale/2,scale,0.5 --folds 3
holds "nine points" [ "$(grep -c '%' <<<"$(grep -v / <<<"$output")")" = 9 ]
expect "a linear grid" 0 "best" svm grid train.txt -C 1,10 --kernel linear --json
if command -v svm-predict >/dev/null; then
    holds "svm-predict reads the model" svm-predict -q test.txt p.model theirs.txt
    holds "and says the same" cmp -s theirs.txt labels.txt
    svm-train -q -c 10 -g 0.5 train.txt theirs.model
    expect "a model of svm-train" 0 "100.00%" svm predict theirs.model test.txt
fi

# Text leaves zeros out, and with them the width of the rows.
awk '{ print $0, "5:" (NR % 7 == 0) }' train.txt >wide.txt
expect "the width of text" 0 "reaches up to column 2" svm convert train.txt narrow.npy
expect "is what --columns says" 0 "210 rows of 5 features" svm convert train.txt five.npy --columns 5
expect "but not less than it has" 1 "it has the index 5" svm convert wide.txt x.npy --columns 4
expect "a model of five columns" 0 "" svm train wide.txt --out five.model -C 10 --quiet
expect "text that reaches less far" 0 "100.00% (30 of 30)" svm predict five.model test.txt
expect "an array that does" 1 "5 are needed; where it was made from sparse text" \
    svm predict five.model narrow.npy --labels labels.txt
expect "a model of text, made as wide" 0 "" svm train train.txt --columns 5 --out as.model -C 10 --quiet
expect "takes the wide array" 0 "210" svm predict as.model five.npy --out x.txt

expect "text to an array" 0 "210 rows of 2 features" svm convert train.txt train.npy
cut -d' ' -f1 train.txt >train_labels.txt
expect "and back" 0 "with their labels" svm convert train.npy again.txt --labels train_labels.txt
expect "once more" 0 "" svm convert again.txt again.npy
holds "nothing was lost" cmp -s train.npy again.npy
expect "text needs labels" 2 "has no labels" svm convert train.npy x.txt
expect "an array and its labels" 0 "support" svm train train.npy --labels train_labels.txt --out n.safetensors \
    -C 10
holds "make the same model" cmp -s n.safetensors m.safetensors

# The folder of 'latent features' and the labels of a data set.
tiny_net tiny.net
"$program" data synth good --train 60 --test 30 --quiet
if "$program" train tiny.net --data good --run run --epochs 1 --backend ref --quiet >/dev/null 2>&1 &&
    "$program" features run --backend ref --quiet >/dev/null 2>&1; then
    expect "a folder of features" 0 "support" svm train run/features --out r.model
    expect "its test rows" 0 "accuracy" svm predict r.model run/features
    expect "labels of a data set" 0 "accuracy" svm predict r.model run/features/test.npy --data good
    expect "labels of the other split" 1 "60 labels for the 30 rows" \
        svm predict r.model run/features/test.npy --data good --split train
    expect "an array without labels" 2 "has no labels" svm train run/features/train.npy --out x.model
    # New images, for a machine of the run: standardized by the run's mean and deviation.
    expect "features by a stored scaling" 0 "scaling  run/features/scaling.safetensors" \
        features run --data good --scaling run/features --out new --backend ref
    holds "are the same features" cmp -s new/test.npy run/features/test.npy
    holds "features.json says so" grep -q '"scaling": *"run/features/scaling.safetensors"' new/features.json
    expect "its machine scores them" 0 "accuracy" svm predict r.model new
    expect "but not in their own place" 2 "another folder" features run --data good --scaling run/features --backend ref
    expect "a scaling of raw features" 2 "leave out one" features run --scaling run/features --raw-features --out x
    expect "no scaling there" 2 "no scaling.safetensors in it" features run --scaling run --out x --backend ref
    expect "a run instead of its features" 1 "give that folder" svm train run --out x.model
    "$program" features run --backend ref --quiet --format raw --out raw >/dev/null 2>&1
    expect "raw features" 1 "raw/train.f32: these features are raw floats" svm train raw --out x.model
    expect "rows of another width" 1 "features, but" svm predict m.safetensors run/features/test.npy --data good
fi

# Mistakes.
expect "no command" 2 "latent svm train" svm
expect "an unknown command" 2 "did you mean 'train'" svm trian
expect "no such file" 1 "none.npy" svm train none.npy
expect "C of 0" 2 "--c 0" svm train train.txt --c 0
expect "a negative gamma" 2 "--gamma -1: it takes" svm train train.txt --gamma=-1
expect "a gamma that is no word" 2 "--gamma large" svm train train.txt --gamma large
expect "a cache that is no size" 2 "--cache much" svm train train.txt --cache much
expect "a cache too small" 2 "too small" svm train train.txt --cache 100 --backend ref
expect "a weight without a label" 2 "--weight 2" svm train train.txt --weight 2
expect "a weight of 0" 2 "--weight 1=0" svm train train.txt --weight 1=0
expect "a weight of a class that is not there" 2 "no row has that label" svm train train.txt --weight 9=1
expect "one fold" 2 "--folds 1" svm train train.txt --folds 1
expect "a list with a word" 2 "'x' is not" svm grid train.txt -C 1,x
expect "gamma for the linear kernel" 2 "the linear kernel has none" svm grid train.txt --kernel linear --gamma 1
expect "probabilities nowhere to go" 2 "--out FILE" svm predict m.safetensors test.txt --probability
expect "a model without probabilities" 2 "no probabilities" \
    svm predict m.safetensors test.txt --probability --out x.txt
head -c 300 m.safetensors >cut.model
expect "a truncated model" 1 "cut.model" svm predict cut.model test.txt
head -n 5 labels.txt >few.txt
expect "too few labels" 1 "5 labels for the 30 rows" svm predict m.safetensors test.txt --labels few.txt
sed 's/1:[^ ]*/1:nan/' test.txt >nan.txt
expect "not a number" 1 "finite number" svm predict m.safetensors nan.txt
{ printf '\x93NUMPY\x01\x00\x76\x00'; printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
    printf '\0\0\x80\x3f\0\0\x80\x3f\0\0\xc0\x7f\0\0\x80\x3f'; } >nan.npy
printf '1\n2\n' >two.txt
expect "not a number in an array" 1 "nan.npy with the labels of two.txt: row 1, column 0" \
    svm train nan.npy --labels two.txt --out x.model
expect "nor to predict" 1 "nan.npy: row 1, column 0" svm predict m.safetensors nan.npy --out x.txt
awk '{ $1 = 7; print }' train.txt >one.txt
expect "one class" 2 "one.txt: all 210 rows have the label 7; a classifier needs at least two classes" svm train one.txt
printf '1 2:1 1:1\n' >unsorted.txt
expect "unsorted indices" 1 "indices must rise" svm train unsorted.txt
awk '{ print $1 " 1:3 2:3" }' train.txt >constant.txt
expect "constant features" 2 "constant.txt: gamma by scale" svm train constant.txt
holds "which are constant" grep -q "they are constant" <<<"$output"
expect "labels from two places" 2 "give one" svm train train.txt --labels labels.txt --data good
expect "gamma for a linear kernel" 2 "the linear kernel has none" svm train train.txt --kernel linear --gamma 3

# What could not be written after the training is refused before it: the features are not even opened.
expect "a folder that cannot be written" 1 "no/m: cannot write" svm train none.txt --out no/m --quiet
expect "a gamma per pair as text" 2 "has one gamma" svm train none.txt --gamma-per-pair --format libsvm
expect "another vote as text" 2 "no place for another vote" svm train none.txt --vote confidence --format libsvm

# Flags that change nothing say so.
expect "products of the GPU" 0 "--products fast changes nothing here: the backend 'ref'" \
    svm train train.txt --products fast --backend ref --out x.model
expect "a price that no row reaches" 0 "" svm train train.txt -C 0.0001 --out x.model
holds "no pair is left that violates" grep -Eq "^largest gap +0$" <<<"$output"
finish
