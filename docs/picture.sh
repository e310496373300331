#!/bin/sh
# Puts the screen of a real run into README.md, between its two marks. Needs
# Go, tmux and bin/troupe (`make picture` builds it). The run looks at the source of
# github.com/spf13/cobra, from the module cache, without a key.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'tmux -L troupe-picture kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
cp -r "$(go list -m -f '{{.Dir}}' github.com/spf13/cobra)" "$work/cobra"
chmod -R u+w "$work/cobra"
bin=$PWD/bin/troupe
tmux -L troupe-picture new-session -d -x 100 -y 24 -c "$work/cobra" "env -u ANTHROPIC_API_KEY -u OPENAI_API_KEY -u GEMINI_API_KEY sh"
tmux -L troupe-picture send-keys "PS1='\$ '; clear; '$bin' run --store-dir '$work/state' --dir . 'Investigate this repository and write report.md'; touch '$work/done'" Enter
for _ in $(seq 300); do [ -e "$work/done" ] && break; sleep 0.1; done
sleep 0.3
tmux -L troupe-picture capture-pane -p | sed -e "s|'$bin'|troupe|" -e '/touch /d' -e '/^\$ *$/d' >"$work/screen"
awk -v screen="$work/screen" '
  /<!-- picture: begin/ { print; print "```"; print "cobra$ troupe run --dir . \"Investigate this repository and write report.md\""
    while ((getline line < screen) > 0) if (line !~ /^\$ /) print line
    print "```"; skip = 1 }
  /<!-- picture: end/ { skip = 0 }
  !skip { if ($0 !~ /picture: begin/) print }' README.md >"$work/README.md"
cat -s "$work/README.md" >README.md
