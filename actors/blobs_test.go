package actors_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/test/blobs"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// turnModel is a model that answers turn by turn, seeing what it was sent.
type turnModel []func(last string) model.Message

func (m turnModel) Complete(_ context.Context, req model.Request, _ func(model.Delta)) (model.Reply, error) {
	turn, last := 0, ""
	for _, said := range req.Messages {
		if said.Role == model.Assistant {
			turn++
		}
		for _, r := range said.Results {
			last = r.Text
		}
	}
	return model.Reply{Message: m[turn](last), UsageKnown: true, Usage: model.Usage{Input: 10, Output: 10}}, nil
}

func callMessage(name, args string) model.Message {
	return model.Message{Role: model.Assistant, Calls: []model.ToolCall{{Name: name, Args: args}}}
}

func textMessage(s string) model.Message { return model.Message{Role: model.Assistant, Text: s} }

const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// longResult is a result that is clipped: it has a secret in the middle.
func longResult() string {
	side := strings.Repeat("one line of many\n", tool.OutputBytesMax/16)
	return side + "the token is " + secret + "\nthe needle\n" + side
}

// playBlobs plays one run with a tool of a long result and what reads it back.
func playBlobs(t *testing.T, post mailbox.Post, blobs mailbox.Blobs, client turnModel) (event.Result, []string) {
	t.Helper()
	dump := echoTool{name: "dump", class: model.Read, call: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: longResult()}, nil
	}}
	read, err := readresult.Reader(blobs)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(dump, read)
	if err != nil {
		t.Fatal(err)
	}
	s := stageOf(t, actors.Config{Name: "test", Post: post, Lease: 1, Blobs: blobs,
		Model: func(string) (model.Client, string, error) { return client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil }})
	o := openedRun("r1", dump)
	o.Tools = set.Specs()
	o.Limits.Tokens = 5_000_000
	if err := s.node.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	r := s.awaitResult()
	var warned []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if d, ok := e.Data.(event.Warning); ok {
			warned = append(warned, d.What)
		}
	}
	return r, warned
}

var refIn = regexp.MustCompile(`ref ([0-9a-f]{64})\]$`)

// A result that is clipped is kept whole before the log names it, without its
// secrets, and the agent reads back what it was not shown.
//
//behaviour:shows C7
func TestClippedResultIsStoredWhole(t *testing.T) {
	post, blobs := memory.New(memory.Config{}), blobs.New()
	r, warned := playBlobs(t, post, blobs, turnModel{
		func(string) model.Message { return callMessage("dump", `{}`) },
		func(last string) model.Message {
			ref := refIn.FindStringSubmatch(last)
			if ref == nil || strings.Contains(last, "the needle") || !strings.Contains(last, "[clipped: ") {
				return textMessage("the result is: " + last)
			}
			return callMessage(readresult.Name, fmt.Sprintf(`{"ref":%q,"offset":%d,"limit":200}`, ref[1], len(longResult())/2-100))
		},
		func(last string) model.Message { return textMessage(last) },
	})
	if !strings.Contains(r.Text, "the needle") || !strings.Contains(r.Text, "the token is [masked]") {
		t.Fatalf("result: %.2000s", r.Text)
	}
	if len(warned) > 0 {
		t.Errorf("warned: %q", warned)
	}
	var found agent.Returned
	err := post.Read(context.Background(), "r1.root", 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if err == nil && e.Items[0].Kind == "returned" && found.Ref == "" {
			err = mailbox.Unmarshal(e.Items[0].Body, &found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	whole, size, err := blobs.Get(context.Background(), "r1", found.Ref, 0, mailbox.BlobBytesMax)
	if err != nil || size != found.Size || size < int64(len(longResult())-len(secret)) {
		t.Fatalf("%d of %d bytes: %v", size, found.Size, err)
	}
	if strings.Contains(string(whole), secret) || !strings.Contains(string(whole), "[masked]") {
		t.Error("the blob has the secret")
	}
}

// stubbornBlobs is a store that takes nothing.
type stubbornBlobs struct {
	mailbox.Blobs
	err error
}

func (s stubbornBlobs) Put(context.Context, string, []byte) (string, error) { return "", s.err }

// A store that fails costs the middle of the result and nothing else: the text
// says so, and so does a warning.
//
//behaviour:shows C7
func TestResultThatCouldNotBeStoredSaysSo(t *testing.T) {
	for err, want := range map[error]string{
		mailbox.ErrFull:                "[not kept whole: the store is full]",
		mailbox.ErrBlobRoom:            "[not kept whole: this run keeps too much already]",
		errors.New("no leader at all"): "[not kept whole: the store did not take it]",
	} {
		post := memory.New(memory.Config{})
		r, warned := playBlobs(t, post, stubbornBlobs{blobs.New(), err}, turnModel{
			func(string) model.Message { return callMessage("dump", `{}`) },
			func(last string) model.Message { return textMessage(last[:20] + last[len(last)-80:]) },
		})
		if r.Reason != spec.Completed || !strings.Contains(r.Text, want) || !strings.Contains(r.Text, "one line of many") {
			t.Errorf("%v: %s %q", err, r.Reason, r.Text)
		}
		if len(warned) != 1 || warned[0] != "a whole result of dump was not kept" {
			t.Errorf("%v: warned %q", err, warned)
		}
	}
}
