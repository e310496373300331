// Package cassette records the exchanges with model providers as they went over the wire,
// and replays them without a key and without a network.
//
// It works below the adapters, as an http.RoundTripper, so that a replay runs
// the same code as a real exchange. A directory holds one file for each
// exchange, and a label: the settings that must be the same so that a run sends the same
// requests. Files are JSON for people to read and compare; see docs/cassettes.md.
//
// Secrets are removed before a file is written: headers and URL parameters
// by their names, and the values that Config.Scrub knows wherever they occur.
package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/safefile"
)

// Version is the form of the files.
const Version = 1

// Limits of a cassette.
const (
	// BodyBytesMax is the most that is kept of a response. No reply of a model is
	// larger; a larger response is marked as cut.
	BodyBytesMax = 16 << 20
	// FileBytesMax is the most that is read of a file.
	FileBytesMax = 256 << 20
	// ExchangesMax is the most exchanges of a cassette.
	ExchangesMax = 100_000
)

// Masked stands where a secret stood.
const Masked = "[masked]"

// labelName is the file of the label.
const labelName = "cassette.json"

// ErrCassette is wrapped by every error about a directory of recordings.
var ErrCassette = errors.New("cassette")

// exchange is one request and what came back.
type exchange struct {
	Version  int         `json:"cassette"`
	N        int         `json:"n"` // in the order in which requests were sent
	At       time.Time   `json:"at"`
	Request  sentRequest `json:"request"`
	Response *response   `json:"response,omitempty"`
	// Failure is why there was no response, or why it ended early.
	Failure *failure `json:"failure,omitempty"`
}

// sentRequest is the request that was sent.
type sentRequest struct {
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Header http.Header `json:"header,omitempty"`
	body
}

// response is what came back.
type response struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	AfterMS int64       `json:"after_ms"` // from sending to the headers
	Chunks  []chunk     `json:"chunks"`
	// Cut means that more than BodyBytesMax arrived, and only the beginning was kept.
	Cut bool `json:"cut,omitempty"`
}

// chunk is what one read of the stream returned, AtMS milliseconds after the
// request was sent. Bytes that are not UTF-8 are in Base64.
type chunk struct {
	AtMS   int64  `json:"at_ms"`
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty"`
}

func newChunk(at time.Duration, data []byte) chunk {
	c := chunk{AtMS: at.Milliseconds()}
	if utf8.Valid(data) {
		c.Text = string(data)
	} else {
		c.Base64 = slices.Clone(data)
	}
	return c
}

func (c chunk) chunkBytes() []byte {
	if c.Base64 != nil {
		return c.Base64
	}
	return []byte(c.Text)
}

// body is a body byte for byte: as JSON where that loses nothing but the layout
// of the file, else as text, else as base64.
type body struct {
	JSON   json.RawMessage `json:"json,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

func newBody(data []byte) body {
	var compact bytes.Buffer
	switch {
	case json.Compact(&compact, data) == nil && bytes.Equal(compact.Bytes(), data) && utf8.Valid(data):
		return body{JSON: slices.Clone(data)}
	case utf8.Valid(data):
		return body{Text: string(data)}
	}
	return body{Base64: slices.Clone(data)}
}

func (b body) bodyBytes() []byte {
	switch {
	case b.JSON != nil:
		var compact bytes.Buffer
		if json.Compact(&compact, b.JSON) == nil {
			return compact.Bytes()
		}
	case b.Base64 != nil:
		return b.Base64
	}
	return []byte(b.Text)
}

// Label describes the settings of a recorded run that its requests depend on.
type Label struct {
	Version int `json:"cassette"`
	// Model is the default route: that of a run which names none.
	Model string `json:"model,omitempty"`
	// Env are the variables that define how providers are reached, without their secrets.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the directory that the run worked in, and At when it began: prompts
	// name both.
	Dir string    `json:"dir,omitempty"`
	At  time.Time `json:"at"`
}

// writeFile writes a file whole or not at all.
func writeFile(dir, name string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCassette, name, err)
	}
	if err := safefile.Replace(filepath.Join(dir, name), b.Bytes()); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCassette, name, err)
	}
	return nil
}

// readFile reads a file that anybody may have written.
func readFile(dir, name string, into any) error {
	path := filepath.Join(dir, name)
	data, err := safefile.Read(path, FileBytesMax)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCassette, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCassette, path, err)
	}
	return nil
}

func fileName(n int) string { return fmt.Sprintf("%04d.json", n) }

// exchangeFiles are the names of the files of exchanges in a directory, in order.
func exchangeFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrCassette, err)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") && name != labelName {
			names = append(names, name)
		}
	}
	if len(names) > ExchangesMax {
		return nil, fmt.Errorf("%w: %s holds %d files, at most %d are played", ErrCassette, dir, len(names), ExchangesMax)
	}
	return names, nil
}
