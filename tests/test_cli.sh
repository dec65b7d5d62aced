#!/usr/bin/env bash
# The program's surface: help, version, and what it says about a command line that is wrong.
. "$(dirname "$0")/cli_cases.sh"

expect "--version says the version" 0 "latent " --version
expect "--help lists the commands" 0 "Commands:" --help
expect "no command is wrong usage" 2 "Usage:"
commands="train eval reconstruct compare export import info data"
for name in $commands; do
    expect "--help lists $name" 0 "  $name " --help
done
same=1
[ "$("$program" help)" = "$("$program" --help)" ] || same=0
holds "latent help is latent --help" [ $same = 1 ]
for name in $commands "data info" "data synth" "data download"; do
    # shellcheck disable=SC2086
    a=$("$program" help $name) b=$("$program" $name --help) c=$("$program" $name -h)
    holds "latent help $name is latent $name --help" [ "$a" = "$b" -a "$a" = "$c" ]
    holds "the help of $name shows its usage" grep -qF "Usage: latent $name" <<<"$a"
done
expect "help wins over other mistakes" 0 "Usage: latent train" train --batch 0 --help
expect "help of an unknown command" 2 "did you mean 'train'?" help trian

# Words that are wrong.
expect "unknown command" 2 "unknown command 'evla'; did you mean 'eval'?" evla
expect "unknown subcommand" 2 "did you mean 'synth'?" data synht x
expect "a command that only dispatches" 2 "needs one of its commands" data
expect "unknown top-level option" 2 "did you mean '--version'?" --versoin
expect "unknown option" 2 "unknown option --epoch; did you mean --epochs?" train --epoch 3
expect "unknown option with a value" 2 "unknown option --epoch; did you mean --epochs?" train --epoch=3
expect "unknown option unlike any" 2 "unknown option --zzzzzzzz" train --zzzzzzzz
expect "unknown short option" 2 "unknown option -Z" train -Z
expect "unknown choice" 2 "--optimizer adma: did you mean adam? It takes sgd, adam or adamw" train --optimizer adma
expect "unknown backend" 2 "--backend cud: did you mean cuda?" train --backend cud
expect "unknown preset" 2 "did you mean 'autoencoder'?" train autoencodr
expect "unknown preset of info" 2 "did you mean 'autoencoder'?" info autoencodr
expect "one word too many" 2 "'b' is one word too many" train a b
expect "a word too few" 2 "it takes A B" compare a
expect "an empty word" 2 "empty" train ""
expect "a flag with a value" 2 "--quiet takes no value" train --quiet=yes
expect "a value that is missing at the end" 2 "--epochs needs a value: --epochs N" train --epochs
expect "a value that is missing before an option" 2 "--run needs a value before --json" train --run --json
expect "an empty value" 2 "--run" train --run=
expect "-- ends the options" 2 "--epochs: no such preset or net file" train -- --epochs

# Values that are wrong: the message names the flag and what would be right.
wrong_value() { expect "--$1 '$2' is refused" 2 "--$1 $2: it takes $3" train "--$1=$2"; }
wrong_value batch 0 "a whole number from 1 to 65536"
wrong_value batch 70000 "a whole number from 1 to 65536"
wrong_value batch 1e2 "a whole number"
wrong_value epochs 0 "a whole number from 1"
wrong_value epochs -3 "a whole number from 1"
wrong_value epochs 99999999999999999999 "a whole number from 1"
wrong_value lr -0.001 "a number above 0"
wrong_value lr 0 "a number above 0"
wrong_value lr nan "a number above 0"
wrong_value lr inf "a number above 0"
wrong_value lr 1e999 "a number above 0"
wrong_value lr 1e-3x "a number above 0"
wrong_value momentum 1 "a number of at least 0 and below 1"
wrong_value beta2 -1 "a number of at least 0 and below 1"
wrong_value epsilon 0 "a number above 0"
wrong_value weight-decay -1 "a number from 0"
wrong_value seed -1 "a whole number from 0"
wrong_value threads -1 "a whole number from 0"
wrong_value subset 0 "a count of at least 1"
wrong_value subset 0% "a count of at least 1"
wrong_value subset 101% "a count of at least 1"
wrong_value subset x% "a count of at least 1"
expect "a negative value as its own word" 2 "--lr -1: it takes a number above 0" train --lr -1
expect "a negative tolerance" 2 "--tolerance -1" compare a b --tolerance -1

# Options that do not go together.
expect "--resume without --run" 2 "--resume needs --run DIR" train --resume
expect "--overwrite without --run" 2 "--overwrite needs --run DIR" train --overwrite
expect "--resume with --overwrite" 2 "give one" train --resume --overwrite --run r
expect "--resume with a net" 2 "takes the net from the run" train autoencoder --resume --run r
for flag in --batch=8 --optimizer=sgd --schedule=cosine --lr=0.1 --momentum=0.5 --beta2=0.9 --epsilon=1e-7 \
    --weight-decay=0.1 --seed=2 --subset=5; do
    expect "--resume with $flag" 2 "leave out ${flag%%=*}" train --resume --run r "$flag"
done
expect "export without a known ending" 2 "--format safetensors or --format ae2024" export a b.txt
expect "import without --out" 2 "--out is missing" import a.bin
expect "download from two places" 2 "give one" data download --from a --url b
expect "info --batch of nothing" 2 "--batch needs a net" info --batch 3

# What info says.
expect "info lists the reference backend" 0 "ref" info
expect "info lists the preset" 0 "751,875 parameters" info
expect "info of the autoencoder" 0 "751,875" info autoencoder
for part in "enc_conv1" "16x16x256" "295,168" "174,587,904" "<- latent, 8,192 features"; do
    holds "info of the autoencoder says $part" grep -qF -- "$part" <<<"$output"
done
expect "info counts activations for a batch" 0 "batch of 7" info autoencoder --batch 7
expect "info as JSON" 0 '"parameters": 751875' info autoencoder --json
expect "info of the build as JSON" 0 '"backends"' info --json
if command -v python3 >/dev/null; then
    "$program" info --json >build.json
    "$program" info autoencoder --json >net.json
    holds "info's JSON is JSON" python3 -c "import json; json.load(open('build.json')); json.load(open('net.json'))"
fi
if [ -w /dev/full ]; then
    got=0
    "$program" info >/dev/full 2>err.txt || got=$?
    holds "a full stdout is a failure" [ $got = 1 ]
    holds "a full stdout is named" grep -q "standard output" err.txt
fi
finish
