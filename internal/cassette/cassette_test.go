package cassette

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/model"
)

const secretValue = "sk-9Wq3Zt7Lw0Xv5Rk2"

func scrubText(s string) string { return strings.ReplaceAll(s, secretValue, Masked) }

// postBody asks a transport as an adapter does, and reads the answer.
func postBody(t *testing.T, by http.RoundTripper, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", secretValue)
	req.Header.Set("Authorization", "Bearer another-one")
	res, err := by.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), errors.Join(err, res.Body.Close())
}

func newRecorder(t *testing.T) (*Recorder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tape")
	r, err := NewRecorder(Config{Dir: dir, Scrub: scrubText})
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

func newPlayer(t *testing.T, dir string) *Player {
	t.Helper()
	p, err := NewPlayer(PlayConfig{Dir: dir, Scrub: scrubText})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serveNumbered answers each request with its number and its body, in chunks.
func serveNumbered(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		n++
		w.Header().Set("X-Request-Id", "r-1")
		w.Header().Set("X-Secret-Token", "of-the-server")
		fmt.Fprintf(w, "%d ", n)
		mu.Unlock()
		w.(http.Flusher).Flush()
		_, _ = w.Write(body) // a client that is gone fails elsewhere
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestARecordingIsForPeopleAndHoldsNoSecret: one file of 0600 for each exchange,
// JSON as JSON, and no secret of a header, a URL or a body.
func TestARecordingIsForPeopleAndHoldsNoSecret(t *testing.T) {
	url := strings.Replace(serveNumbered(t), "://", "://user:word@", 1)
	r, dir := newRecorder(t)
	body := `{"model":"m","text":"<é> ` + secretValue + `","n":1.50}`
	_, got, err := postBody(t, r, url+"/v1/x?alt=sse&api_key=other&key="+secretValue+"&session=s", body)
	if err != nil || got != "1 "+body {
		t.Fatalf("what is recorded is not changed: %q, %v", got, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "0001.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{secretValue, "word", "another-one", "of-the-server", "other", `session=s`} {
		if strings.Contains(string(data), bad) {
			t.Errorf("it holds %q: %s", bad, data)
		}
	}
	for _, want := range []string{`"text": "<é> [masked]"`, `"n": 1.50`, `alt=sse`, `key=[masked]`, `"X-Api-Key": [`, `"r-1"`, `"status": 200`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("it does not hold %s: %s", want, data)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", e.Name(), err)
		}
	}
}

// TestAValueThatIsCutByChunksIsFound: and the exchange still plays.
func TestAValueThatIsCutByChunksIsFound(t *testing.T) {
	c := secretCleaner(scrubText)
	chunks := []chunk{{AtMS: 1, Text: "a " + secretValue[:5]}, {AtMS: 2, Text: secretValue[5:] + " b"}}
	got := c.cleanChunks(chunks)
	if len(got) != 1 || got[0].Text != "a [masked] b" || got[0].AtMS != 2 {
		t.Errorf("%+v", got)
	}
	if got := c.cleanChunks(chunks[:1]); len(got) != 1 || got[0].Text != chunks[0].Text {
		t.Errorf("%+v", got)
	}
	binary := newChunk(0, []byte("\xff "+secretValue))
	if got := c.cleanChunks([]chunk{binary}); string(got[0].chunkBytes()) != "\xff [masked]" {
		t.Errorf("%+v", got)
	}
}

// TestExchangesAreFoundByContent: not by order; equal ones in theirs, each once.
func TestExchangesAreFoundByContent(t *testing.T) {
	url := serveNumbered(t)
	r, dir := newRecorder(t)
	for _, body := range []string{`{"a":1,"b":[2]}`, `{"a":1,"b":[2]}`, `not JSON`, "\xff\xfe"} {
		if _, _, err := postBody(t, r, url+"/v1/x", body); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlayer(t, dir)
	for _, c := range []struct{ body, want string }{
		{"\xff\xfe", "4 \xff\xfe"}, {`{"b": [2], "a": 1}`, `1 {"a":1,"b":[2]}`}, {`not JSON`, `3 not JSON`}, {`{"a":1,"b":[2]}`, `2 {"a":1,"b":[2]}`},
	} {
		if status, got, err := postBody(t, p, "http://elsewhere.invalid/v1/x", c.body); err != nil || got != c.want || status != 200 {
			t.Errorf("%s: %d, %q, %v", c.body, status, got, err)
		}
	}
	_, _, err := postBody(t, p, url+"/v1/x", `{"a":1,"b":[2]}`)
	checkRefused(t, err, "recorded 2 times (0001.json, 0002.json), and all of it has been played")
	if played, all := p.Played(); played != 4 || all != 4 {
		t.Errorf("%d of %d", played, all)
	}
}

func checkRefused(t *testing.T, err error, want ...string) {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Misconfigured || !e.Unbilled {
		t.Fatalf("%v", err)
	}
	for _, w := range append(want, remedy) {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%s\ndoes not say %s", e.Message, w)
		}
	}
}

// TestMismatchNamesTheDifference: the first place, both values, and what to do.
func TestMismatchNamesTheDifference(t *testing.T) {
	long := strings.Repeat("the same beginning, ", 50)
	for _, c := range []struct{ was, is, want string }{
		{`{"a":{"b":[1,{"c":"x"}]}}`, `{"a":{"b":[1,{"c":"y"}]}}`, `$.a.b[1].c: recorded "x", now "y"`},
		{`{"a":1}`, `{"a":1,"b":{"c":2}}`, `$.b: recorded nothing, now {"c":2}`},
		{`{"a":[1,2]}`, `{"a":[1]}`, `$.a[1]: recorded 2, now nothing`},
		{`{"a":[1]}`, `{"a":{"b":1}}`, `$.a: recorded [1], now {"b":1}`},
		{`{"a b":1.0}`, `{"a b":1}`, `$["a b"]: recorded 1.0, now 1`},
		{`{"a":null,"z":1}`, `{"a":false,"z":2}`, `$.a: recorded null, now false`},
		{`{"t":"` + long + `left"}`, `{"t":"` + long + `right"}`, `$.t: recorded "…the same beginning, left", now "…the same beginning, right"`},
		{`plain`, `plane`, `the body: recorded "plain", now "plane"`},
		{`{"a":1}`, `{"a":"` + secretValue + `"}`, `$.a: recorded 1, now "[masked]"`},
	} {
		r, dir := newRecorder(t)
		url := serveNumbered(t)
		for _, body := range []string{`{"other":"request"}`, c.was} {
			if _, _, err := postBody(t, r, url+"/v1/x", body); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := postBody(t, newPlayer(t, dir), url+"/v1/x", c.is)
		checkRefused(t, err, "0002.json", c.want)
	}
	r, dir := newRecorder(t)
	url := serveNumbered(t)
	if _, _, err := postBody(t, r, url+"/v1/x", `{}`); err != nil {
		t.Fatal(err)
	}
	_, _, err := postBody(t, newPlayer(t, dir), url+"/v2/y", `{}`)
	checkRefused(t, err, "has no POST /v2/y")
}

// TestTheDirectoryOfARunMayBeAnother: what a prompt says of it is the same then.
func TestTheDirectoryOfARunMayBeAnother(t *testing.T) {
	r, dir := newRecorder(t)
	if err := r.Begin(Label{Dir: "/home/a/project"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := postBody(t, r, serveNumbered(t)+"/x", `{"system":"You work in /home/a/project."}`); err != nil {
		t.Fatal(err)
	}
	p := newPlayer(t, dir)
	p.At("/srv/other")
	if _, got, err := postBody(t, p, "http://h/x", `{"system":"You work in /srv/other."}`); err != nil || !strings.HasPrefix(got, "1 ") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestARecordingWithHolesIsNoRecording: after an exchange that could not be kept
// nothing is sent any more.
func TestARecordingWithHolesIsNoRecording(t *testing.T) {
	url := serveNumbered(t)
	r, dir := newRecorder(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := postBody(t, r, url, `{}`); err != nil {
		t.Fatal(err) // what was paid for is not lost
	}
	if r.Err() == nil {
		t.Error("nobody was told")
	}
	_, _, err := postBody(t, r, url, `{}`)
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Misconfigured || !strings.Contains(e.Message, "cannot be kept") {
		t.Errorf("%v", err)
	}
}

// TestFilesOfOthersAreRefused: a cassette may come from anybody.
func TestFilesOfOthersAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ label, exchange string }{
		"no label":     {"", ""},
		"newer form":   {`{"cassette":2}`, ""},
		"no JSON":      {`{"cassette":1}`, `{`},
		"no form":      {`{"cassette":1}`, `{}`},
		"no answer":    {`{"cassette":1}`, `{"cassette":1,"request":{"method":"POST","url":"http://h/"}}`},
		"no request":   {`{"cassette":1}`, `{"cassette":1,"response":{"status":200,"chunks":[]}}`},
		"no status":    {`{"cassette":1}`, `{"cassette":1,"request":{"method":"POST","url":"http://h/"},"response":{"status":-7}}`},
		"wrong header": {`{"cassette":1}`, `{"cassette":1,"request":{"method":"POST","url":"http://h/","header":[1]}}`},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{labelName: c.label, "0001.json": c.exchange} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := NewPlayer(PlayConfig{Dir: dir}); !errors.Is(err, ErrCassette) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDiffer: two requests that are not the same differ somewhere.
func FuzzDiffer(f *testing.F) {
	f.Add(`{"a":[1,"x"]}`, `{"a":[1,"y"]}`)
	f.Add(`[]`, `{}`)
	f.Add(`null`, `[null]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		p := &Player{}
		x, y := p.reduceRequest("POST", "/", []byte(a), nil), p.reduceRequest("POST", "/", []byte(b), nil)
		if x.parsed == nil || y.parsed == nil {
			return
		}
		path, _, _ := firstDifference("$", x.parsed, y.parsed)
		if same := x.key == y.key; same != (path == "") {
			left, _ := json.Marshal(x.parsed)
			t.Errorf("%s and %s differ at %q", left, y.text, path)
		}
	})
}

// TestTheAddressesInHeadersAreCleanedToo: a redirect to a page for signing in has
// its tokens in the address.
func TestTheAddressesInHeadersAreCleanedToo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://u:word@login.example/in?token=of-the-session&next=%2Fv1#code")
		w.Header().Set("Content-Location", "/in?token=of-the-session")
		w.Header().Set("Link", `<https://login.example/?key=of-the-session>; rel="next"`)
		w.WriteHeader(http.StatusFound)
	}))
	defer s.Close()
	r, dir := newRecorder(t)
	if _, _, err := postBody(t, r, s.URL, "{}"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "0001.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "of-the-session") || strings.Contains(string(data), "word") || !strings.Contains(string(data), "next=%2Fv1") {
		t.Errorf("%s", data)
	}
}
