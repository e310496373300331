package wiretest

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// testStatuses checks that error responses get their class, are requested once, and contain the provider's text.
func testStatuses(t *testing.T, d Dialect) {
	for name, c := range map[string]struct {
		status int
		header [2]string
		body   string
		want   model.Error
	}{
		"rate limit":        {429, [2]string{"Retry-After", "7"}, d.ErrorBody("rate_limit_error", "slow down"), model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: 7 * time.Second, Message: "slow down"}},
		"rate limit in ms":  {429, [2]string{"Retry-After-Ms", "1500"}, "", model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: 1500 * time.Millisecond, Message: "Too Many Requests"}},
		"for ever":          {429, [2]string{"Retry-After", "1e300"}, "", model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: modelhttp.MaxRetryAfter, Message: "Too Many Requests"}},
		"in the past":       {429, [2]string{"Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"}, "", model.Error{Class: model.RateLimit, Unbilled: true, Message: "Too Many Requests"}},
		"no quota":          {429, [2]string{}, d.ErrorBody("insufficient_quota", "pay"), model.Error{Class: model.Quota, Unbilled: true, Message: "pay"}},
		"overload":          {529, [2]string{}, d.ErrorBody("overloaded_error", "busy"), model.Error{Class: model.Overload, Unbilled: true, Message: "busy"}},
		"unavailable":       {503, [2]string{"Retry-After", "2"}, "<html>", model.Error{Class: model.Overload, RetryAfter: 2 * time.Second, Message: "Service Unavailable"}},
		"server":            {500, [2]string{}, d.ErrorBody("api_error", "oops"), model.Error{Class: model.Overload, Message: "oops"}},
		"gateway":           {502, [2]string{}, "", model.Error{Class: model.Overload, Message: "Bad Gateway"}},
		"gateway timeout":   {504, [2]string{}, "", model.Error{Class: model.Network, Message: "Gateway Timeout"}},
		"timeout":           {408, [2]string{}, "", model.Error{Class: model.Network, Message: "Request Timeout"}},
		"key":               {401, [2]string{}, d.ErrorBody("authentication_error", "who?"), model.Error{Class: model.Auth, Unbilled: true, Message: "who?"}},
		"permission":        {403, [2]string{}, "", model.Error{Class: model.Auth, Unbilled: true, Message: "Forbidden"}},
		"no such model":     {404, [2]string{}, d.ErrorBody("not_found_error", "model: m-1"), model.Error{Class: model.Misconfigured, Unbilled: true, Message: "model: m-1"}},
		"too large":         {413, [2]string{}, d.ErrorBody("request_too_large", "big"), model.Error{Class: model.TooLong, Unbilled: true, Message: "big"}},
		"content policy":    {400, [2]string{}, d.ErrorBody("content_policy_violation", "no"), model.Error{Class: model.Refused, Unbilled: true, Message: "no"}},
		"a body cut off":    {400, [2]string{}, `{"error":{"mess`, model.Error{Class: model.BadRequest, Unbilled: true, Message: "Bad Request"}},
		"error as a string": {400, [2]string{}, `{"error":"model not loaded"}`, model.Error{Class: model.BadRequest, Unbilled: true, Message: "model not loaded"}},
	} {
		c.want.Status = c.status
		requests := 0
		client := startServer(t, d, func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Content-Type", "application/json")
			if c.header[0] != "" {
				w.Header().Set(c.header[0], c.header[1])
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}, modelhttp.Timeouts{})
		_, err := client.Complete(t.Context(), Request(), nil)
		if diff := cmp.Diff(&c.want, modelError(t, err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if requests != 1 {
			t.Errorf("%s: %d requests: an attempt is one request", name, requests)
		}
	}
	for body, want := range map[string]model.ErrorClass{d.TooLong: model.TooLong, d.BadRequest: model.BadRequest} {
		client := startServer(t, d, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		}, modelhttp.Timeouts{})
		_, err := client.Complete(t.Context(), Request(), nil)
		if e := modelError(t, err); e.Class != want || !e.Unbilled {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

func errorEvent(t *testing.T, d Dialect) {
	got, err := startServer(t, d, Stream(d.Overload), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
	if e := modelError(t, err); e.Class != model.Overload || e.Unbilled || e.Status != 0 || e.Message != "busy" {
		t.Errorf("%+v", e)
	}
	if got.Message.Text != "Hello, " {
		t.Errorf("%+v", got)
	}
	broken := append(append([]string{}, d.Overload[:len(d.Overload)-1]...), "event: message_delta\ndata: {not json\n\n")
	got, err = startServer(t, d, Stream(broken), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
	if e := modelError(t, err); e.Class != model.Undecodable || got.Message.Text != "Hello, " {
		t.Errorf("%+v, %+v", got, e)
	}
}

// testTimers checks that silence at any point ends the attempt.
func testTimers(t *testing.T, d Dialect) {
	begin := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
	}
	// A handler also waits for the end of the server: a request whose body is not
	// read does not notice that its client has disconnected.
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	silence := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}
	parts := map[string]func(*testing.T){}
	for name, c := range map[string]struct {
		timeouts modelhttp.Timeouts
		handler  http.HandlerFunc
		text     string
		want     string
	}{
		"headers": {modelhttp.Timeouts{Headers: sending, FirstByte: long, Idle: long},
			func(_ http.ResponseWriter, r *http.Request) { silence(r) }, "", "no response headers within"},
		"first byte": {modelhttp.Timeouts{Headers: long, FirstByte: short, Idle: long},
			func(w http.ResponseWriter, r *http.Request) { begin(w, ""); silence(r) }, "", "no first byte of the response within"},
		"half an event": {modelhttp.Timeouts{Headers: long, FirstByte: long, Idle: short},
			func(w http.ResponseWriter, r *http.Request) { begin(w, d.Hello[0]+"event: mess"); silence(r) }, "", "no event within"},
		"drip": {modelhttp.Timeouts{Headers: long, FirstByte: long, Idle: short},
			func(w http.ResponseWriter, r *http.Request) {
				begin(w, d.Hello[0]+": ")
				dripResponse(w, r, ".")
			}, "", "no event within"},
		"lines for ever": {modelhttp.Timeouts{Headers: long, FirstByte: long, Idle: long, Total: sending}, // it counts from the request
			func(w http.ResponseWriter, r *http.Request) {
				begin(w, ": alive\n")
				dripResponse(w, r, ": alive\n\n")
			}, "", "no end of the stream within"},
		"error body": {modelhttp.Timeouts{Headers: long, FirstByte: short, Idle: short},
			func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, `{"error":`)
				w.(http.Flusher).Flush()
				silence(r)
			}, "", "no first byte of the response within"},
	} {
		parts[name] = func(t *testing.T) {
			client := startServer(t, d, c.handler, c.timeouts)
			got, err := client.Complete(t.Context(), Request(), nil)
			e := modelError(t, err)
			if e.Class != model.Network || !strings.Contains(e.Message, c.want) || e.Unbilled {
				t.Errorf("%+v", e)
			}
			if got.Message.Text != c.text || got.UsageKnown {
				t.Errorf("%+v", got)
			}
		}
	}
	runSideBySide(t, parts)
}

// runSideBySide runs parts that wait for timers more than they work, all at once: parallel subtests
// would wait for one another as soon as there are more than processors.
func runSideBySide(t *testing.T, parts map[string]func(*testing.T)) {
	var running sync.WaitGroup
	for name, part := range parts {
		running.Go(func() { t.Run(name, part) })
	}
	running.Wait()
}

// lateIdle ends an attempt after the last event, of a provider whose stream has no other end: the client must have
// read that event before.
const lateIdle = 75 * short

// The timers of a server that falls silent and of one that sends byte after byte, at each phase.
var (
	halfOpenTimers = [4]modelhttp.Timeouts{{Headers: short}, {Headers: long, FirstByte: short}, {Headers: long, FirstByte: long, Idle: short}, {Idle: lateIdle}}
	dripTimers     = [4]modelhttp.Timeouts{{Headers: short}, {Headers: long, FirstByte: long, Idle: short}, {Headers: long, FirstByte: long, Idle: short}, {Idle: lateIdle}}
)

// dripResponse sends the same every few milliseconds.
func dripResponse(w http.ResponseWriter, r *http.Request, what string) {
	tick := time.NewTicker(short / 10)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			if _, err := io.WriteString(w, what); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// CutStream answers with events, and then breaks the connection.
func CutStream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		Stream(events)(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// testHostile checks that the data of a server is bounded, also after decompression.
func testHostile(t *testing.T, d Dialect) {
	var sent atomic.Int64
	line := bytes.Repeat([]byte("a"), 64<<10)
	flood := func(w io.Writer, chunk []byte, limit int64) {
		for sent.Load() < limit {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	const endless = 2 << 30
	comment := []byte(":" + strings.Repeat("a", 126) + "\n")
	if *flagCuts < 0 {
		comment = []byte(":\n") // the most lines that a body can have
	}
	comments := append(bytes.Repeat(comment, 64<<10/len(comment)), '\n')
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		most    int64
	}{
		"a line": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			flood(w, line, endless)
		}, modelhttp.MaxLine},
		"a body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			flood(w, comments, endless)
		}, modelhttp.MaxBody},
		"gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			flood(z, line, 4*modelhttp.MaxLine)
		}, 4 * modelhttp.MaxLine},
	} {
		sent.Store(0)
		_, err := startServer(t, d, c.handler, modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
		if e := modelError(t, err); e.Class != model.Undecodable || !strings.Contains(e.Message, "longer than") {
			t.Errorf("%s: %+v", name, e)
		}
		const buffers = 32 << 20 // of the kernel, on both sides
		if n := sent.Load(); n > c.most+buffers {
			t.Errorf("%s: %d bytes were taken", name, n)
		}
	}
}

func invalidUTF8(t *testing.T, d Dialect) {
	var events []string
	for _, e := range d.Hello {
		events = append(events, strings.Replace(e, "Hello", "He\xff\xfello", 1))
	}
	got, err := startServer(t, d, Stream(events), modelhttp.Timeouts{}).Complete(t.Context(), Request(), func(x model.Delta) {
		if strings.ToValidUTF8(x.Text, "") != x.Text {
			t.Errorf("delta %q", x.Text)
		}
	})
	if err != nil || !strings.HasPrefix(got.Message.Text, "He\uFFFD") || !strings.HasSuffix(got.Message.Text, "llo, wörld") {
		t.Errorf("%q, %v", got.Message.Text, err)
	}
}

func notAStream(t *testing.T, d Dialect) {
	answer := func(status int, kind, body string) *model.Error {
		client := startServer(t, d, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}, modelhttp.Timeouts{})
		_, err := client.Complete(t.Context(), Request(), nil)
		return modelError(t, err)
	}
	if e := answer(200, "text/html", "<html>Log in</html>"); e.Class != model.Misconfigured || !strings.Contains(e.Message, "text/html") {
		t.Errorf("%+v", e)
	}
	if e := answer(200, "application/json", `{"id":"1"}`); e.Class != model.Misconfigured {
		t.Errorf("%+v", e)
	}
	if e := answer(200, "application/json", d.ErrorBody("overloaded_error", "busy")); e.Class != model.Overload {
		t.Errorf("%+v", e)
	}
	if e := answer(307, "text/html", ""); e.Class != model.Misconfigured || !strings.Contains(e.Message, "redirect") {
		t.Errorf("%+v", e)
	}
	if e := answer(404, "text/html", "<html>nginx</html>"); e.Class != model.Misconfigured || !e.Unbilled || !strings.Contains(e.Message, `answered "Not Found": check the path of the base URL`) || !strings.Contains(e.Message, "http://127.0.0.1:") {
		t.Errorf("%+v", e)
	}
	if e := answer(200, "text/event-stream", ""); e.Class != model.Network {
		t.Errorf("%+v", e)
	}
}

// testSecrets checks that the text of every error is safe to show.
func testSecrets(t *testing.T, d Dialect) {
	body := d.ErrorBody("authentication_error", "bad key "+Key+" (sk-other-123456789) at https://u:pw@h/p?api_key="+Key+"&x=hidden\x00\n\tend "+strings.Repeat("x", 5000))
	var errs []error
	client := startServer(t, d, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, body)
	}, modelhttp.Timeouts{})
	_, err := client.Complete(t.Context(), Request(), nil)
	errs = append(errs, err)

	// A port that was free a moment ago refuses connections.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	client, err = d.New("http://user:"+Key+"@"+addr, modelhttp.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Complete(t.Context(), Request(), nil)
	if e := modelError(t, err); e.Class != model.Network || !e.Unbilled {
		t.Errorf("a connection that was never made: %+v", e)
	}
	errs = append(errs, err)

	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = client.Complete(ctx, Request(), nil)
	errs = append(errs, err)
	for _, err := range errs {
		text := err.Error()
		for _, bad := range []string{Key, "sk-other", "hidden", "pw@", "?", "\n", "\x00"} {
			if strings.Contains(text, bad) {
				t.Errorf("%q holds %q", text, bad)
			}
		}
		if len(text) > modelhttp.MaxMessage+100 {
			t.Errorf("%d bytes of error", len(text))
		}
	}
}

// testTranscripts checks that a transcript that no provider accepts is rejected before anything is sent.
func testTranscripts(t *testing.T, d Dialect) {
	client := startServer(t, d, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, modelhttp.Timeouts{})
	user := model.Message{Role: model.User, Text: "a"}
	asked := model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: "1-0", Name: "a", Args: "{}"}, {ID: "1-1", Name: "a", Args: "{}"}}}
	answers := func(ids ...string) model.Message {
		m := model.Message{Role: model.ToolRole}
		for _, id := range ids {
			m.Results = append(m.Results, model.ToolResult{Call: id, Text: "b"})
		}
		return m
	}
	for name, messages := range map[string][]model.Message{
		"nothing":         {},
		"only tombstones": {{Role: model.User, Text: "a", Tombstone: true}},
		"blank":           {{Role: model.User, Text: " \n"}},
		"assistant first": {{Role: model.Assistant, Text: "a"}, user},
		"unanswered":      {user, asked, user},
		"unanswered last": {user, asked},
		"half answered":   {user, asked, answers("1-0")},
		"wrong order":     {user, asked, answers("1-1", "1-0")},
		"stray results":   {user, answers("1-0")},
		"used twice":      {user, asked, answers("1-0", "1-1"), asked, answers("1-0", "1-1")},
		"no id":           {user, {Role: model.Assistant, Calls: []model.ToolCall{{Name: "a"}}}, answers("")},
		"no such role":    {user, {Role: "system", Text: "a"}},
		"answer removed":  {user, asked, func() model.Message { m := answers("1-0", "1-1"); m.Tombstone = true; return m }()},
	} {
		req := Request()
		req.Messages = messages
		_, err := client.Complete(t.Context(), req, nil)
		if e := modelError(t, err); e.Class != model.BadRequest || !e.Unbilled || !strings.HasPrefix(e.Message, "not sent") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	req := Request()
	req.Tools[0].Schema = "[]"
	if _, err := client.Complete(t.Context(), req, nil); modelError(t, err).Class != model.BadRequest {
		t.Error(err)
	}
	req = Request()
	req.MaxOutput = 0
	if _, err := client.Complete(t.Context(), req, nil); modelError(t, err).Class != model.BadRequest {
		t.Error(err)
	}
}
