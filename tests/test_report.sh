#!/usr/bin/env bash
# The report of a real run: complete, self-contained, and as a browser shows it: no section lost, nothing
# wider than the screen, on a desktop and on a phone. Without chromium the browser's part is left out, and
# the test counts as skipped when all else is fine.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net
small=(run tiny.net --synthetic --synthetic-train 100 --synthetic-test 60 --backend ref --quiet)
holds "a run is made" "$program" "${small[@]}" --run 'a <b>&"c'
holds "and another" "$program" "${small[@]}" --run second --epochs 3 --raw-features
cat >ladder.json <<'JSON'
{"epoch_images": 50000, "rungs": [
 {"backend": "ref", "precision": "fp32", "what": "plain loops", "epoch_seconds": 9000, "extrapolated": true},
 {"backend": "cpu", "precision": "fp32", "what": "packed micro-kernels, all cores", "epoch_seconds": 240},
 {"backend": "cuda", "kernels": "fused", "precision": "fp32", "what": "fused", "epoch_seconds": 4.4}]}
JSON
expect "a report of one run" 0 "report  one.html" report 'a <b>&"c' --out one.html --ladder ladder.json
expect "a report of two runs" 0 "report  two.html" report 'a <b>&"c' second --out two.html
expect "the default place" 0 "report  second/report.html" report second
expect "a folder that is no run" 2 "no such folder" report nowhere
expect "a folder without a run" 2 "no config.json, metrics.jsonl or eval.json" report "$folder"
expect "a ladder that is not there" 1 "missing.json" report second --ladder missing.json

echo '{"a": 1}' >none.json
expect "a file that is no ladder" 1 'none.json: the ladder has no "rungs"' report second --ladder none.json
expect "more runs than a page has colours" 2 "it takes at most 8: RUN..." report 1 2 3 4 5 6 7 8 9
mkdir other && cp -r second other/
expect "two runs of one name" 0 "" report second other/second --out same.html
holds "are told apart" grep -qF "<h1>second · other/second</h1>" same.html

sections=("Targets" "Loss" "Reconstructions" "Accuracy by class" "Confusion matrix" "The pairs confused most"
    "Time by stage" "Within the training" "Time by kind of work" "The ladder of engines"
    "Hardware and how to make it again")
for section in "${sections[@]}"; do
    holds "the page has '$section'" grep -qF ">$section</h" one.html
done
for part in "Side by side" ">Losses</h" "difference to the first run"; do
    holds "the page of two has '$part'" grep -qF "$part" two.html
done
for page in one two; do
    holds "$page loads nothing" bash -c '! grep -Eq "https?:|<script|<link|<iframe|@import|url\\(" '$page.html
    holds "$page has no image from elsewhere" bash -c '! grep -oE "<img[^>]{0,200}" '$page'.html | grep -qv "src=\"data:image/png;base64,"'
    holds "$page has its images" [ "$(grep -o '<img ' $page.html | wc -l)" -ge 60 ]
    holds "$page names the run, escaped" grep -qF '<h1>a &lt;b&gt;&amp;&quot;c' $page.html
    holds "$page says how to make it again" grep -qF 'synthetic-train' $page.html
done
if command -v python3 >/dev/null; then
    for page in one two; do
        holds "$page is well-formed XML" python3 -c '
import sys, xml.dom.minidom
text = open(sys.argv[1], encoding="utf-8").read()
xml.dom.minidom.parseString(text.split("\n", 1)[1].encode())' $page.html
    done
fi

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
browse() { # browse WIDTH PAGE OPTION...
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$folder/profile" \
        --window-size="$1,900" "${@:3}" "file://$folder/$2" 2>/dev/null
}
if [ -n "$browser" ] && browse 800 one.html --dump-dom >dom.txt && [ -s dom.txt ]; then
    for section in "${sections[@]}"; do
        holds "the browser has '$section'" grep -qF ">$section</h" dom.txt
    done
    holds "the page arrives whole" grep -q "<footer>Written by latent" dom.txt
    holds "the browser repaired nothing" [ "$(grep -o '<table' dom.txt | wc -l)" = "$(grep -o '<table' one.html | wc -l)" ]
    # The page itself has no script; a frame around it measures how wide its content becomes.
    for page in one two; do
        for width in 360 1200; do
            cat >frame.html <<HTML
<body><iframe id="f" src="$page.html" style="width:${width}px;height:800px;border:0"></iframe><script>
f.onload = () => {
  const d = f.contentDocument.documentElement;
  let wide = 0;
  for (const e of d.querySelectorAll("body *")) {
    if (!e.closest(".scroll") && e.getBoundingClientRect().right > d.clientWidth + 1) { wide++; }
  }
  document.title = "width " + d.clientWidth + " scroll " + d.scrollWidth + " beyond " + wide;
  document.body.dataset.said = document.title;
};
</script></body>
HTML
            said=$(browse 1300 frame.html --allow-file-access-from-files --virtual-time-budget=4000 --dump-dom |
                sed -n 's/.*data-said="\([^"]*\)".*/\1/p')
            read -r _ client _ scroll _ beyond <<<"$said"
            holds "$page at $width: it was measured ($said)" [ -n "${beyond-}" ]
            holds "$page at $width: nothing is wider than the page" [ "${scroll-1}" -le "${client-0}" -a "${beyond-1}" = 0 ]
        done
    done
    browse 390 one.html --screenshot="$folder/phone.png" >/dev/null
    holds "the browser draws it" [ "$(stat -c %s phone.png 2>/dev/null || echo 0)" -gt 10000 ]
    finish
    exit
fi
echo "no chromium that works here: the page was not looked at in a browser"
finish && exit 77
