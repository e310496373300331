#!/bin/sh
# Puts the screen of a real run into README.md, between its two marks. Needs
# git, tmux and bin/troupe (`make picture` builds it); runs on a fresh clone of
# this repository without a key.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'tmux -L troupe-picture kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
git clone -q . "$work/clone"
bin=$PWD/bin/troupe
tmux -L troupe-picture new-session -d -x 100 -y 24 -c "$work/clone" "env -u ANTHROPIC_API_KEY -u OPENAI_API_KEY sh"
tmux -L troupe-picture send-keys "PS1='\$ '; clear; '$bin' run --store-dir '$work/state' --dir . 'Investigate this repository and write report.md'; touch '$work/done'" Enter
for _ in $(seq 300); do [ -e "$work/done" ] && break; sleep 0.1; done
sleep 0.3
tmux -L troupe-picture capture-pane -p | sed -e "s|'$bin'|troupe|" -e '/touch /d' -e '/^\$ *$/d' >"$work/screen"
awk -v screen="$work/screen" '
  /<!-- picture: begin/ { print; print "```"; print "$ troupe run --dir . \"Investigate this repository and write report.md\""
    while ((getline line < screen) > 0) if (line !~ /^\$ /) print line
    print "```"; skip = 1 }
  /<!-- picture: end/ { skip = 0 }
  !skip { if ($0 !~ /picture: begin/) print }' README.md >"$work/README.md"
cat -s "$work/README.md" >README.md
