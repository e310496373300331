package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/tool"
)

// serveTools answers every page of tools with these.
func serveTools(t *testing.T, l ...*sdk.Tool) Server {
	t.Helper()
	s := buildServer(testTools{"x": answerText("")})
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "tools/list" {
				return &sdk.ListToolsResult{Tools: l}, nil
			}
			return next(ctx, method, r)
		}
	})
	return loopbackServer(t, s)
}

func describedTool(name string, schema string) *sdk.Tool {
	return &sdk.Tool{Name: name, Description: "d", InputSchema: json.RawMessage(schema)}
}

func TestToolsThatCannotBeUsedAreLeftOutAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		tools []*sdk.Tool
		kept  string
		why   string
	}{
		"two that come to one name":     {[]*sdk.Tool{describedTool("a.b", anything), describedTool("a_b", anything), describedTool("c", anything)}, "mcp__stage__c", `"a.b": another tool has the name mcp__stage__a_b too`},
		"the same twice":                {[]*sdk.Tool{describedTool("a", anything), describedTool("a", anything)}, "", `"a": another tool has the name`},
		"a schema of a list":            {[]*sdk.Tool{describedTool("a", `{"type":"array"}`)}, "", `its type is "array", not object`},
		"a schema from elsewhere":       {[]*sdk.Tool{describedTool("a", `{"type":"object","properties":{"b":{"$ref":"http://127.0.0.1:1/x"}}}`)}, "", "its schema cannot be used"},
		"a schema that goes in circles": {[]*sdk.Tool{describedTool("a", `{"type":"object","allOf":[{"$ref":"#"}]}`)}, "", "its schema cannot be used"},
		"a pattern that is none":        {[]*sdk.Tool{describedTool("a", `{"type":"object","properties":{"b":{"type":"string","pattern":"("}}}`)}, "", "its schema cannot be used"},
		"a huge schema":                 {[]*sdk.Tool{describedTool("a", `{"type":"object","description":"`+strings.Repeat("x", SchemaBytesMax)+`"}`)}, "", "its schema has 16"},
		"no name":                       {[]*sdk.Tool{describedTool(" ", anything)}, "", "a tool without a name"},
	} {
		l := listOffers(t, openHub(t), serveTools(t, c.tools...))
		if got := toolNames(offeredTools(l)); got != c.kept || !slices.ContainsFunc(l.Refused, func(r string) bool { return strings.Contains(r, c.why) }) {
			t.Errorf("%s: %q, %q", name, got, l.Refused)
		}
	}
}

func TestAServerMayNotHaveEndlesslyManyTools(t *testing.T) {
	var many []*sdk.Tool
	for i := range 2 * ToolsMax {
		many = append(many, describedTool(fmt.Sprintf("t%04d", i), anything))
	}
	if l := listOffers(t, openHub(t), serveTools(t, many...)); len(l.Offers) != ToolsMax || len(l.Refused) != ToolsMax {
		t.Errorf("%d and %d", len(l.Offers), len(l.Refused))
	}
	s := buildServer(testTools{"x": answerText("")})
	pages := 0
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "tools/list" {
				pages++
				return &sdk.ListToolsResult{NextCursor: fmt.Sprint(pages)}, nil
			}
			return next(ctx, method, r)
		}
	})
	if listOffers(t, openHub(t), loopbackServer(t, s)); pages > PagesMax {
		t.Errorf("%d pages", pages)
	}
}

func TestInvisibleCharactersAreRemovedForModels(t *testing.T) {
	hidden := "reads\u202e\u200b\ufe0f\U000e0141\u3164\u2028 files\x1b[31m\U000e0041\U000e0042"
	def := serveTools(t, &sdk.Tool{Name: "a\u200bb", Description: hidden, InputSchema: json.RawMessage(`{"type":"object","description":"x\u202ey"}`)})
	o := listOffers(t, openHub(t), def).Offers[0]
	if o.Spec.Name != "mcp__stage__a_b" || o.Spec.Description != "reads files[31m" || strings.Contains(o.Spec.Schema, "\u202e") {
		t.Errorf("%+q", o.Spec.Name+" "+o.Spec.Description)
	}
	def2 := serveTools(t, &sdk.Tool{Name: "a\u200bb", Description: "reads files[31m", InputSchema: json.RawMessage(`{"type":"object","description":"x\u202ey"}`)})
	if other := listOffers(t, openHub(t), def2).Offers[0]; other.Hash == o.Hash || other.Spec != o.Spec {
		t.Error("what is hidden must be pinned too")
	}
	long := serveTools(t, &sdk.Tool{Name: "a", Description: strings.Repeat("é", DescriptionBytesMax), InputSchema: json.RawMessage(anything)})
	if got := listOffers(t, openHub(t), long).Offers[0].Spec.Description; len(got) > tool.DescriptionBytes || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestNonTextResultIsNamed(t *testing.T) {
	give := func(r *sdk.CallToolResult) func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return r, nil }
	}
	size := int64(3)
	s := toolSet(t, openHub(t), loopbackServer(t, buildServer(testTools{
		"media": give(&sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "see"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("1234")}, &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("12")},
			&sdk.ResourceLink{URI: "file:///x", Name: "x", Size: &size}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "a:b", Text: "inside"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "a:c", MIMEType: "application/zip", Blob: []byte("PK")}}}}),
		"shape": give(&sdk.CallToolResult{StructuredContent: map[string]any{"b": 1, "a": "<"}}),
		"fails": give(&sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such row"}}}),
		"mute":  give(&sdk.CallToolResult{IsError: true}),
	})), "")
	for name, want := range map[string]string{
		"media": "see\n[image, image/png, 4 bytes: not shown]\n[audio, audio/wav, 2 bytes: not shown]\n[resource file:///x: x ]\ninside\n[resource a:c, application/zip, 2 bytes: not shown]",
		"shape": `{"a":"<","b":1}`, "fails": "no such row", "mute": "the tool failed and does not say why",
	} {
		if r := callTool(t, s, "mcp__stage__"+name, `{}`); r.Text != want || r.Error != (name == "fails" || name == "mute") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestResourcesAreReadByAToolOfOurOwn(t *testing.T) {
	server := buildServer(testTools{"read_resource": answerText("mine")})
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}, {URI: "x:2", MIMEType: "image/png", Blob: []byte("123")}}}, nil
	}
	server.AddResource(&sdk.Resource{URI: "x:1", Name: "one", MIMEType: "text/plain"}, read)
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "x:{n}", Name: "any"}, read)
	def := loopbackServer(t, server)
	h := openHub(t)
	l := listOffers(t, h, def)
	if toolNames(offeredTools(l)) != "mcp__stage__read_resource" || l.Offers[0].Raw != "" || len(l.Refused) != 1 {
		t.Fatalf("a server must not stand in for it: %+v", l)
	}
	s := toolSet(t, h, def, "")
	for args, want := range map[string]string{
		`{}`:            "x:1  one  text/plain\nx:{n}  any",
		`{"uri":"x:1"}`: "text of x:1\n[resource x:2, image/png, 3 bytes: not shown]",
	} {
		if r := callTool(t, s, "mcp__stage__read_resource", args); r.Error || r.Text != want {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := callTool(t, s, "mcp__stage__read_resource", `{"uri":"y:1"}`); !r.Error || !strings.Contains(r.Text, "the server stage refuses the call: ") {
		t.Errorf("%+v", r)
	}
}

func TestProgressIsReported(t *testing.T) {
	heard := make(chan struct{})
	def := loopbackServer(t, buildServer(testTools{"slow": func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step\x1b"}); err != nil {
				return nil, err
			}
		}
		select { // what comes after the result is nobody's
		case <-heard:
		case <-ctx.Done():
		}
		return &sdk.CallToolResult{}, nil
	}}))
	var told []tool.Progress
	s := toolSet(t, openHub(t), def, "")
	r := s.Call(testContext(t), "mcp__stage__slow", tool.Call{Progress: func(p tool.Progress) {
		if told = append(told, p); p.Done == 3 {
			close(heard)
		}
	}})
	if r.Error || told[0] != (tool.Progress{Done: 1, Total: 3, Message: "step"}) || told[len(told)-1] != (tool.Progress{Done: 3, Total: 3, Message: "step"}) {
		t.Errorf("%+v %+v", r, told)
	}
}

func TestHeadersGoToTheHostOfTheServerAloneAndNoRedirectLeadsAway(t *testing.T) {
	var stolen callCounter
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusFound} {
		h := httptest.NewServer(http.RedirectHandler(thief.URL, status))
		_, err := openHub(t).List(testContext(t), Server{Name: "a", Own: true, URL: h.URL, Headers: map[string]string{"X-Key": "k"}}, "")
		if err == nil || !strings.Contains(err.Error(), "the address is not allowed") {
			t.Error(err)
		}
		closeServerNow(t, h)
	}
	if stolen.Load() != 0 {
		t.Error("the redirect was followed")
	}
	var seen sync.Map
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return buildServer(testTools{"x": answerText("")}) }, nil)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("X-Key"), true)
		inner.ServeHTTP(w, r)
	}))
	defer closeServerNow(t, h)
	k := openHub(t, func(c *Config) { c.Getenv = func(string) string { return "of the variable" } })
	listOffers(t, k, Server{Name: "a", URL: h.URL, Headers: map[string]string{"X-Key": "${K}"}})
	k.Close()
	seen.Range(func(key, _ any) bool {
		if key != "of the variable" {
			t.Errorf("%q", key)
		}
		return true
	})
}

func TestServerThatNeedsACredentialIsNamedWithTheRemedy(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if _, err := openHub(t).List(testContext(t), Server{Name: "a", URL: h.URL}, ""); err == nil || !strings.Contains(err.Error(), "add the credential that it requires to its headers") {
			t.Error(err)
		}
		closeServerNow(t, h)
	}
}

func TestANameOfADirectorysFileDoesNotLeadToAPrivateAddress(t *testing.T) {
	for address, want := range map[string]bool{"8.8.8.8:443": true, "[2001:4860:4860::8888]:443": true, "127.0.0.1:80": false, "10.1.2.3:80": false, "192.168.0.1:80": false,
		"169.254.169.254:80": false, "100.64.0.1:80": false, "[::1]:80": false, "[fe80::1%eth0]:80": false, "[fd00::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		"[64:ff9b::7f00:1]:80": false, "0.0.0.0:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false, "x:80": false,
		"192.0.2.1:80": false, "[::127.0.0.1]:80": false, "[fec0::1]:80": false, "[2001::1]:80": false} {
		if got := publicOnly("tcp", address, nil) == nil; got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "localhost.example.com": false, "intranet": false} {
		if isLiteralHost(host) != want {
			t.Error(host)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	// A name of the loopback address that is not "localhost": the look-up is the system's.
	for _, url := range []string{fmt.Sprintf("http://localhost.:%d/", port), "ftp://x/", "http://u:p@x/", "http:///"} {
		if _, err := openHub(t).List(testContext(t), Server{Name: "a", Source: FileName, URL: url}, ""); err == nil || !strings.Contains(err.Error(), "did not start") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestAServerAtAnAddressThatGoesAwayIsReachedAgain(t *testing.T) {
	server := buildServer(testTools{"echo": answerText("here")})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	at := h.Listener.Addr().String()
	def := Server{Name: "stage", URL: "http://" + at}
	s := toolSet(t, openHub(t), def, "")
	closeServerNow(t, h)
	if r := callTool(t, s, "mcp__stage__echo", `{}`); !r.Error || !r.Transient {
		t.Errorf("%+v", r)
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return buildServer(testTools{"echo": answerText("here")}) }, nil))
	again.Listener = l
	again.Start()
	defer closeServerNow(t, again)
	waitUntil(t, "it answers again", func() bool { return callTool(t, s, "mcp__stage__echo", `{}`).Text == "here" })
}

// What a header's variable holds is masked also where a server refuses a call, and
// in what it says while it works.
func TestVariablesAreMaskedInRefusalsAndProgress(t *testing.T) {
	const secret = "ghx-0123456789abcdefXYZ"
	s := buildServer(testTools{"bad": answerText("")})
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			call, ok := r.(*sdk.CallToolRequest)
			if !ok {
				return next(ctx, method, r)
			}
			_ = call.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: call.Params.GetProgressToken(), Message: "using " + secret, Progress: 1})
			return nil, fmt.Errorf("refused for %s", secret)
		}
	})
	def := loopbackServer(t, s)
	def.Headers = map[string]string{"X-Tracker": "Bearer ${TRACKER}"}
	h := openHub(t, func(c *Config) {
		c.Getenv = func(name string) string { return map[string]string{"TRACKER": secret}[name] }
	})
	var mu sync.Mutex
	heard := ""
	r := toolSet(t, h, def, t.TempDir()).Call(testContext(t), "mcp__stage__bad", tool.Call{Args: []byte("{}"), Progress: func(p tool.Progress) {
		mu.Lock()
		defer mu.Unlock()
		heard += p.Message
	}})
	mu.Lock()
	defer mu.Unlock()
	if !r.Error || !strings.Contains(r.Text, "refused for") || strings.Contains(r.Text+heard, secret) {
		t.Errorf("%q %q", r.Text, heard)
	}
}
