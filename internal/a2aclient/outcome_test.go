package a2aclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/test/a2apeer"
)

// The end of a call does not hide what is known of its task: that it was not sent, that the server refused it, or that
// the answer is cut.
//
//behaviour:shows H5
func TestEndOfAnA2ACallKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   error
	}{
		"refused": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, errCredential},
		"cut": {func(w http.ResponseWriter) {
			a2apeer.Reply(w, `{"task":`+strings.Replace(a2apeer.TaskText("1", "WORKING"), `"status"`,
				`"artifacts":[{"artifactId":"a","parts":[{"text":"`+strings.Repeat("x", answerBytesMax+1)+`"}]}],"status"`, 1)+`}`)
		}, errTooLong},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p := a2apeer.Start(t, false, func(w http.ResponseWriter, r a2apeer.Request) {
			if r.Method == dialectV1.cancel {
				a2apeer.Reply(w, a2apeer.TaskText("1", "CANCELED"))
				return
			}
			cancel()
			k.answer(w)
		})
		c := newCaller(t, p.URL)
		c.learnWait = time.Minute // a busy machine does not end the wait for the response
		if _, err := callReviewer(ctx, c); !errors.Is(err, k.want) || errors.Is(err, errNoWait) || ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	go func() {
		conn, err := mute.Accept() // and no handshake of TLS follows
		cancel()
		if err == nil {
			<-t.Context().Done()
			_ = conn.Close()
		}
	}()
	p := a2apeer.Start(t, false, nil)
	c := newCaller(t, p.URL, func(a *Agent) { a.Endpoint = "https://" + mute.Addr().String() })
	if _, err := callReviewer(ctx, c); !errors.Is(err, errNotSent) || errors.Is(err, errNoWait) || ctx.Err() == nil {
		t.Errorf("during the handshake: %v", err)
	}
}

// A redirect answers a request that has arrived. Most servers send it after they have taken the task; 307 and 308 ask
// for the request at another address.
func TestRedirectOfAnA2ATask(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{true, false} {
		for status, want := range map[int]string{
			301: "whether the server took the task is unknown",
			302: "whether the server took the task is unknown",
			303: "whether the server took the task is unknown",
			307: "the server did not take the task",
			308: "the server did not take the task",
		} {
			p := a2apeer.Start(t, streams, func(w http.ResponseWriter, _ a2apeer.Request) {
				w.Header().Set("Location", "https://login.example/x")
				w.WriteHeader(status)
			})
			_, err := callReviewer(t.Context(), newCaller(t, p.URL))
			if !errors.Is(err, errRedirect) || errors.Is(err, errNotSent) || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "https://login.example:443") || p.Tasks() != 1 {
				t.Errorf("HTTP %d: %v, %d tasks", status, err, p.Tasks())
			}
		}
	}
}

// An answer that is cut comes with an error and with the text up to the cut, wherever the agent has put it.
func TestLongAnswersOfA2AAgents(t *testing.T) {
	t.Parallel()
	long := `[{"text":"` + strings.Repeat("x", answerBytesMax+1) + `"}]`
	want := "[partial: the first 1048576 bytes of an answer that did not end]\n" + strings.Repeat("x", answerBytesMax)
	history := `"history":[{"role":"ROLE_AGENT","parts":` + long + `}]`
	for name, k := range map[string]struct{ result, want string }{
		"message": {`{"message":{"role":"ROLE_AGENT","parts":` + long + `}}`, want},
		"status":  {`{"task":{"id":"1","status":{"state":"TASK_STATE_COMPLETED","message":{"parts":` + long + `}}}}`, want},
		"history": {`{"task":{"id":"1","status":{"state":"TASK_STATE_COMPLETED"},` + history + `}}`, want},
		"not the answer": {`{"task":{"id":"1","status":{"state":"TASK_STATE_COMPLETED"},` + history +
			`,"artifacts":[{"artifactId":"a","parts":[{"text":"A is safe."}]}]}}`, "A is safe."},
	} {
		p := a2apeer.Start(t, false, func(w http.ResponseWriter, _ a2apeer.Request) { a2apeer.Reply(w, k.result) })
		text, err := callReviewer(t.Context(), newCaller(t, p.URL))
		if text != k.want || errors.Is(err, errTooLong) != (k.want == want) || err != nil && !errors.Is(err, errTooLong) {
			t.Errorf("%s: %d bytes, %.80q: %v", name, len(text), text, err)
		}
	}
}

// A server that has no time for a question about a task is asked again, after the pause that it wants.
func TestBusyA2AServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	var last time.Time
	var waited time.Duration
	asked := 0
	p := a2apeer.Start(t, false, func(w http.ResponseWriter, r a2apeer.Request) {
		if r.Method == dialectV1.send {
			a2apeer.Reply(w, a2apeer.TaskEvent("1", "WORKING"))
			return
		}
		asked++
		switch asked {
		case 1:
			w.WriteHeader(http.StatusRequestTimeout)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"slow down"}}`)
		case 3:
			w.Header().Set("Retry-After", "1")
			last = time.Now()
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			waited = time.Since(last)
			a2apeer.Reply(w, strings.Replace(a2apeer.TaskText("1", "COMPLETED"), `"status"`,
				`"artifacts":[{"artifactId":"a","parts":[{"text":"A is safe."}]}],"status"`, 1))
		}
	})
	text, err := callReviewer(t.Context(), newCaller(t, p.URL))
	if err != nil || text != "A is safe." || asked != 4 || p.Tasks() != 1 || waited < time.Second {
		t.Errorf("%q %v, asked %d times, the last time after %s", text, err, asked, waited)
	}
	for _, n := range p.Requests(dialectV1.cancel) {
		t.Errorf("the task was canceled: %+v", n)
	}
	busy := a2apeer.Start(t, false, func(w http.ResponseWriter, r a2apeer.Request) {
		switch r.Method {
		case dialectV1.send:
			a2apeer.Reply(w, a2apeer.TaskEvent("1", "WORKING"))
		case dialectV1.get:
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			a2apeer.Reply(w, a2apeer.TaskText("1", "CANCELED"))
		}
	})
	_, err = callReviewer(t.Context(), newCaller(t, busy.URL))
	gets, cancels := len(busy.Requests(dialectV1.get)), len(busy.Requests(dialectV1.cancel))
	if !errors.Is(err, errVanished) || gets != pollFailures || cancels != 1 {
		t.Errorf("always busy: %v, asked %d times, %d cancels", err, gets, cancels)
	}
}

// A pause that a server wants has a limit.
func TestRetryAfterOfAnA2AServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "1e300": 0, "0": 0, "7": 7 * time.Second, "9999999999": retryAfterMax,
		"Wed, 21 Oct 2015 07:28:00 GMT": 0, "Wed, 21 Oct 2415 07:28:00 GMT": retryAfterMax,
	} {
		if d := parseRetryAfter(text); d != want {
			t.Errorf("%q: %s, want %s", text, d, want)
		}
	}
}

// A server that cannot tell the state of a task is asked for it again.
func TestA2ATaskOfUnknownState(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"unknown", "TASK_STATE_UNSPECIFIED"} {
		asked := 0
		p := a2apeer.Start(t, false, func(w http.ResponseWriter, r a2apeer.Request) {
			asked++
			switch {
			case r.Method == dialectV1.send:
				a2apeer.Reply(w, `{"task":{"id":"1","status":{"state":"`+state+`"}}}`)
			case asked < 10:
				a2apeer.Reply(w, `{"id":"1","status":{"state":"`+state+`"}}`)
			default:
				a2apeer.Reply(w, a2apeer.TaskText("1", "COMPLETED"))
			}
		})
		if _, err := callReviewer(t.Context(), newCaller(t, p.URL)); err != nil || asked != 10 {
			t.Errorf("%s: %v, asked %d times", state, err, asked)
		}
	}
}
