package web_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/toolset/web"
	"github.com/troupe-run/troupe/tool"
)

// fetchAddress reads an address under rules.
func fetchAddress(t *testing.T, cfg web.Config, address string) tool.Result {
	t.Helper()
	one, err := web.Get(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	return set.Call(t.Context(), "http_get", tool.Call{Args: fmt.Appendf(nil, `{"url":%q}`, address)})
}

// serveSite serves on loopback, and gives the rules under which it can be read.
func serveSite(t *testing.T, h http.HandlerFunc) (address string, rules web.Config) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, web.Config{Allow: []string{u.Host}, Private: []string{u.Host}}
}

func TestPageBecomesReadableText(t *testing.T) {
	address, rules := serveSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, `<html><head><title>T</title><style>x{}</style><script>alert(1)</script></head><body><h1>Head</h1><p>One <a href="/two">two</a>.</p></body></html>`)
		case "/data":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"a":1}`)
		default:
			w.Header().Set("Content-Type", "image/png")
			_, _ = fmt.Fprint(w, "PNG")
		}
	})
	if r := fetchAddress(t, rules, address+"/page"); r.Error || r.Text != "["+address+"/page text/html; charset=utf-8]\n# Head\n\nOne [two]("+address+"/two)." {
		t.Errorf("%+v", r)
	}
	if r := fetchAddress(t, rules, address+"/data"); r.Error || !strings.HasSuffix(r.Text, "\n{\"a\":1}") {
		t.Errorf("%+v", r)
	}
	if r := fetchAddress(t, rules, address+"/picture"); !r.Error || !strings.HasSuffix(r.Text, "is 3 bytes of image/png, which is not text") {
		t.Errorf("%+v", r)
	}
}

func TestOnlyHostsThatTheOperatorAllowsAreRead(t *testing.T) {
	asked := 0
	address, rules := serveSite(t, func(http.ResponseWriter, *http.Request) { asked++ })
	rules.Allow = nil
	r := fetchAddress(t, rules, address)
	if !r.Error || !strings.Contains(r.Text, "is not allowed; the operator allows hosts with `tools: {http_get: {allow: [HOST]}}`") || asked != 0 {
		t.Errorf("%+v, asked %d", r, asked)
	}
	for _, allow := range []string{"example.com", "*.0.0.1", "127.0.0.1", "127.0.0.1:1"} {
		rules.Allow = []string{allow}
		if r := fetchAddress(t, rules, address); !r.Error || asked != 0 {
			t.Errorf("%s: %+v", allow, r)
		}
	}
	for _, bad := range []string{"ftp://example.com/", "file:///etc/passwd", "https://user:pw@example.com/", "//example.com", "example.com", "https:opaque", "http://%zz"} {
		if r := fetchAddress(t, web.Config{Allow: []string{"*"}}, bad); !r.Error || !strings.Contains(r.Text, "is not an address that can be read") || strings.Contains(r.Text, "pw@") {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}

func TestALoopbackServerNeedsAnExceptionOfTheOperator(t *testing.T) {
	asked := 0
	address, rules := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = fmt.Fprint(w, "inside") })
	exception := rules.Private
	rules.Private = nil
	if r := fetchAddress(t, rules, address); !r.Error || !strings.Contains(r.Text, "is an address of this machine or a private network, which is not read") || asked != 0 {
		t.Errorf("%+v, asked %d", r, asked)
	}
	for _, other := range []string{"127.0.0.1:1", "10.0.0.0/8", "::1"} {
		rules.Private = []string{other}
		if r := fetchAddress(t, rules, address); !r.Error || asked != 0 {
			t.Errorf("%s: %+v", other, r)
		}
	}
	for _, fits := range []string{exception[0], "127.0.0.1", "127.0.0.0/8"} {
		rules.Private = []string{fits}
		if r := fetchAddress(t, rules, address); r.Error || !strings.HasSuffix(r.Text, "inside") {
			t.Errorf("%s: %+v", fits, r)
		}
	}
}

// TestANameThatLeadsInsideIsRefusedWhereItIsDialed: localhost is a name like
// any other, so its address is what counts.
func TestANameThatLeadsInsideIsRefusedWhereItIsDialed(t *testing.T) {
	asked := 0
	address, _ := serveSite(t, func(http.ResponseWriter, *http.Request) { asked++ })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	r := fetchAddress(t, web.Config{Allow: []string{"localhost:" + port}}, "http://localhost:"+port+"/")
	if !r.Error || !strings.Contains(r.Text, "private network") || asked != 0 {
		t.Errorf("%+v, asked %d", r, asked)
	}
}

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	for _, a := range []string{"127.0.0.1", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0", "[::1]", "[::]", "[fe80::1]",
		"[fd00:ec2::254]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "255.255.255.255", "198.18.0.1"} {
		r := fetchAddress(t, web.Config{Allow: []string{"*"}}, "http://"+a+"/")
		if !r.Error || !strings.Contains(r.Text, "private network") {
			t.Errorf("%s: %+v", a, r)
		}
	}
}

func TestARedirectIsFollowedOnlyWhereAModelMightHaveAsked(t *testing.T) {
	var inside, outside string
	hidden, _ := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { inside = "asked" })
	var rules web.Config
	var address string
	address, rules = serveSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			outside = "told too much"
		}
		w.Header().Set("Set-Cookie", "a=b")
		switch r.URL.Path {
		case "/in":
			http.Redirect(w, r, hidden, http.StatusFound)
		case "/meta":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/good":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			_, _ = fmt.Fprint(w, "the end")
		}
	})
	for path, want := range map[string]string{"/in": "is not allowed", "/meta": "is not allowed", "/file": "is not an address that can be read", "/loop": "it led on 5 times"} {
		if r := fetchAddress(t, rules, address+path); !r.Error || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	rules.Allow = append(rules.Allow, "*", strings.TrimPrefix(hidden, "http://"))
	for path, want := range map[string]string{"/in": "private network", "/meta": "http://169.254.169.254/latest/meta-data/ on another host"} {
		if r := fetchAddress(t, rules, address+path); !r.Error || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := fetchAddress(t, rules, address+"/good"); r.Error || !strings.HasSuffix(r.Text, "/end text/plain; charset=utf-8]\nthe end") {
		t.Errorf("%+v", r)
	}
	if inside != "" || outside != "" {
		t.Error(inside, outside)
	}
}

//behaviour:shows C5
func TestBusyServerIsRetriedAfterItsRetryAfter(t *testing.T) {
	address, rules := serveSite(t, func(w http.ResponseWriter, r *http.Request) {
		status, after, _ := strings.Cut(r.URL.Path[1:], "/")
		code, err := strconv.Atoi(status)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Retry-After", after)
		http.Error(w, "why", code)
	})
	date := url.PathEscape(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	for path, want := range map[string]bool{"/429/2": true, "/503/8": true, "/503/120": false, "/500/x": true, "/404/x": false, "/501/x": false, "/403/1": false, "/429/" + date: false} {
		r := fetchAddress(t, rules, address+path)
		if !r.Error || r.Transient != want || !strings.Contains(r.Text, "HTTP ") || !strings.Contains(r.Text, "why") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := fetchAddress(t, rules, address+"/503/120"); !strings.Contains(r.Text, "it asks to wait 2m0s") {
		t.Errorf("%+v", r)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	host := strings.TrimPrefix(gone.URL, "http://")
	if r := fetchAddress(t, web.Config{Allow: []string{host}, Private: []string{host}}, gone.URL); !r.Error || !r.Transient {
		t.Errorf("%+v", r)
	}
}

func TestFetchIsBoundedInSizeAndTime(t *testing.T) {
	hang := make(chan struct{})
	address, rules := serveSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			for range 300 {
				_, _ = z.Write([]byte(strings.Repeat("a", 1<<20)))
			}
			_ = z.Close()
		case "/deep":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, strings.Repeat("<div>", 100_000))
		case "/quotes", "/lists":
			w.Header().Set("Content-Type", "text/html")
			open := map[string]string{"/quotes": "<blockquote>", "/lists": "<ul><li>"}[r.URL.Path]
			_, _ = fmt.Fprint(w, strings.Repeat(open, 200)+strings.Repeat("<p>a", 2000))
		case "/marks": // to say where these need an escape took the square of the page
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, strings.Repeat("[", 500_000))
		case "/head":
			w.Header().Set("X", strings.Repeat("a", 200<<10))
		default:
			<-hang
		}
	})
	t.Cleanup(func() { close(hang) })
	if r := fetchAddress(t, rules, address+"/bomb"); r.Error || len(r.Text) > tool.OutputBytesMax || len(r.Whole) > 3<<20 || !strings.Contains(r.Whole, "[only the first 2097152 bytes were read]") {
		t.Errorf("%d bytes, %v", len(r.Text), r.Error)
	}
	if r := fetchAddress(t, rules, address+"/head"); !r.Error {
		t.Errorf("%+v", r)
	}
	if r := fetchAddress(t, rules, address+"/deep"); len(r.Text) > tool.OutputBytesMax {
		t.Errorf("%d bytes", len(r.Text))
	}
	if r := fetchAddress(t, rules, address+"/marks"); r.Error {
		t.Errorf("%.200s", r.Text)
	}
	for _, path := range []string{"/quotes", "/lists"} { // each level writes all lines anew
		if r := fetchAddress(t, rules, address+path); !r.Error || r.Transient || !strings.Contains(r.Text, "nested too deeply") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	rules.Timeout = 50 * time.Millisecond
	if r := fetchAddress(t, rules, address+"/hang"); !r.Error || !r.Transient || r.Text != "http_get timed out after 50ms" {
		t.Errorf("%+v", r)
	}
}

func TestEmptyRuleIsAnError(t *testing.T) {
	for _, cfg := range []web.Config{{Allow: []string{""}}, {Allow: []string{"https://a.b/"}}, {Allow: []string{"a*b.c"}}, {Allow: []string{"a:0"}}, {Allow: []string{"a:x"}},
		{Private: []string{"localhost"}}, {Private: []string{""}}} {
		if _, err := web.Get(cfg); !errors.Is(err, web.ErrRule) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
