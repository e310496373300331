package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/answertext"
)

// ChatCompletion is the answer of /v1/chat/completions, and each chunk of a stream: then its choices have
// a delta.
type ChatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"` // chat.completion, or chat.completion.chunk
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   *ChatUsage   `json:"usage,omitempty"`
	Troupe  *ChatRunInfo `json:"troupe,omitempty"`
}

// ChatChoice is the one choice of an answer.
type ChatChoice struct {
	Index        int        `json:"index"`
	Message      *ChatReply `json:"message,omitempty"`
	Delta        *ChatReply `json:"delta,omitempty"`
	FinishReason *string    `json:"finish_reason"`
}

// ChatReply is the text of an answer, or a piece of it.
type ChatReply struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

// ChatUsage are the tokens of the whole tree of agents.
type ChatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// ChatRunInfo says which run has answered.
type ChatRunInfo struct {
	RunID     string  `json:"run_id"`
	Reason    string  `json:"stop_reason"`
	Partial   bool    `json:"partial"`
	CostUSD   float64 `json:"total_cost_usd"`
	CostKnown bool    `json:"cost_known"`
}

// chatReply answers a chat request, at once or as a stream.
type chatReply struct {
	w       http.ResponseWriter
	out     *sseWriter // nil: no stream
	head    ChatCompletion
	usage   bool // a stream ends with the usage
	stopped chan struct{}
	// allHeard is closed by the event that ends the run: the text of the turns came before it.
	allHeard  chan struct{}
	hearsLast sync.Once

	mu     sync.Mutex
	open   bool   // the header was sent
	early  string // text that came before it
	text   answertext.Stream
	closed bool
}

func newChatReply(w http.ResponseWriter, q ChatRequest, run string) *chatReply {
	c := &chatReply{w: w, stopped: make(chan struct{}), allHeard: make(chan struct{}),
		head: ChatCompletion{ID: "chatcmpl-" + run, Object: "chat.completion", Created: time.Now().Unix(), Model: q.Model, Choices: []ChatChoice{}}}
	c.text.Send = c.sendText
	if q.Stream {
		c.out = newSSEWriter(w)
		c.head.Object += ".chunk"
		c.usage = q.StreamOptions != nil && q.StreamOptions.IncludeUsage
	}
	return c
}

// begin sends the header of a stream. From now on the server may be silent for as long as the run takes.
func (c *chatReply) begin() {
	if c.out == nil {
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{}) // see limitRequest
		return
	}
	c.mu.Lock()
	c.open = true
	c.sendDelta(ChatReply{Role: "assistant", Content: c.early}, nil)
	c.mu.Unlock()
	go func() {
		tick := time.NewTicker(lookInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = c.out.keepAlive() // if the client is gone, the request ends
			case <-c.stopped:
				return
			}
		}
	}()
}

// hear handles an event of the run: a stream sends the text of the root agent as it comes.
func (c *chatReply) hear(e client.Event) {
	if c.out == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.text.Handle(e)
	}
	if e.Kind == event.KindRunFinished {
		c.hearsLast.Do(func() { close(c.allHeard) })
	}
}

// lateEventsMax is how long a stream waits for the events of a run that has ended. They may be lost.
const lateEventsMax = time.Second

// awaitEvents waits until the events of a run that has ended were heard: its state may be known before they arrive, and
// the result has the text of the last turn alone.
func (c *chatReply) awaitEvents(ctx context.Context) {
	if c.out == nil {
		return
	}
	select {
	case <-c.allHeard:
	case <-time.After(lateEventsMax):
	case <-ctx.Done():
	}
}

// sendText sends a piece of text. The caller holds mu.
func (c *chatReply) sendText(text string) {
	if !c.open {
		c.early += text
		return
	}
	c.sendDelta(ChatReply{Content: text}, nil)
}

func (c *chatReply) sendDelta(d ChatReply, finish *string) {
	doc := c.head
	doc.Choices = []ChatChoice{{Delta: &d, FinishReason: finish}}
	c.sendDocument(doc)
}

func (c *chatReply) sendDocument(doc any) {
	if raw, err := json.Marshal(doc); err == nil {
		_ = c.out.writeEvent("", "", raw) // if the client is gone, the request ends
	}
}

// end sends the answer, or the error of waiting for it.
func (c *chatReply) end(info client.RunInfo, err error) {
	close(c.stopped)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if err == nil && info.Result == nil {
		err = errNoResult
	}
	if err == nil && info.Result.Text == "" && event.Subtype(info.Result.Reason) == "error_provider" {
		err = &client.Error{Code: "502", Text: "the run ended without an answer: " + info.Result.Detail}
	}
	if c.out == nil {
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(slowReaderMax)) // see limitRequest
		if err != nil {
			refuseChat(c.w, err)
			return
		}
		c.head.Choices = []ChatChoice{{Message: &ChatReply{Role: "assistant", Content: answerText(info)}, FinishReason: wordOf(finishReason(*info.Result))}}
		c.head.Usage, c.head.Troupe = usageOf(info), runOf(info)
		writeJSON(c.w, http.StatusOK, c.head)
		return
	}
	defer c.out.close()
	if err != nil {
		p, _, _ := newChatProblem(err)
		c.sendDocument(p)
		return
	}
	c.text.Complete(answerText(info))
	c.head.Troupe = runOf(info)
	c.sendDelta(ChatReply{}, wordOf(finishReason(*info.Result)))
	if c.usage {
		c.head.Usage = usageOf(info)
		c.sendDocument(c.head)
	}
	_ = c.out.writeEvent("", "", []byte("[DONE]"))
}

var errNoResult = &client.Error{Code: client.CodeInternal, Text: "the run has no result"}

// answerText is the answer of a run, or what it waits for.
func answerText(i client.RunInfo) string {
	text := i.Result.Text
	for _, a := range i.Result.Agents {
		if a.Query == nil || i.State == client.RunFinished {
			continue
		}
		text = strings.TrimLeft(text+"\n\n", "\n") + "The run waits for a person: " + a.Query.Question + "\n\ntroupe answer " + i.RunID + " " + a.Query.Query + " approve|deny|skip|TEXT --agent " + string(a.ID)
	}
	return text
}

func wordOf(text string) *string { return &text }

func usageOf(i client.RunInfo) *ChatUsage {
	u := i.Result.Usage
	return &ChatUsage{Prompt: u.Prompt(), Completion: u.Output, Total: u.Prompt() + u.Output}
}

func runOf(i client.RunInfo) *ChatRunInfo {
	r := i.Result
	return &ChatRunInfo{RunID: i.RunID, Reason: string(r.Reason), Partial: r.Partial, CostUSD: r.CostUSD, CostKnown: r.CostKnown}
}
