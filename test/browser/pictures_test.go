//go:build browser

package browser

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var pagePictures = flag.String("page.pictures", filepath.Join(os.TempDir(), "troupe-page"), "TestPicturesOfTheDocs: the directory that gets the pictures")

const pictureWidth = 1100

// pictureTeam are the agents of the run in the pictures: what each may delegate to.
var pictureTeam = map[string]string{"lead": "[reader, fixer, tester, scribe]", "reader": "[]", "fixer": "[]", "tester": "[]", "scribe": "[]"}

const shippingFile = `package shop

// Shipping is what the delivery of an order costs, in cents.
func Shipping(o Order) int {
	if o.Total() > 5000 {
		return 0
	}
	return 490
}
`

// pictureReply is a reply of the model of the pictures.
type pictureReply struct {
	after   time.Duration
	text    string
	calls   []pictureCall
	in, out int // tokens
}

type pictureCall struct {
	name string
	args map[string]any
}

func delegate(agent, task string) pictureCall {
	return pictureCall{"delegate", map[string]any{"agent": agent, "task": task}}
}

// pictureReplies are the turns of each agent. The tester is at work as long as the pictures take.
var pictureReplies = map[string][]pictureReply{
	"lead": {
		{2 * time.Second, "I look at the price of the delivery first.", []pictureCall{delegate("reader", "Find where the price of a delivery is computed, and who calls it.")}, 2900, 240},
		{2 * time.Second, "An empty order must cost nothing. I let it be fixed, tested and described at the same time.", []pictureCall{
			delegate("fixer", "Make the delivery of an empty order free, in shop/shipping.go."),
			delegate("tester", "Write a table test for Shipping: empty, small and large orders."),
			delegate("scribe", "Write a line for the changelog."),
		}, 4800, 610},
	},
	"reader": {
		{1500 * time.Millisecond, "", []pictureCall{{"grep", map[string]any{"pattern": "Shipping"}}, {"glob", map[string]any{"pattern": "**/*.go"}}}, 2100, 130},
		{2 * time.Second, "", []pictureCall{{"read_file", map[string]any{"path": "shop/shipping.go"}}}, 3400, 90},
		{1500 * time.Millisecond, "Shipping in shop/shipping.go takes 490 cents for each order up to 50 dollars, an empty one, too.", nil, 4100, 320},
	},
	"fixer": {
		{1500 * time.Millisecond, "", []pictureCall{{"read_file", map[string]any{"path": "shop/shipping.go"}}}, 2200, 110},
		{2 * time.Second, "", []pictureCall{{"edit_file", map[string]any{"path": "shop/shipping.go", "old": "\tif o.Total() > 5000 {\n", "new": "\tif len(o.Items) == 0 || o.Total() > 5000 {\n"}}}, 3100, 280},
	},
	"tester": {
		{2500 * time.Millisecond, "", []pictureCall{{"read_file", map[string]any{"path": "shop/shipping.go"}}, {"glob", map[string]any{"pattern": "shop/*_test.go"}}}, 2300, 140},
		{3 * time.Minute, "The table has five orders.", nil, 3900, 900},
	},
	"scribe": {
		{2 * time.Second, "", []pictureCall{{"glob", map[string]any{"pattern": "*.md"}}}, 2000, 80},
		{2500 * time.Millisecond, "The delivery of an empty order is free.", nil, 2600, 160},
	},
}

// servePictureModel is a model behind HTTP whose calls cost money. It finds the agent by the first line of its prompt, and the
// turn by the replies in the request.
func servePictureModel(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	var replies []pictureReply
	for name, list := range pictureReplies {
		if strings.Contains(string(request.Messages[0].Content), "You are the "+name+".") {
			replies = list
		}
	}
	turn := 0
	for _, m := range request.Messages {
		if m.Role == "assistant" {
			turn++
		}
	}
	reply := pictureReply{text: "Done.", in: 1000, out: 20}
	if turn < len(replies) {
		reply = replies[turn]
	}
	select {
	case <-time.After(reply.after):
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, chunk := range reply.chunks(request.Model, turn) {
		raw, err := json.Marshal(chunk)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// chunks are the events of a reply in Chat Completions.
func (p pictureReply) chunks(model string, turn int) []map[string]any {
	delta, finish := map[string]any{"role": "assistant", "content": p.text}, "stop"
	var calls []any
	for i, c := range p.calls {
		raw, err := json.Marshal(c.args)
		if err != nil {
			panic(err)
		}
		calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("call_%d_%d", turn, i), "type": "function", "function": map[string]any{"name": c.name, "arguments": string(raw)}})
	}
	if calls != nil {
		delta["tool_calls"], finish = calls, "tool_calls"
	}
	chunk := func(choices []any, usage any) map[string]any {
		return map[string]any{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, "usage": usage}
	}
	return []map[string]any{
		chunk([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}, nil),
		chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil),
		chunk([]any{}, map[string]any{"prompt_tokens": p.in, "completion_tokens": p.out, "total_tokens": p.in + p.out}),
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The pictures of docs/ui.md show a run of a team at work: one agent asks, one works, one is done, and money is spent.
func TestPicturesOfTheDocs(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(servePictureModel))
	t.Cleanup(model.Close)
	settings := t.TempDir()
	prices := filepath.Join(settings, "prices.json")
	writeFile(t, prices, `{"openai": {"models": {"writer-1": {"cost": {"input": 2, "output": 8}, "limit": {"context": 200000, "output": 8192}}}}}`)
	for name, delegates := range pictureTeam {
		writeFile(t, filepath.Join(settings, "troupe", "agents", name+".md"), fmt.Sprintf("---\nname: %s\ndescription: The %s of the team.\nx-troupe: {delegates: %s}\n---\nYou are the %s.\n", name, name, delegates, name))
	}
	s := newStage(t, "XDG_CONFIG_HOME="+settings, "OPENAI_BASE_URL="+model.URL+"/v1", "OPENAI_API_KEY=none", "TROUPE_PRICING_FILE="+prices)
	writeFile(t, filepath.Join(s.work, "shop", "shipping.go"), shippingFile)
	writeFile(t, filepath.Join(s.work, "CHANGELOG.md"), "# Changes\n")
	s.signIn()
	run := s.start("openai/writer-1", "Make the delivery of an empty order free", "--agent", "lead", "--max-budget-usd", "2", "--max-tokens", "400000")
	s.do("the window", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}), chromedp.EmulateViewport(pictureWidth, 560))
	s.do("the team works", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/tree"), s.sees("tester"), s.sees("scribe"))
	s.do("the fixer asks, and the scribe is done", chromedp.Evaluate(`location.hash = "#/inbox"`, nil), s.sees("len(o.Items)"), chromedp.Sleep(4*time.Second))
	s.takePicture("inbox", "#/inbox", "Always in this run", 452)
	s.takePicture("tree", "#/run/"+run+"/tree", "scribe", 352)
	s.takePicture("timeline", "#/run/"+run+"/timeline", "waits for a person", 460)
	s.takePicture("budget", "#/run/"+run+"/budget", "By model", 680)
	s.cli("cancel", run, "--now")
}

// takePicture takes a picture of a view as tall as it needs.
func (s *stage) takePicture(name, hash, text string, height int64) {
	s.t.Helper()
	var shot []byte
	s.do("picture of "+name, chromedp.EmulateViewport(pictureWidth, height), chromedp.Evaluate("location.hash="+quote(hash), nil), s.sees(text), chromedp.Evaluate(`document.activeElement?.blur()`, nil), chromedp.Sleep(time.Second), chromedp.CaptureScreenshot(&shot))
	if err := os.MkdirAll(*pagePictures, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pagePictures, "ui-"+name+".png"), shot, 0o644); err != nil {
		s.t.Fatal(err)
	}
}
