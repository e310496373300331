package wiretest

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// short is a timer that has to fire and whose verdict is the same however early it fires. sending is one that has to
// fire once the client looks for a connection or has sent the request, which a busy machine does late. long is one
// that must not fire.
const (
	short   = 40 * time.Millisecond
	sending = 50 * short
	long    = time.Minute
)

// quiet drops the server's log of handshakes that are meant to fail.
var quiet = log.New(io.Discard, "", 0)

// listenRaw starts a server that is no HTTP server; handle gets each connection, which is
// closed when it returns.
func listenRaw(t *testing.T, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close() // ends the loop
		<-over
	})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				handle(c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// testUnsent checks that a request is not billed if no byte of it was sent, and that one that
// was sent is billed as far as the client can tell.
func testUnsent(t *testing.T, d Dialect) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	strange := httptest.NewUnstartedServer(http.NotFoundHandler())
	strange.Config.ErrorLog = quiet
	strange.StartTLS()
	t.Cleanup(strange.Close)
	silent := listenRaw(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	parts := map[string]func(*testing.T){}
	for name, c := range map[string]struct {
		root     string
		timeouts modelhttp.Timeouts
		class    model.ErrorClass
		unbilled bool
	}{
		"TLS to a plain server":      {"https://" + plain.Listener.Addr().String(), modelhttp.Timeouts{}, model.Misconfigured, true},
		"TLS to a server that talks": {"https://" + listenRaw(t, func(c net.Conn) { _, _ = io.WriteString(c, "220 mail\r\n") }), modelhttp.Timeouts{}, model.Misconfigured, true},
		"an unknown authority":       {strange.URL, modelhttp.Timeouts{}, model.Misconfigured, true},
		"a handshake that is cut":    {"https://" + listenRaw(t, func(net.Conn) {}), modelhttp.Timeouts{}, model.Network, true},
		"a handshake without an end": {"https://" + silent, modelhttp.Timeouts{Headers: sending}, model.Network, true},
		"no answer to a request":     {"http://" + silent, modelhttp.Timeouts{Headers: sending}, model.Network, false},
		"a request that is cut off": {"http://" + listenRaw(t, func(c net.Conn) {
			_, _ = bufio.NewReader(c).ReadString('\n')
		}), modelhttp.Timeouts{}, model.Network, false},
	} {
		parts[name] = func(t *testing.T) {
			client, err := d.New(c.root, c.timeouts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Complete(t.Context(), Request(), nil)
			if e := modelError(t, err); e.Class != c.class || e.Unbilled != c.unbilled {
				t.Errorf("%+v, want %s, unbilled %t", e, c.class, c.unbilled)
			}
		}
	}
	runSideBySide(t, parts)
}

// keepAlives checks that data which keeps a connection busy without any part of the reply is a stall, before
// the reply and in the middle of it, and harmless after it.
func keepAlives(t *testing.T, d Dialect) {
	parts := map[string]func(*testing.T){}
	for name, noise := range map[string]string{
		"comments":       ": ping\n\n",
		"blank lines":    "\n\n",
		"pings":          "event: ping\ndata: {\"type\": \"ping\"}\n\n",
		"unknown events": "event: weather\ndata: {\"type\":\"weather\",\"sky\":\"blue\"}\n\n",
		"fields":         "retry: 10\nid: 7\n\n",
	} {
		complete := func(t *testing.T, begun int, content time.Duration) (model.Reply, error) {
			return startServer(t, d, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, strings.Join(d.Hello[:begun], "")+noise)
				dripResponse(w, r, noise)
			}, modelhttp.Timeouts{Headers: long, FirstByte: long, Idle: long, Content: content}).Complete(t.Context(), Request(), nil)
		}
		for _, begun := range []int{0, 1} {
			parts[fmt.Sprintf("%s after %d events", name, begun)] = func(t *testing.T) {
				_, err := complete(t, begun, 4*short)
				if e := modelError(t, err); e.Class != model.Network || e.Unbilled || !strings.Contains(e.Message, "no content of the reply within") {
					t.Errorf("%+v", e)
				}
			}
		}
		parts[name+" after the reply"] = func(t *testing.T) {
			got, err := complete(t, len(d.Hello), lateIdle)
			if err != nil || got.Message.Text != "Hello, wörld" {
				t.Errorf("%q, %v", got.Message.Text, err)
			}
		}
	}
	runSideBySide(t, parts)
	client := startServer(t, d, Stream(append(append([]string{": ping\n\n", "\n"}, d.Hello...), "event: trailing\n\n", "garbage\x00\xff without an end")), modelhttp.Timeouts{})
	if got, err := client.Complete(t.Context(), Request(), nil); err != nil || got.Message.Text != "Hello, wörld" {
		t.Errorf("noise around a reply: %q, %v", got.Message.Text, err)
	}
}

// testEndless checks that headers, redirects and interim responses without an end neither block a call
// nor fill the memory.
func testEndless(t *testing.T, d Dialect) {
	flood := func(head, line string) string {
		return "http://" + listenRaw(t, func(c net.Conn) {
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, err := io.WriteString(c, head)
			for chunk := strings.Repeat(line, 1000); err == nil; {
				_, err = io.WriteString(c, chunk)
			}
		})
	}
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirects.Close)
	for name, root := range map[string]string{
		"headers":           flood("HTTP/1.1 200 OK\r\n", "X-Header: "+strings.Repeat("a", 100)+"\r\n"),
		"one header":        flood("HTTP/1.1 200 OK\r\nX-Header: ", "aaaaaaaaaa"),
		"a status line":     flood("HTTP/1.1 200 ", "OK OK OK "),
		"interim responses": flood("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
		"redirects":         redirects.URL,
	} {
		client, err := d.New(root, modelhttp.Timeouts{Headers: 100 * short})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Complete(t.Context(), Request(), nil)
		if e := modelError(t, err); e.Class != model.Network && e.Class != model.Misconfigured || len(e.Message) > modelhttp.MaxMessage+10 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
