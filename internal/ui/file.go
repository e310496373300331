package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

const (
	// fileBytesMax is the most bytes of the data of a file.
	fileBytesMax = 1700 << 10
	// textMax is how many bytes of each text are kept at first, textMin at least.
	textMax = 64 << 10
	textMin = 256
)

// ErrTooLarge says that the agents and messages of a run do not fit a file.
var ErrTooLarge = errors.New("the run is too large for a file")

// RunFile is the data of a file of one run: documents of the HTTP API.
type RunFile struct {
	Title       string                     `json:"-"` // in the tabs and bookmarks of a browser
	Info        any                        `json:"info"`
	Events      []json.RawMessage          `json:"events"`
	Budget      any                        `json:"budget"`
	Spans       []json.RawMessage          `json:"spans"`
	Transcripts map[string]json.RawMessage `json:"transcripts"`
	Exported    string                     `json:"exported,omitempty"` // when, RFC 3339
	// Left lists the omitted parts.
	Left []string `json:"left"`
	// Mask replaces what looks like a secret in a text: prompts and replies are stored as they are, and a file is sent around.
	// nil: nothing is replaced.
	Mask func(text string) string `json:"-"`
}

// File returns the page with the data of one run in it. It is complete in itself: its policy allows its own
// script and style, and no request. Long texts, and then the oldest events and the newest parts of the timeline, are left
// out until it is small enough.
func File(r RunFile) ([]byte, error) {
	r, err := maskFile(r)
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	data, err := fitFile(r)
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	script, style := read("page.js"), read("page.css")
	policy := fmt.Sprintf("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(style))
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>" + html.EscapeString(r.Title) + "</title>\n<style>")
	b.Write(style)
	b.WriteString("</style>\n</head>\n<body><div id=\"app\"></div>\n<noscript>This page needs JavaScript. troupe report and troupe transcript show the same.</noscript>\n<script type=\"application/json\" id=\"run-data\">")
	b.Write(data)
	b.WriteString("</script>\n<script>")
	b.Write(script)
	b.WriteString("</script>\n</body>\n</html>\n")
	return b.Bytes(), nil
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// maskFile masks every text of the data, and says how many it has changed.
func maskFile(r RunFile) (RunFile, error) {
	if r.Mask == nil {
		return r, nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return r, err
	}
	changed := 0
	if raw, err = json.Marshal(maskTexts(doc, r.Mask, &changed)); err != nil {
		return r, err
	}
	masked := RunFile{Title: r.Mask(r.Title)}
	whole := struct { // numbers stay as they are written
		*RunFile
		Info   json.RawMessage `json:"info"`
		Budget json.RawMessage `json:"budget"`
	}{RunFile: &masked}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return r, err
	}
	masked.Info, masked.Budget = whole.Info, whole.Budget
	if changed > 0 {
		masked.Left = append(masked.Left, fmt.Sprintf("What looks like a secret is masked, in %d texts. Other secrets may be here: read the file before you send it.", changed))
	}
	return masked, nil
}

// maskTexts masks the texts of a document, and counts those that change.
func maskTexts(v any, mask func(string) string, changed *int) any {
	switch v := v.(type) {
	case string:
		masked := mask(v)
		if masked != v {
			*changed++
		}
		return masked
	case []any:
		for i := range v {
			v[i] = maskTexts(v[i], mask, changed)
		}
	case map[string]any:
		for k := range v {
			v[k] = maskTexts(v[k], mask, changed)
		}
	}
	return v
}

// fitFile returns the JSON of the data. encoding/json escapes <, > and &, so no text ends the element that it is in.
func fitFile(r RunFile) ([]byte, error) {
	whole, err := json.Marshal(r)
	if err != nil || len(whole) <= fileBytesMax {
		return whole, err
	}
	kept := r
	for limit := textMax; ; {
		short, err := clipTexts(kept, r, limit)
		switch {
		case err != nil || len(short) <= fileBytesMax:
			return short, err
		case limit > textMin:
			limit /= 4
		case len(kept.Events) == 0 && len(kept.Spans) == 0:
			return nil, fmt.Errorf("%w: %d bytes without events, and with texts of %d bytes at most", ErrTooLarge, len(short), textMin)
		default:
			kept.Events, kept.Spans = kept.Events[(len(kept.Events)+1)/2:], kept.Spans[:len(kept.Spans)/2]
		}
	}
}

// clipTexts returns the JSON of what is kept of the data, with texts of at most limit bytes, and with a note that says what
// of the whole is not there.
func clipTexts(kept, whole RunFile, limit int) ([]byte, error) {
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	shortened := 0
	clipText(doc, limit, &shortened)
	doc["left"] = append(append([]string{}, kept.Left...), leftNote(kept, whole, shortened, limit))
	return json.Marshal(doc)
}

// leftNote says what of a run is not in its file.
func leftNote(kept, whole RunFile, shortened, limit int) string {
	var parts []string
	if shortened > 0 {
		parts = append(parts, fmt.Sprintf("texts of more than %d bytes are shortened: %d", limit, shortened))
	}
	if len(kept.Events) < len(whole.Events) {
		parts = append(parts, fmt.Sprintf("there are the newest %d of %d events", len(kept.Events), len(whole.Events)))
	}
	if len(kept.Spans) < len(whole.Spans) {
		parts = append(parts, fmt.Sprintf("there are the first %d of %d parts of the timeline", len(kept.Spans), len(whole.Spans)))
	}
	return "Left out: " + strings.Join(parts, "; ") + ". The whole is in the logs: troupe export RUN --logs."
}

// clipText shortens the texts of a document, and counts them.
func clipText(v any, limit int, shortened *int) any {
	switch v := v.(type) {
	case string:
		if len(v) <= limit {
			return v
		}
		*shortened++
		end := limit
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		return fmt.Sprintf("%s… %d more bytes are not in this file", v[:end], len(v)-end)
	case []any:
		for i := range v {
			v[i] = clipText(v[i], limit, shortened)
		}
	case map[string]any:
		for k := range v {
			v[k] = clipText(v[k], limit, shortened)
		}
	}
	return v
}
