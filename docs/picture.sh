#!/bin/sh
# Puts the screens of two terminals into README.md, between its two marks: one runs `troupe demo` and is
# killed, the other continues it. Needs Go, tmux and bin/troupe (`make picture` builds it).
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'tmux -L troupe-picture kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
bin=$PWD/bin
# type WINDOW COMMAND enters a command in a shell of its own.
type() {
  tmux -L troupe-picture new-session -d -s "$1" -x 100 -y 24 -c "$work" \
    "env -u NATS_URL -u NATS_CONTEXT XDG_STATE_HOME='$work/state' XDG_CONFIG_HOME='$work/config' PATH='$bin':\"\$PATH\" PS1='\$ ' sh"
  tmux -L troupe-picture send-keys -t "$1" "clear; $2" Enter
}
# await TEXT WINDOW waits up to 60 s until a window shows a text.
await() {
  for _ in $(seq 600); do
    tmux -L troupe-picture capture-pane -p -t "$2" | grep -q "$1" && return
    sleep 0.1
  done
  echo "no $1 in the window $2" >&2
  exit 1
}
# screen WINDOW COMMAND prints what a window shows, without the typed line and the last prompt.
screen() {
  printf '$ %s\n' "$2"
  tmux -L troupe-picture capture-pane -p -J -t "$1" | sed -e 's/ *$//' -e "s|$work/state|~/.local/state|" -e '/^\$ *$/d' -e '/^\$ clear/d' -e '/^$/d'
}
type one "troupe demo"
await "6 tool calls" one
for _ in $(seq 200); do
  [ "$(cat "$work"/state/troupe-demo/ledger-*.txt 2>/dev/null | wc -l)" -ge 3 ] && break
  sleep 0.1
done
sleep 1
pid=$(tmux -L troupe-picture capture-pane -p -t one | sed -n 's/^kill me: pid \([0-9]*\).*/\1/p')
again="kill -9 $pid; troupe demo --continue"
type two "$again"
await '^money' two
sleep 0.5
screen one "troupe demo" >"$work/screen"
{ echo; echo "# the second terminal"; screen two "$again"; } >>"$work/screen"
awk -v screen="$work/screen" '
  /<!-- picture: begin/ { print; print "```"
    while ((getline line < screen) > 0) print line
    print "```"; skip = 1 }
  /<!-- picture: end/ { skip = 0 }
  !skip { if ($0 !~ /picture: begin/) print }' README.md >"$work/README.md"
cat -s "$work/README.md" >README.md
