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

// faultPhase is how far a server gets before its fault.
type faultPhase int

// The phases: nothing was sent, the headers were, half of the stream was, all of it.
const (
	noHeaders faultPhase = iota
	noByte
	midStream
	afterLast
)

var phases = []string{"before the headers", "before the first byte", "in the middle", "after the last event"}

// expectedOutcome is the required outcome of an attempt: whole, or an error of one of the classes.
type expectedOutcome struct {
	whole    bool
	classes  []model.ErrorClass
	unbilled bool
	retry    time.Duration
}

func failsWith(classes ...model.ErrorClass) expectedOutcome { return expectedOutcome{classes: classes} }

var whole = expectedOutcome{whole: true}

// broken is the outcome of an exchange that breaks, at each phase.
var broken = [4]expectedOutcome{failsWith(model.Network), failsWith(model.Network), failsWith(model.Network), whole}

// serverFault is one way for a server to fail, at each phase.
type serverFault struct {
	name string
	// events are the events that it sends instead; nil means Calls.
	events func(Dialect) []string
	// header is set on the response before anything is sent.
	header [2]string
	act    func(*faultCell)
	want   [4]expectedOutcome
	// quick are the timers of an attempt that ends by one of them, at each phase: a short one, and
	// others that are not to end it first on a busy machine. nil means the default timers.
	quick *[4]modelhttp.Timeouts
}

// faultCell is one exchange under a fault.
type faultCell struct {
	d    Dialect
	at   faultPhase
	w    http.ResponseWriter
	r    *http.Request
	over <-chan struct{}
	conn io.Writer // the connection itself, before the headers
	drop func()
}

// sendText writes text that the client may no longer read.
func (c *faultCell) sendText(text string) {
	_, _ = io.WriteString(c.w, text)
	c.w.(http.Flusher).Flush()
}

// awaitClient waits for the client to go.
func (c *faultCell) awaitClient() {
	select {
	case <-c.r.Context().Done():
	case <-c.over:
	}
}

// hijackConn takes the connection from the server.
func (c *faultCell) hijackConn() {
	conn, _, err := c.w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c.conn, c.drop = conn, func() { _ = conn.Close() }
}

// writeForever writes the same until the client goes or the test is over.
func (c *faultCell) writeForever(w io.Writer, text string, every time.Duration) {
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

func abortConn(*faultCell)   { panic(http.ErrAbortHandler) }
func sendNothing(*faultCell) {}

// statusFault is an error of a kind: before the headers a response, later an event.
func statusFault(name string, code int, kind string, want expectedOutcome, later model.ErrorClass, retry string) serverFault {
	return serverFault{name: name, act: func(c *faultCell) {
		if c.at > noHeaders {
			c.sendText(c.d.ErrorEvent(kind, "so it is"))
			return
		}
		if retry != "" {
			c.w.Header().Set("Retry-After", retry)
		}
		c.w.Header().Set("Content-Type", "application/json")
		c.w.WriteHeader(code)
		_, _ = io.WriteString(c.w, c.d.ErrorBody(kind, "so it is"))
	}, want: [4]expectedOutcome{want, failsWith(later), failsWith(later), whole}}
}

func unbilledError(c model.ErrorClass) expectedOutcome {
	return expectedOutcome{classes: []model.ErrorClass{c}, unbilled: true}
}

func listFaults() []serverFault {
	late := unbilledError(model.RateLimit)
	late.retry = 7 * time.Second
	return []serverFault{
		statusFault("400", 400, "invalid_request_error", unbilledError(model.BadRequest), model.BadRequest, ""),
		statusFault("401", 401, "authentication_error", unbilledError(model.Auth), model.Auth, ""),
		statusFault("408", 408, "timeout_error", failsWith(model.Network), model.Network, ""),
		statusFault("413", 413, "request_too_large", unbilledError(model.TooLong), model.TooLong, ""),
		statusFault("429", 429, "rate_limit_error", unbilledError(model.RateLimit), model.RateLimit, ""),
		statusFault("429 with Retry-After", 429, "rate_limit_error", late, model.RateLimit, "7"),
		statusFault("500", 500, "api_error", failsWith(model.Overload), model.Overload, ""),
		statusFault("502", 502, "server_error", failsWith(model.Overload), model.Overload, ""),
		statusFault("529", 529, "overloaded_error", unbilledError(model.Overload), model.Overload, ""),
		{name: "reset", act: abortConn, want: broken},
		{name: "half-open", act: (*faultCell).awaitClient, want: broken, quick: &halfOpenTimers},
		{name: "slow drip", quick: &dripTimers, want: broken, act: func(c *faultCell) {
			if c.at > noHeaders {
				c.writeForever(c.w, ".", short/10)
				return
			}
			c.hijackConn()
			defer c.drop()
			_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nContent-Type: text/ev") // and no more of it
			c.silenceOf()
		}},
		{name: "wrong content type", header: [2]string{"Content-Type", "text/html"}, act: sendNothing,
			want: [4]expectedOutcome{failsWith(model.Misconfigured), failsWith(model.Misconfigured), failsWith(model.Misconfigured), failsWith(model.Misconfigured)}},
		{name: "truncated event", want: broken, act: func(c *faultCell) {
			if c.at > noHeaders {
				c.sendText(c.d.Calls[0][:len(c.d.Calls[0])/2])
				return
			}
			c.hijackConn()
			_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nContent-Ty")
			c.drop()
		}},
		{name: "unknown event", want: [4]expectedOutcome{whole, whole, whole, whole}, act: func(c *faultCell) {
			if c.at == noHeaders {
				c.w.WriteHeader(http.StatusEarlyHints)
			} else {
				c.sendText("event: shiny\ndata: {\"type\":\"shiny\",\"object\":\"shiny\"}\n\n")
			}
			c.sendRest()
		}},
		{name: "usage missing", events: func(d Dialect) []string { return d.NoUsage }, act: abortConn, want: broken},
		{name: "stop reason wrong", events: renameEvent(`("(?:stop_reason|finish_reason|finishReason|status)":")[a-zA-Z_]+`, `${1}made_up`), act: sendNothing, want: broken},
		{name: "endless line", want: [4]expectedOutcome{failsWith(model.Network), failsWith(model.Undecodable), failsWith(model.Undecodable), whole}, act: func(c *faultCell) {
			if c.at > noHeaders {
				c.sendText("data: ")
				c.writeForever(c.w, strings.Repeat("a", 64<<10), 0)
				return
			}
			c.hijackConn()
			defer c.drop()
			_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nX: ")
			c.writeForever(c.conn, strings.Repeat("a", 64<<10), 0)
		}},
		{name: "invalid UTF-8", want: [4]expectedOutcome{whole, whole, whole, whole}, act: func(c *faultCell) {
			if c.at == noHeaders {
				c.w.Header().Set("X-Note", "\xff\xfe")
			} else {
				c.sendText(": \xff\xfe\nevent: \xff\ndata: {\"type\":\"\xff\",\"object\":\"\xfe\"}\n\n")
			}
			c.sendRest()
		}},
		{name: "duplicate tool ids", events: renameEvent(`("(?:id|call_id)":")[^"]+`, `${1}same_id`), act: sendNothing, want: broken},
		{name: "gzip bomb", header: [2]string{"Content-Encoding", "gzip"}, act: sendEndlessGzip,
			want: [4]expectedOutcome{failsWith(model.Overload), failsWith(model.Undecodable), failsWith(model.Undecodable), whole}},
	}
}

func renameEvent(pattern, to string) func(Dialect) []string {
	re := regexp.MustCompile(pattern)
	return func(d Dialect) []string {
		var out []string
		for _, e := range d.Calls {
			out = append(out, re.ReplaceAllString(e, to))
		}
		return out
	}
}

// sendEndlessGzip is endless when it is unpacked.
func sendEndlessGzip(c *faultCell) {
	if c.at == noHeaders {
		c.w.Header().Set("Content-Encoding", "gzip")
		c.w.WriteHeader(http.StatusInternalServerError)
	}
	z := gzip.NewWriter(c.w)
	defer z.Close()
	if c.at > noByte {
		_, _ = io.WriteString(z, strings.Join(c.d.Calls[:c.eventsBefore()], ""))
	}
	line := strings.Repeat("a", 64<<10)
	for range 2 * modelhttp.MaxLine / len(line) {
		if _, err := io.WriteString(z, line); err != nil {
			return
		}
	}
}

// silenceOf is silence on a connection of our own, whose end no event reports.
func (c *faultCell) silenceOf() {
	select {
	case <-c.over:
	case <-time.After(20 * short):
	}
}

// eventsBefore is how many events come before the fault, of as many as there are.
func (c *faultCell) eventsBefore() int { return [4]int{0, 0, len(c.d.Calls) / 2, len(c.d.Calls)}[c.at] }

// sendRest sends the rest of the reply after a fault that is harmless.
func (c *faultCell) sendRest() {
	if c.at == noHeaders {
		c.w.Header().Set("Content-Type", "text/event-stream")
	}
	c.sendText(strings.Join(c.d.Calls[c.eventsBefore():], ""))
}

// serveCell is the server of one cell.
func (f serverFault) serveCell(c *faultCell) {
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
		c.sendText(strings.Join(c.d.Calls[:c.eventsBefore()], ""))
	} else if f.events != nil {
		abortConn(c)
	}
	f.act(c)
}

// testMatrix is FM14: each fault at each phase. An attempt sends one request, ends in
// time, reports its outcome, and leaves only what can be part of the next request.
func testMatrix(t *testing.T, d Dialect) {
	over := make(chan struct{})
	working, waiting := map[string]func(*testing.T){}, map[string]func(*testing.T){}
	list := listFaults()
	for _, f := range list {
		for at, phase := range phases {
			cells := working
			if f.quick != nil {
				cells = waiting
			}
			cells[fmt.Sprintf("%s %s", f.name, phase)] = func(t *testing.T) { tryCell(t, d, f, faultPhase(at), over) }
		}
	}
	var waits sync.WaitGroup
	waits.Go(func() { runSideBySide(t, waiting) })
	for name, try := range working {
		t.Run(name, try)
	}
	waits.Wait()
	close(over)
	t.Logf("FM14: %d faults, %d cells", len(list), len(working)+len(waiting))
}

// most is how long an attempt may take that has to end by itself.
const most = time.Minute

func tryCell(t *testing.T, d Dialect, f serverFault, at faultPhase, over <-chan struct{}) {
	var requests atomic.Int64
	var busy sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		busy.Add(1)
		defer busy.Done()
		_, _ = io.Copy(io.Discard, r.Body)
		f.serveCell(&faultCell{d: d, at: at, w: w, r: r, over: over})
	}))
	defer server.Close()
	timeouts := modelhttp.Timeouts{}
	if f.quick != nil {
		timeouts = f.quick[at]
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
	if requests.Load() > 0 || f.quick == nil { // a busy machine may not have sent it before a short timer ended
		judgeOutcome(t, f, at, got, err)
	}
	if n := requests.Load(); n > 1 || n == 0 && f.quick == nil {
		t.Errorf("%d requests for one attempt", n)
	}
	followUp(t, d, got)
}

// judgeOutcome compares the outcome of an attempt with the expected one.
func judgeOutcome(t *testing.T, f serverFault, at faultPhase, got model.Reply, err error) {
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

// followUp sends a request whose transcript contains what an attempt has left: the
// provider must accept it.
func followUp(t *testing.T, d Dialect, got model.Reply) {
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
	if _, err := startServer(t, d, Stream(d.Hello), modelhttp.Timeouts{}).Complete(t.Context(), req, nil); err != nil {
		t.Errorf("what is left cannot be sent: %v", err)
	}
}
