package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A file is sent around, so what looks like a secret is masked in every text of it, wherever it came from.
func TestFileMasksEveryText(t *testing.T) {
	r := RunFile{Title: "use KEY", Info: map[string]any{"title": "use KEY", "n": 12345678901234567}, Events: []json.RawMessage{json.RawMessage(`{"id":"1","data":{"text":"KEY and more"}}`)},
		Transcripts: map[string]json.RawMessage{"root": json.RawMessage(`{"messages":[{"text":"the KEY"},{"text":"harmless"}]}`)}, Left: []string{},
		Mask: func(s string) string { return strings.ReplaceAll(s, "KEY", "[masked]") }}
	file, err := File(r)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"KEY": bytes.Count(read("page.js"), []byte("KEY")), "<title>use [masked]</title>": 1, `"n":12345678901234567`: 1, "in 3 texts": 1, "harmless": 1} {
		if n := bytes.Count(file, []byte(text)); n != want {
			t.Errorf("%q is there %d times, want %d", text, n, want)
		}
	}
}

// No text leaves the element of the data, and a file stays below two million bytes.
func TestFileHoldsHostileAndLongTexts(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>`
	if bytes.Contains(read("page.js"), []byte("</script")) || bytes.Contains(read("page.js"), []byte("<!--")) || bytes.Contains(read("page.css"), []byte("</style")) {
		t.Fatal("the page itself ends an element")
	}
	r := RunFile{Info: map[string]string{"title": hostile}, Transcripts: map[string]json.RawMessage{}}
	for i := range 15000 {
		r.Events = append(r.Events, json.RawMessage(fmt.Sprintf(`{"id":"%d","data":{"text":%q}}`, i, hostile)))
	}
	long, err := json.Marshal(map[string]any{"messages": []any{map[string]string{"text": strings.Repeat("é", 1<<20)}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Transcripts["root"] = long
	file, err := File(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(file) > 2_000_000 || len(file) < 100_000 {
		t.Errorf("%d bytes", len(file))
	}
	if n := bytes.Count(file, []byte("<script")); n != 2 {
		t.Errorf("%d scripts, not those of data and page", n)
	}
	if bytes.Contains(file, []byte("<img src=x")) || bytes.Contains(file, []byte(`src="http`)) {
		t.Error("a text became markup")
	}
	_, data, _ := bytes.Cut(file, []byte(`id="run-data">`))
	data, _, _ = bytes.Cut(data, []byte("</script>"))
	var back RunFile
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("Left out: texts of more than 256 bytes are shortened: 1; there are the newest %d of 15000 events. The whole is in the logs: troupe export RUN --logs.", len(back.Events))
	if len(back.Left) != 1 || back.Left[0] != want || len(back.Events) == 0 || len(back.Events) == 15000 {
		t.Errorf("%v, %d events", back.Left, len(back.Events))
	}
}

// The note names what was left out, and nothing else.
func TestFileSaysWhatIsLeftOut(t *testing.T) {
	long, err := json.Marshal(map[string]any{"text": strings.Repeat("x", 3<<20)})
	if err != nil {
		t.Fatal(err)
	}
	note := func(r RunFile) []string {
		t.Helper()
		r.Left = []string{"before"}
		data, err := fitFile(r)
		var back RunFile
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil {
			t.Fatal(err)
		}
		return back.Left
	}
	small := []json.RawMessage{json.RawMessage(`{}`)}
	if got := note(RunFile{Events: small}); len(got) != 1 {
		t.Errorf("a small run: %q", got)
	}
	got := note(RunFile{Events: small, Transcripts: map[string]json.RawMessage{"root": long}})
	if want := "Left out: texts of more than 65536 bytes are shortened: 1. The whole is in the logs: troupe export RUN --logs."; len(got) != 2 || got[0] != "before" || got[1] != want {
		t.Errorf("a long text: %q", got)
	}
}

// What cannot be made small enough is an error.
func TestFileThatWouldBeTooLarge(t *testing.T) {
	messages := make([]map[string]string, 40_000)
	for i := range messages {
		messages[i] = map[string]string{"text": strings.Repeat("y", 100)}
	}
	long, err := json.Marshal(map[string]any{"messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := File(RunFile{Transcripts: map[string]json.RawMessage{"root": long}}); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "4480167 bytes without events") {
		t.Errorf("%v", err)
	}
}
