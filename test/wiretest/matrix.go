package wiretest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// phase is how far a server gets before its fault.
type phase int

// The phases: nothing was sent, the headers were, half of the stream was, all of it.
const (
	noHeaders phase = iota
	noByte
	midStream
	afterLast
)

var phases = []string{"before the headers", "before the first byte", "in the middle", "after the last event"}

// verdict is the required outcome of an attempt: whole, or an error of one of the classes.
type verdict struct {
	whole    bool
	classes  []model.ErrorClass
	unbilled bool
	retry    time.Duration
}

func fails(classes ...model.ErrorClass) verdict { return verdict{classes: classes} }

var whole = verdict{whole: true}

// broken is the outcome of an exchange that breaks, at each phase.
var broken = [4]verdict{fails(model.Network), fails(model.Network), fails(model.Network), whole}

// fault is one way for a server to fail, at each phase.
type fault struct {
	name string
	// events are the events that it sends instead; nil means Calls.
	events func(Dialect) []string
	// header is set on the response before anything is sent.
	header [2]string
	act    func(*cell)
	want   [4]verdict
	// quick gives the attempt short timers, up to the middle of the stream.
	quick bool
}

// cell is one exchange under a fault.
type cell struct {
	d    Dialect
	at   phase
	w    http.ResponseWriter
	r    *http.Request
	over <-chan struct{}
	conn io.Writer // the connection itself, before the headers
	drop func()
}

// send writes text that the client may no longer read.
func (c *cell) send(text string) {
	_, _ = io.WriteString(c.w, text)
	c.w.(http.Flusher).Flush()
}

// silence waits for the client to go.
func (c *cell) silence() {
	select {
	case <-c.r.Context().Done():
	case <-c.over:
	}
}

// raw takes the connection from the server.
func (c *cell) raw() {
	conn, _, err := c.w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c.conn, c.drop = conn, func() { _ = conn.Close() }
}

// forever writes the same until the client goes or the test is over.
func (c *cell) forever(w io.Writer, text string, every time.Duration) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		if every == 0 {
			continue
		}
		c.w.(http.Flusher).Flush()
		select {
		case <-c.r.Context().Done():
			return
		case <-c.over:
			return
		case <-time.After(every):
		}
	}
}

func abort(*cell)   { panic(http.ErrAbortHandler) }
func nothing(*cell) {}

// status is an error of a kind: before the headers a response, later an event.
func status(name string, code int, kind string, want verdict, later model.ErrorClass, retry string) fault {
	return fault{name: name, act: func(c *cell) {
		if c.at > noHeaders {
			c.send(c.d.ErrorEvent(kind, "so it is"))
			return
		}
		if retry != "" {
			c.w.Header().Set("Retry-After", retry)
		}
		c.w.Header().Set("Content-Type", "application/json")
		c.w.WriteHeader(code)
		_, _ = io.WriteString(c.w, c.d.ErrorBody(kind, "so it is"))
	}, want: [4]verdict{want, fails(later), fails(later), whole}}
}

func free(c model.ErrorClass) verdict { return verdict{classes: []model.ErrorClass{c}, unbilled: true} }

func faults() []fault {
	late := free(model.RateLimit)
	late.retry = 7 * time.Second
	return []fault{
		status("400", 400, "invalid_request_error", free(model.BadRequest), model.BadRequest, ""),
		status("401", 401, "authentication_error", free(model.Auth), model.Auth, ""),
		status("408", 408, "timeout_error", fails(model.Network), model.Network, ""),
		status("413", 413, "request_too_large", free(model.TooLong), model.TooLong, ""),
		status("429", 429, "rate_limit_error", free(model.RateLimit), model.RateLimit, ""),
		status("429 with Retry-After", 429, "rate_limit_error", late, model.RateLimit, "7"),
		status("500", 500, "api_error", fails(model.Overload), model.Overload, ""),
		status("502", 502, "server_error", fails(model.Overload), model.Overload, ""),
		status("529", 529, "overloaded_error", free(model.Overload), model.Overload, ""),
		{name: "reset", act: abort, want: broken},
		{name: "half-open", act: (*cell).silence, want: broken, quick: true},
		{name: "slow drip", quick: true, want: broken, act: func(c *cell) {
			if c.at > noHeaders {
				c.forever(c.w, ".", short/10)
				return
			}
			c.raw()
			defer c.drop()
			_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nContent-Type: text/ev") // and no more of it
			c.silenceOf()
		}},
		{name: "wrong content type", header: [2]string{"Content-Type", "text/html"}, act: nothing,
			want: [4]verdict{fails(model.Misconfigured), fails(model.Misconfigured), fails(model.Misconfigured), fails(model.Misconfigured)}},
		{name: "truncated event", want: broken, act: func(c *cell) {
			if c.at > noHeaders {
				c.send(c.d.Calls[0][:len(c.d.Calls[0])/2])
				return
			}
			c.raw()
			_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nContent-Ty")
			c.drop()
		}},
		{name: "unknown event", want: [4]verdict{whole, whole, whole, whole}, act: func(c *cell) {
			if c.at == noHeaders {
				c.w.WriteHeader(http.StatusEarlyHints)
			} else {
				c.send("event: shiny\ndata: {\"type\":\"shiny\",\"object\":\"shiny\"}\n\n")
			}
			c.rest()
		}},
		{name: "usage missing", events: func(d Dialect) []string { return d.NoUsage }, act: abort, want: broken},
		{name: "stop reason wrong", events: renamed(`("(?:stop_reason|finish_reason|finishReason|status)":")[a-zA-Z_]+`, `${1}made_up`), act: nothing, want: broken},
		{name: "endless line", want: [4]verdict{fails(model.Network), fails(model.Undecodable), fails(model.Undecodable), whole}, act: func(c *cell) {
			if c.at > noHeaders {
				c.send("data: ")
				c.forever(c.w, strings.Repeat("a", 64<<10), 0)
				return
			}
			c.raw()
			defer c.drop()
			_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nX: ")
			c.forever(c.conn, strings.Repeat("a", 64<<10), 0)
		}},
		{name: "invalid UTF-8", want: [4]verdict{whole, whole, whole, whole}, act: func(c *cell) {
			if c.at == noHeaders {
				c.w.Header().Set("X-Note", "\xff\xfe")
			} else {
				c.send(": \xff\xfe\nevent: \xff\ndata: {\"type\":\"\xff\",\"object\":\"\xfe\"}\n\n")
			}
			c.rest()
		}},
		{name: "duplicate tool ids", events: renamed(`("(?:id|call_id)":")[^"]+`, `${1}same_id`), act: nothing, want: broken},
		{name: "gzip bomb", header: [2]string{"Content-Encoding", "gzip"}, act: bomb,
			want: [4]verdict{fails(model.Overload), fails(model.Undecodable), fails(model.Undecodable), whole}},
	}
}

func renamed(pattern, to string) func(Dialect) []string {
	re := regexp.MustCompile(pattern)
	return func(d Dialect) []string {
		var out []string
		for _, e := range d.Calls {
			out = append(out, re.ReplaceAllString(e, to))
		}
		return out
	}
}

// bomb is endless when it is unpacked.
func bomb(c *cell) {
	if c.at == noHeaders {
		c.w.Header().Set("Content-Encoding", "gzip")
		c.w.WriteHeader(http.StatusInternalServerError)
	}
	z := gzip.NewWriter(c.w)
	defer z.Close()
	if c.at > noByte {
		_, _ = io.WriteString(z, strings.Join(c.d.Calls[:c.sofar()], ""))
	}
	line := strings.Repeat("a", 64<<10)
	for range 2 * modelhttp.MaxLine / len(line) {
		if _, err := io.WriteString(z, line); err != nil {
			return
		}
	}
}

// silenceOf is silence on a connection of our own, whose end no event reports.
func (c *cell) silenceOf() {
	select {
	case <-c.over:
	case <-time.After(20 * short):
	}
}

// sofar is how many events come before the fault, of as many as there are.
func (c *cell) sofar() int { return [4]int{0, 0, len(c.d.Calls) / 2, len(c.d.Calls)}[c.at] }

// rest sends the rest of the reply after a fault that is harmless.
func (c *cell) rest() {
	if c.at == noHeaders {
		c.w.Header().Set("Content-Type", "text/event-stream")
	}
	c.send(strings.Join(c.d.Calls[c.sofar():], ""))
}

// serve is the server of one cell.
func (f fault) serve(c *cell) {
	if f.events != nil {
		c.d.Calls = f.events(c.d)
	}
	if c.at > noHeaders || f.header[0] == "Content-Type" {
		c.w.Header().Set("Content-Type", "text/event-stream")
		if f.header[0] != "" {
			c.w.Header().Set(f.header[0], f.header[1])
		}
		c.w.WriteHeader(http.StatusOK)
		if f.header[0] == "Content-Encoding" {
			f.act(c) // packs the stream itself
			return
		}
		c.send(strings.Join(c.d.Calls[:c.sofar()], ""))
	} else if f.events != nil {
		abort(c)
	}
	f.act(c)
}

// matrix is FM14: each fault at each phase. An attempt sends one request, ends in
// time, reports its outcome, and leaves only what can be part of the next request.
func matrix(t *testing.T, d Dialect) {
	over := make(chan struct{})
	cells := 0
	list := faults()
	for _, f := range list {
		for at, name := range phases {
			cells++
			t.Run(fmt.Sprintf("%s %s", f.name, name), func(t *testing.T) { try(t, d, f, phase(at), over) })
		}
	}
	close(over)
	t.Logf("FM14: %d faults, %d cells", len(list), cells)
}

// most is how long an attempt may take that has to end by itself.
const most = time.Minute

func try(t *testing.T, d Dialect, f fault, at phase, over <-chan struct{}) {
	var requests atomic.Int64
	var busy sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		busy.Add(1)
		defer busy.Done()
		_, _ = io.Copy(io.Discard, r.Body)
		f.serve(&cell{d: d, at: at, w: w, r: r, over: over})
	}))
	defer server.Close()
	timeouts := modelhttp.Timeouts{}
	if f.quick && at < afterLast {
		timeouts = modelhttp.Timeouts{Headers: short, FirstByte: short, Idle: short}
	} else if f.quick {
		timeouts.Idle = 75 * short
	}
	client, err := d.New(server.URL, timeouts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), most)
	defer stop()
	got, err := client.Complete(ctx, Request(), nil)
	server.CloseClientConnections()
	busy.Wait()
	judge(t, f, at, got, err)
	// A timer of an attempt may end before a busy machine has begun its request.
	if n := requests.Load(); n > 1 || n == 0 && !f.quick {
		t.Errorf("%d requests for one attempt", n)
	}
	follow(t, d, got)
}

// judge compares the outcome of an attempt with the expected one.
func judge(t *testing.T, f fault, at phase, got model.Reply, err error) {
	t.Helper()
	want := f.want[at]
	var e *model.Error
	switch {
	case want.whole && err != nil:
		t.Errorf("a whole reply failed: %v", err)
	case want.whole:
		if len(got.Message.Calls) != len(wantCalls) && f.name != "usage missing" {
			t.Errorf("%+v", got)
		}
	case !errors.As(err, &e):
		t.Errorf("%+v, %v is no *model.Error", got, err)
	case e.Unbilled != want.unbilled || e.RetryAfter != want.retry || e.Class != want.classes[0]:
		t.Errorf("%+v, want %+v", e, want)
	case got.UsageKnown:
		t.Errorf("the usage of a broken attempt is known: %+v", got.Usage)
	}
	if f.name == "usage missing" && got.UsageKnown {
		t.Errorf("usage that nobody reported: %+v", got.Usage)
	}
}

// follow sends a request whose transcript contains what an attempt has left: the
// provider must accept it.
func follow(t *testing.T, d Dialect, got model.Reply) {
	t.Helper()
	m := got.Message
	if m.Role != model.Assistant || !utf8.ValidString(m.Text) {
		t.Fatalf("%+v", m)
	}
	req := Request()
	req.Messages = append(req.Messages, m)
	if len(m.Calls) > 0 {
		results := model.Message{Role: model.ToolRole}
		for i := range m.Calls {
			m.Calls[i].ID = fmt.Sprintf("1-%d", i)
			results.Results = append(results.Results, model.ToolResult{Call: m.Calls[i].ID, Text: "killed", Error: true})
		}
		req.Messages = append(req.Messages, results)
	}
	req.Messages = append(req.Messages, model.Message{Role: model.User, Text: "Go on."})
	if _, err := serve(t, d, Stream(d.Hello), modelhttp.Timeouts{}).Complete(t.Context(), req, nil); err != nil {
		t.Errorf("what is left cannot be sent: %v", err)
	}
}
