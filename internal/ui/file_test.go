package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

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
	if len(back.Left) != 1 || len(back.Events) == 0 {
		t.Errorf("%v, %d events", back.Left, len(back.Events))
	}
}
