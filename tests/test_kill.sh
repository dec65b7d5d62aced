#!/usr/bin/env bash
# Kill -9 at twenty random moments: there is always a checkpoint that loads, once there was one, and the run
# that goes on from it ends in the same bits as one that was left alone.
. "$(dirname "$0")/cli_cases.sh"
rounds=20
tiny_net tiny.net
holds "a small data set is made" "$program" data synth data --train 120 --test 10 --quiet
train=("$program" train --data data --checkpoint-every 1 --backend ref --quiet)

# As many epochs as keep this machine busy for about ten seconds, so that kills hit a training at work.
began=$(date +%s%N)
"${train[@]}" tiny.net --run probe --epochs 8 >/dev/null
probe=$((($(date +%s%N) - began) / 1000000)) # milliseconds for 8 epochs and the start
epochs=$((8 * 10000 / (probe + 1)))
epochs=$((epochs < 20 ? 20 : epochs > 2000 ? 2000 : epochs))
began=$(date +%s%N)
"${train[@]}" tiny.net --run whole --epochs $epochs >/dev/null
total=$((($(date +%s%N) - began) / 1000000))
echo "      $epochs epochs take $total ms"

seen=0
killed=0
for round in $(seq $rounds); do
    if [ -e cut/checkpoint.safetensors ]; then
        seen=1
        "${train[@]}" --resume --run cut >log.txt 2>&1 &
    elif [ $seen = 1 ]; then
        fail "round $round: the checkpoint is gone"
        break
    else
        "${train[@]}" tiny.net --run cut --epochs $epochs --overwrite >log.txt 2>&1 &
    fi
    job=$!
    pause=$(((RANDOM * 32768 + RANDOM) % (total * 3 / (2 * rounds) + 1)))
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    kill -9 $job 2>/dev/null
    code=0
    wait $job 2>/dev/null || code=$?
    if [ $code = 137 ]; then
        killed=$((killed + 1))
    elif [ $code != 0 ]; then
        fail "round $round: ended with $code by itself" "$(cat log.txt)"
    fi
    if [ -e cut/checkpoint.safetensors ]; then
        expect "round $round: after $pause ms the checkpoint loads" 0 "" eval cut/checkpoint.safetensors --data data --backend ref --quiet
        [ ! -e cut/model.safetensors ] || expect "round $round: and the model" 0 "" info cut/model.safetensors
    else
        pass "round $round: after $pause ms there is no checkpoint yet"
    fi
done
holds "kills hit a training at work: $killed of $rounds" [ $killed -ge $((rounds / 2)) ]
expect "the run goes on to its end" 0 "$epochs of $epochs" train --resume --run cut --data data --checkpoint-every 1 --backend ref
expect "it equals the run that was left alone" 0 "equal" compare whole cut
holds "so does its checkpoint, optimizer included" cmp whole/checkpoint.safetensors cut/checkpoint.safetensors
holds "its metrics have every epoch once" [ "$(wc -l <cut/metrics.jsonl)" = $epochs ]
holds "nothing else is left in the folder" [ "$(find cut -type f | wc -l)" = 4 ]
finish
