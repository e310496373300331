package a2aclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/test/a2apeer"
)

// shortWait is how long a caller of these tests waits for what does not come.
const shortWait = 50 * time.Millisecond

// newCaller calls the agent of a peer as a2a/reviewer.
func newCaller(t *testing.T, url string, change ...func(*Agent)) *Caller {
	t.Helper()
	a := Agent{Name: "reviewer", URL: url}
	for _, c := range change {
		c(&a)
	}
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	c := New(Config{Agents: []Agent{a}, Env: func(name string) string { return map[string]string{"TOKEN": "secret"}[name] }})
	c.silence, c.pollFirst, c.pollMost = shortWait, time.Millisecond, time.Millisecond
	t.Cleanup(c.Close)
	return c
}

func callReviewer(ctx context.Context, c *Caller) (string, error) {
	return c.Call(ctx, Request{Name: "a2a/reviewer", Task: "Review A.", Key: "r.root.1-0"})
}

// Whatever an agent streams is an answer within its limits, or an error that says what is known. The task is sent once, and a
// task that is not over is canceled.
//
//behaviour:shows H5
func TestHostileA2AStreams(t *testing.T) {
	t.Parallel()
	working := a2apeer.TaskEvent("1", "WORKING")
	long := strings.Repeat("x", 5<<20)
	write := func(text string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	send := func(events ...string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { a2apeer.Send(w, events...) }
	}
	for name, k := range map[string]hostileStream{
		"garbage":         {write("data: {{{\n\n"), errMalformed, 0, false},
		"bytes":           {write("data: \xff\xfe\n\n"), errMalformed, 0, false},
		"no JSON-RPC":     {write("data: {\"result\":{}}\n\n"), errMalformed, 0, false},
		"no event":        {send(`{}`), errMalformed, 0, false},
		"null":            {send(`null`), errMalformed, 0, false},
		"unknown state":   {send(working, a2apeer.StatusEvent("1", "SLEEPING", "")), errMalformed, 0, true},
		"other task":      {send(working, a2apeer.TextEvent("2", "a", "A is safe.")), errMalformed, 0, true},
		"no task":         {send(`{"task":{"id":"","status":{"state":"TASK_STATE_WORKING"}}}`), errMalformed, 0, false},
		"long id":         {send(a2apeer.TaskEvent(strings.Repeat("x", 4096), "WORKING")), errMalformed, 0, false},
		"empty":           {write(""), errVanished, 0, false},
		"comments":        {write(": hello\n\n: hello\n\n"), errVanished, 0, false},
		"line of 5 MB":    {send(working, a2apeer.TextEvent("1", "a", long)), errTooLong, answerBytesMax, true},
		"line of 10 MB":   {send(working, a2apeer.TextEvent("1", "a", long+long)), errTooLarge, 0, true},
		"message of 5 MB": {send(`{"message":{"role":"ROLE_AGENT","parts":[{"text":"` + long + `"}]}}`), errTooLong, answerBytesMax, false},
		"endless text": {func(w http.ResponseWriter) {
			for a2apeer.Send(w, working, a2apeer.TextEvent("1", "a", long[:64<<10])) {
			}
		}, errTooLong, answerBytesMax, true},
		"endless states": {func(w http.ResponseWriter) {
			status := a2apeer.StatusEvent("1", "WORKING", long[:64<<10])
			for a2apeer.Send(w, status) {
			}
		}, errTooLarge, 64 << 10, true},
		"endless comments": {func(w http.ResponseWriter) {
			a2apeer.Send(w, working)
			for {
				if _, err := io.WriteString(w, ": "+long[:64<<10]+"\n"); err != nil {
					return
				}
			}
		}, errTooLarge, 0, true},
		"endless artifacts": {func(w http.ResponseWriter) {
			for i := 0; a2apeer.Send(w, a2apeer.TextEvent("1", fmt.Sprint(i), "x")); i++ {
			}
		}, errTooMany, artifactsMax, true},
		"an error": {write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"it fell over\"}}\n\n"), errForeign, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkHostileStream(t, k)
		})
	}
}

// hostileStream is what a hostile agent streams, and what the call must make of it.
type hostileStream struct {
	stream   func(w http.ResponseWriter)
	want     error
	text     int // least bytes of the text; 0: there is none
	canceled bool
}

func checkHostileStream(t *testing.T, k hostileStream) {
	t.Helper()
	p := a2apeer.Start(t, true, func(w http.ResponseWriter, r a2apeer.Request) {
		if r.Method == dialectV1.cancel {
			a2apeer.Reply(w, a2apeer.TaskText(r.Params.ID, "CANCELED"))
			return
		}
		k.stream(w)
	})
	c := newCaller(t, p.URL)
	c.silence = time.Minute // a busy machine is no silence
	text, err := callReviewer(t.Context(), c)
	if !errors.Is(err, k.want) || (text == "") != (k.text == 0) || len(text) < k.text || len(text) > answerBytesMax+4096 || !utf8.ValidString(text) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if err != nil && (len(err.Error()) > 4*quotedBytesMax || !strings.Contains(err.Error(), "a2a/reviewer")) {
		t.Errorf("an error of %d bytes: %.200v", len(err.Error()), err)
	}
	if n := len(p.Requests(dialectV1.cancel)); p.Tasks() != 1 || (n == 1) != k.canceled || n > 1 {
		t.Errorf("%d tasks were sent, and %d cancels", p.Tasks(), n)
	}
}

// An agent whose stream breaks or is silent is asked for its task until that is over. The task is not sent again.
//
//behaviour:shows H5
func TestBrokenA2AStreamIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(w http.ResponseWriter){
		"ends":             func(http.ResponseWriter) {},
		"ends in an event": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"resu") },
		"ends in a word":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, "dat") },
		"aborts":           func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"silent":           func(http.ResponseWriter) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent := make(chan struct{})
			asked := 0
			p := a2apeer.Start(t, true, func(w http.ResponseWriter, r a2apeer.Request) {
				if r.Method != dialectV1.get {
					a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"), a2apeer.TextEvent("1", "a", "A is"))
					if name == "silent" {
						<-silent
					}
					breaks(w)
					return
				}
				if asked++; asked < 4 {
					a2apeer.Reply(w, a2apeer.TaskText(r.Params.ID, "WORKING"))
					return
				}
				a2apeer.Reply(w, `{"id":"1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"A is"},{"text":" safe."}]}]}`)
			})
			defer close(silent)
			text, err := callReviewer(t.Context(), newCaller(t, p.URL))
			if err != nil || text != "A is safe." || p.Tasks() != 1 || asked != 4 {
				t.Errorf("%q %v, %d tasks were sent, it was asked %d times", text, err, p.Tasks(), asked)
			}
		})
	}
}

// A server that vanishes in the middle, and one that does not answer any more, end the call with what had arrived.
//
//behaviour:shows H5
func TestA2AServerThatVanishes(t *testing.T) {
	t.Parallel()
	p := a2apeer.Start(t, true, func(w http.ResponseWriter, r a2apeer.Request) {
		if r.Method == dialectV1.stream {
			a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"), a2apeer.TextEvent("1", "a", "A is"))
		}
		panic(http.ErrAbortHandler)
	})
	text, err := callReviewer(t.Context(), newCaller(t, p.URL))
	if !errors.Is(err, errVanished) || text != "[partial: the first 4 bytes of an answer that did not end]\nA is" || p.Tasks() != 1 {
		t.Errorf("%q %v", text, err)
	}
	mute := a2apeer.Start(t, false, func(http.ResponseWriter, a2apeer.Request) { panic(http.ErrAbortHandler) })
	if _, err := callReviewer(t.Context(), newCaller(t, mute.URL)); !errors.Is(err, errVanished) || mute.Tasks() != 1 {
		t.Errorf("%v, %d tasks", err, mute.Tasks())
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	half := a2apeer.Start(t, false, nil)
	half.Card = a2apeer.CardOf(gone.URL, false)
	for _, c := range []*Caller{newCaller(t, gone.URL), newCaller(t, half.URL, func(a *Agent) { a.Endpoint = gone.URL })} {
		if _, err := callReviewer(t.Context(), c); !errors.Is(err, errNotSent) || errors.Is(err, errVanished) {
			t.Errorf("nobody is there: %v", err)
		}
	}
}

// Neither a card nor a redirect leads a task or a credential to another server, and no redirect sends a task twice.
//
//behaviour:shows H5
func TestAttackA2AServerLeadsElsewhere(t *testing.T) {
	t.Parallel()
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer other.Close()
	token := func(a *Agent) { a.TokenEnv = "TOKEN" }
	byCard := a2apeer.Start(t, false, nil)
	byCard.Card = a2apeer.CardOf(other.URL+"/rpc", false)
	if _, err := callReviewer(t.Context(), newCaller(t, byCard.URL, token)); !errors.Is(err, errNotSent) || !strings.Contains(err.Error(), "endpoint of a2a_agents.reviewer") {
		t.Errorf("a card that leads elsewhere: %v", err)
	}
	redirect := httptest.NewServer(http.RedirectHandler(other.URL+"/card.json", http.StatusTemporaryRedirect))
	defer redirect.Close()
	if _, err := callReviewer(t.Context(), newCaller(t, redirect.URL, token)); !errors.Is(err, errNotSent) || !errors.Is(err, errRedirect) {
		t.Errorf("a card that is elsewhere: %v", err)
	}
	for _, streams := range []bool{true, false} {
		for _, to := range []string{other.URL + "/rpc", "/rpc"} {
			p := a2apeer.Start(t, streams, func(w http.ResponseWriter, _ a2apeer.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusTemporaryRedirect)
			})
			if _, err := callReviewer(t.Context(), newCaller(t, p.URL, token)); !errors.Is(err, errRedirect) || p.Tasks() != 1 {
				t.Errorf("a task that is sent on to %s: %v, %d tasks", to, err, p.Tasks())
			}
		}
	}
	if len(seen) > 0 {
		t.Errorf("the other server got %v", seen)
	}
}

// The credential goes in the header of the settings, the version of the protocol in its own; the endpoint of the settings counts
// more than that of the card; and the message of one call has one id.
func TestA2ARequests(t *testing.T) {
	t.Parallel()
	p := a2apeer.Start(t, false, func(w http.ResponseWriter, _ a2apeer.Request) {
		a2apeer.Reply(w, `{"message":{"role":"ROLE_AGENT","parts":[{"text":"It is"},{"text":"safe."},{"url":"https://x/y.png","mediaType":"image/png"},{"raw":"AAAA","filename":"z"}]}}`)
	})
	rpc := p.URL + "/rpc"
	p.Card = a2apeer.CardOf("https://elsewhere.example/rpc", false)
	c := newCaller(t, p.URL, func(a *Agent) { a.Endpoint, a.TokenEnv, a.TokenHeader = rpc, "TOKEN", "X-API-Key" })
	for range 2 {
		text, err := callReviewer(t.Context(), c)
		if want := "It is\nsafe.\n[a file that is not shown: image/png at https://x/y.png]\n[a file that is not shown: z of 3 bytes]"; err != nil || text != want {
			t.Errorf("%q %v", text, err)
		}
	}
	got := p.Requests("SendMessage")
	if len(got) != 2 || got[0].Params.Message.MessageID == "" || got[0].Params.Message.MessageID != got[1].Params.Message.MessageID {
		t.Fatalf("%+v", got)
	}
	if h := got[0].Header; h.Get("X-API-Key") != "secret" || h.Get("Authorization") != "" || h.Get("A2A-Version") != "1.0" || got[0].Task() != "Review A." {
		t.Errorf("%+v", got[0])
	}
}

// Settings that would lead a token over the network unencrypted, or nowhere, are refused with the remedy.
func TestSettingsOfA2AAgents(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]Agent{
		"a name has letters":              {Name: "a b", URL: "https://x"},
		"it has no url":                   {Name: "a"},
		"not an http or https URL":        {Name: "a", URL: "ftp://x"},
		"a password has no place":         {Name: "a", URL: "https://me:secret@x"},
		"would travel unencrypted":        {Name: "a", URL: "http://agents.example.com", TokenEnv: "TOKEN"},
		"and not the token itself":        {Name: "a", URL: "https://x", TokenEnv: "sk-123"},
		"needs token_env":                 {Name: "a", URL: "https://x", TokenHeader: "X-Key"},
		"not a header that can carry":     {Name: "a", URL: "https://x", TokenEnv: "T", TokenHeader: "Host"},
		"endpoint: the token would":       {Name: "a", URL: "https://x", Endpoint: "http://x", TokenEnv: "T"},
		"endpoint: it is not an http or ": {Name: "a", URL: "https://x", Endpoint: "x"},
	} {
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", want, err)
		}
	}
	wrong := Agent{Name: "a", URL: "ftp://x", Endpoint: "ftp://y"}
	for range 50 { // of two that are wrong, the first one is named
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), "url: ") {
			t.Fatal(err)
		}
	}
	for _, a := range []Agent{{Name: "a", URL: "http://agents.example.com"}, {Name: "a", URL: "http://127.0.0.1:1", TokenEnv: "T"}, {Name: "a", URL: "https://x/card.json", TokenEnv: "T", TokenHeader: "X-API-Key"}} {
		if err := a.Validate(); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// A card is one of a version that is spoken, on the server that the settings name, or the task is not sent.
func TestCardsOfA2AAgents(t *testing.T) {
	t.Parallel()
	for card, want := range map[string]string{
		"no JSON":                    "is not the card",
		`{"supportedInterfaces":[]}`: "is not the card",
		`{"name":"a"}`:               "names no interface of the binding JSONRPC",
		strings.Repeat(" ", 1<<20):   "too much",
		`{"name":"a","supportedInterfaces":[{"url":"URL","protocolBinding":"GRPC","protocolVersion":"1.0"},{"url":"URL","protocolBinding":"JSONRPC","protocolVersion":"2.0"}]}`:                                                        "names no interface",
		`{"name":"a","supportedInterfaces":[{"url":"file:///etc/passwd","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`:                                                                                                        `names the address "file:///etc/passwd", which is not an http or https URL`,
		`{"name":"a","capabilities":{"extensions":[{"uri":"urn:x","required":true}]},"supportedInterfaces":[{"url":"URL","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`:                                                       `requires the extension "urn:x"`,
		`{"name":"a","url":"URL","protocolVersion":"0.3.0","preferredTransport":"GRPC"}`:                                                                                                                                               "names no interface",
		`{"name":"a","url":"URL","protocolVersion":"0.3.0"}`:                                                                                                                                                                           "",
		`{"name":"a","url":"x","protocolVersion":"0.3.0","preferredTransport":"GRPC","additionalInterfaces":[{"url":"URL","transport":"JSONRPC"}]}`:                                                                                    "",
		`{"name":"a","url":"https://x","protocolVersion":"0.3.0","supportedInterfaces":[{"url":"https://x","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"URL","protocolBinding":"jsonrpc","protocolVersion":"1.0.1"}]}`: "",
	} {
		p := a2apeer.Start(t, false, func(w http.ResponseWriter, _ a2apeer.Request) {
			a2apeer.Reply(w, `{"message":{"parts":[{"text":"yes"}]},"kind":"message","parts":[{"kind":"text","text":"yes"}]}`)
		})
		p.Card = strings.ReplaceAll(card, "URL", p.URL+"/rpc")
		text, err := callReviewer(t.Context(), newCaller(t, p.URL))
		if want == "" && (err != nil || text != "yes") {
			t.Errorf("%s: %q %v", card, text, err)
		}
		if want != "" && (!errors.Is(err, errNotSent) || !strings.Contains(err.Error(), want) || p.Tasks() > 0) {
			t.Errorf("%.200s: %v", card, err)
		}
	}
	if _, err := newCaller(t, "https://x").Call(t.Context(), Request{Name: "a2a/other"}); !errors.Is(err, errUnknown) {
		t.Errorf("an agent that no settings name: %v", err)
	}
	noToken := newCaller(t, "https://x", func(a *Agent) { a.TokenEnv = "MISSING" })
	if _, err := callReviewer(t.Context(), noToken); !errors.Is(err, errNotSent) || !strings.Contains(err.Error(), "the variable MISSING of a2a_agents.reviewer") {
		t.Errorf("without the variable: %v", err)
	}
}

// Any results of an agent are an answer within its limits, or an error.
func FuzzA2AResults(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", a2apeer.TaskEvent("1", "WORKING"), a2apeer.StatusEvent("1", "COMPLETED", "x"), a2apeer.TextEvent("1", "a", "x"), `{"kind":"task","id":"1","status":{"state":"input-required"}}`,
		`{"kind":"status-update","taskId":"1","final":true,"status":{"state":"failed"}}`, `{"kind":"artifact-update","taskId":"1","artifact":{"artifactId":"a","parts":[{"kind":"file","file":{"uri":"x"}},{"kind":"data","data":[1]}]}}`,
		`{"message":{"parts":[{"text":"\ud800"}]}}`, `{"kind":"message","parts":[{"kind":"text","text":"x"}]}`, `{"kind":"later"}`, `{"task":{"id":"1","status":{"state":"unknown"}}}`, `{"task":{"id":"1","history":[{"role":"agent","parts":[{"text":"x"}]}],"status":{"state":"completed"}}}`} {
		f.Add([]byte(seed), []byte("data: "+seed+"\n\n"))
	}
	f.Add([]byte("{}"), []byte("data: {}\n\ndata: {\"resu"))
	f.Fuzz(func(t *testing.T, data, stream []byte) {
		a := answer{artifacts: []artifact{{id: "a", text: bytes.Repeat([]byte("x"), answerBytesMax-len(data)/2)}}}
		a.size = len(a.artifacts[0].text)
		err := a.add(data)
		if text := a.text(); len(text) > answerBytesMax+2*len(a.artifacts) || utf8.Valid(data) && !utf8.ValidString(text) {
			t.Errorf("%q: %d bytes of text", data, len(text))
		}
		if err == nil && a.isSettled() {
			_, _ = a.result() // it must not panic
		}
		var joined []byte
		err = readEvents(bytes.NewReader(stream), func() {}, func(e []byte) (bool, error) {
			joined = append(joined, e...)
			return false, nil
		})
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || len(joined) > len(stream)+bytes.Count(stream, []byte("\n"))+1 {
			t.Errorf("%q: %d bytes of events, %v", stream, len(joined), err)
		}
	})
}

// A call that ends before the id of its task has arrived waits for that a moment, so that the task is canceled.
//
//behaviour:shows H5
func TestEarlyEndOfAnA2ACall(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		p := a2apeer.Start(t, streams, func(w http.ResponseWriter, r a2apeer.Request) {
			switch r.Method {
			case dialectV1.stream:
				cancel()
				a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"))
				<-t.Context().Done()
			case dialectV1.send:
				cancel()
				a2apeer.Reply(w, `{"task":`+a2apeer.TaskText("1", "WORKING")+`}`)
			default:
				a2apeer.Reply(w, a2apeer.TaskText("1", "CANCELED"))
			}
		})
		if _, err := callReviewer(ctx, newCaller(t, p.URL)); !errors.Is(err, errNoWait) || !strings.Contains(err.Error(), "its task was canceled") || len(p.Requests(dialectV1.cancel)) != 1 {
			t.Errorf("streams=%v: %v", streams, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	mute := a2apeer.Start(t, true, func(http.ResponseWriter, a2apeer.Request) {
		cancel()
		<-t.Context().Done()
	})
	began := time.Now()
	if _, err := callReviewer(ctx, newCaller(t, mute.URL)); !errors.Is(err, errNoWait) || time.Since(began) > time.Minute/2 {
		t.Errorf("an agent that says nothing: %v after %s", err, time.Since(began))
	}
}

// The end of the context ends the call at once, and cancels a task that is known.
func TestEndOfAnA2ACall(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		var words []string
		p := a2apeer.Start(t, streams, func(w http.ResponseWriter, r a2apeer.Request) {
			switch r.Method {
			case dialectV1.stream:
				a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"), a2apeer.StatusEvent("1", "WORKING", "Looking."))
				<-ctx.Done()
			case dialectV1.send:
				a2apeer.Reply(w, `{"task":`+a2apeer.TaskText("1", "WORKING")+`}`)
			case dialectV1.get:
				a2apeer.Reply(w, a2apeer.TaskText("1", "WORKING"))
			default:
				a2apeer.Reply(w, a2apeer.TaskText("1", "CANCELED"))
			}
		})
		c := newCaller(t, p.URL)
		c.silence = time.Minute
		_, err := c.Call(ctx, Request{Name: "a2a/reviewer", Task: "Review A.", Progress: func(text string) {
			if words = append(words, text); len(words) == 2 {
				cancel()
			}
		}})
		if !errors.Is(err, errNoWait) || !strings.Contains(err.Error(), "its task was canceled") || len(p.Requests("CancelTask")) != 1 {
			t.Errorf("streams=%v: %v", streams, err)
		}
		if streams && !slices.Equal(words, []string{"working", "working: Looking."}) {
			t.Errorf("progress %q", words)
		}
	}
}
