package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exportPage runs an agent that reads a file in each of its turns, and returns the page of the run with its data.
func exportPage(t *testing.T, turns int, content string) (s testHome, page string, data struct {
	Events []json.RawMessage
	Left   []string
}) {
	t.Helper()
	files := map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Read\n---\nWork.\n"}
	var script strings.Builder
	script.WriteString("default:\n")
	for i := range turns - 1 {
		files[fmt.Sprintf("work/note%d.md", i)] = fmt.Sprintf("%d\n%s", i, content)
		fmt.Fprintf(&script, "  - calls: [{name: read_file, args: {path: note%d.md}}]\n", i)
	}
	files["work.yaml"] = script.String() + "  - text: read\n"
	s = newTestHome(t, files)
	out, err := s.command("run", "-q", "--run-id", "long", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "--max-turns", fmt.Sprint(turns+1), "--max-tokens", "100000000", "go").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := s.command("export", "long", "--html").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, raw, _ := strings.Cut(string(file), `id="run-data">`)
	raw, _, _ = strings.Cut(raw, "</script>")
	if err := json.Unmarshal([]byte(raw), &data); err != nil {
		t.Fatal(err)
	}
	return s, string(file), data
}

// TestAPageOfAHundredTurns: the page of a run of 100 turns is below 2 MB, has all its events, and no secret that a tool has read.
//
//behaviour:shows I4
func TestAPageOfAHundredTurns(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("4bXz9", 8)
	s, page, data := exportPage(t, 100, "the token is "+token+"\n"+strings.Repeat("a line of a file that is read again and again\n", 100))
	if len(page) > 2_000_000 {
		t.Errorf("%d bytes", len(page))
	}
	if !strings.Contains(page, "<title>go · long</title>") || !strings.Contains(page, "<noscript>This page needs JavaScript.") {
		t.Errorf("no title, or no word without JavaScript: %.900s", page)
	}
	if out := openScreen(t, s.command("export", "long", "--html"), 80, 24); out.leave() != exitUsage || !strings.Contains(out.String(), "troupe export long --html > run.html") {
		t.Errorf("a terminal gets\n%s", out)
	}
	if strings.Contains(page, token) || !strings.Contains(page, "the token is ") {
		t.Error("the page has the token, or not the file that it was in")
	}
	out, err := s.command("events", "long", "-o", "jsonl").Output()
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Count(string(out), "\n"); all < 400 || len(data.Events) != all {
		t.Errorf("the page has %d events of %d", len(data.Events), all)
	}
	if len(data.Left) == 1 && strings.Contains(data.Left[0], "newest") || len(data.Left) > 1 {
		t.Errorf("all events are there, and the page says: %q", data.Left)
	}
}

// TestAPageSaysWhatItLeavesOut: of a run whose files are long the page has shortened texts, and says so.
func TestAPageSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	_, page, data := exportPage(t, 120, strings.Repeat("a line of a large file that is read again and again\n", 900))
	if len(page) > 2_000_000 || len(data.Left) != 1 || !strings.HasPrefix(data.Left[0], "Left out: texts of more than ") || strings.Contains(data.Left[0], "newest") {
		t.Errorf("%d bytes, %q", len(page), data.Left)
	}
}

// TestAPageWithoutATranscript: a transcript that no node can send at once is left out, and the page says so. A token that was
// typed in the prompt is not in the file either: files are sent around.
func TestAPageWithoutATranscript(t *testing.T) {
	t.Parallel()
	long, typed := strings.Repeat("z", 240), "ghp_"+strings.Repeat("4bXz9", 8)
	messages := []map[string]any{{"role": "user", "text": "begin"}}
	for i := range 1360 {
		one, two := fmt.Sprintf("%d-0", i+1), fmt.Sprintf("%d-1", i+1)
		messages = append(messages, map[string]any{"role": "assistant", "text": long, "calls": []map[string]string{{"id": one, "name": "grep", "args": `{"pattern":"` + long + `"}`}, {"id": two, "name": "grep", "args": `{"pattern":"` + long + `"}`}}},
			map[string]any{"role": "tool", "results": []map[string]string{{"call": one, "text": long}, {"call": two, "text": long}}})
	}
	raw, err := json.Marshal(map[string]any{"form": 1, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestHome(t, map[string]string{"one.yaml": "default: [{text: done}]"})
	if err := os.WriteFile(filepath.Join(s.home, "past.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := s.command("run", "-q", "--run-id", "vast", "-m", "script/one.yaml", "--history", "past.json", "--max-tokens", "100000000", "go with "+typed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := s.command("export", "vast", "--html").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "The transcript of root is not here: the transcript is too long for one reply.") || len(out) > 2_000_000 {
		t.Errorf("%v\n%d bytes", err, len(out))
	}
	if strings.Contains(string(out), typed) || !strings.Contains(string(out), "go with [masked]") || !strings.Contains(string(out), "What looks like a secret is masked") {
		t.Error("the file has the token of the prompt, or does not say that it was masked")
	}
}
