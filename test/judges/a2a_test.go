package judges_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/troupe-run/troupe/internal/a2aclient"
)

// sdkAgent is an agent in the official SDK of A2A. The task says what it does.
type sdkAgent struct {
	executed, canceled atomic.Int32
}

func (s *sdkAgent) Execute(ctx context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	s.executed.Add(1)
	task := e.Message.Parts[0].Text()
	say := func(text string) *a2a.Message {
		return a2a.NewMessageForTask(a2a.MessageRoleAgent, e, a2a.NewTextPart(text))
	}
	return func(yield func(a2a.Event, error) bool) {
		if task == "message" {
			yield(say("It is safe."), nil)
			return
		}
		if !yield(a2a.NewSubmittedTask(e, e.Message), nil) || !yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateWorking, say("Looking.")), nil) {
			return
		}
		first := a2a.NewArtifactEvent(e, a2a.NewTextPart("A is"))
		if !yield(first, nil) {
			return
		}
		end := func(state a2a.TaskState, words string) {
			var m *a2a.Message
			if words != "" {
				m = say(words)
			}
			yield(a2a.NewStatusUpdateEvent(e, state, m), nil)
		}
		switch task {
		case "fails":
			end(a2a.TaskStateFailed, "no disk")
		case "rejects":
			end(a2a.TaskStateRejected, "not mine")
		case "asks":
			end(a2a.TaskStateInputRequired, "Which one?")
		case "authorization":
			end(a2a.TaskStateAuthRequired, "Log in.")
		case "hangs":
			<-ctx.Done()
		default:
			if yield(a2a.NewArtifactUpdateEvent(e, first.Artifact.ID, a2a.NewTextPart(" safe.")), nil) && yield(a2a.NewArtifactEvent(e, a2a.NewDataPart(map[string]any{"grade": 1})), nil) {
				end(a2a.TaskStateCompleted, "")
			}
		}
	}
}

func (s *sdkAgent) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	s.canceled.Add(1)
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCanceled, nil), nil)
	}
}

// serveSDKAgent serves an agent by one version of the protocol. Requests need the token "secret".
func serveSDKAgent(t *testing.T, version string, streams bool) (*sdkAgent, *a2aclient.Caller) {
	t.Helper()
	s, mux := &sdkAgent{}, http.NewServeMux()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	handler := a2asrv.NewHandler(s)
	way := a2a.NewAgentInterface(server.URL+"/rpc", a2a.TransportProtocolJSONRPC)
	card := &a2a.AgentCard{Name: "reviewer", Version: "1", SupportedInterfaces: []*a2a.AgentInterface{way}, Capabilities: a2a.AgentCapabilities{Streaming: streams}}
	if version == "0.3" {
		way.ProtocolVersion = a2av0.Version
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(card)))
		mux.Handle("/rpc", a2av0.NewJSONRPCHandler(handler))
	} else {
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
		mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(handler))
	}
	c := a2aclient.New(a2aclient.Config{Agents: []a2aclient.Agent{{Name: "reviewer", URL: server.URL, TokenEnv: "TOKEN"}, {Name: "stranger", URL: server.URL}},
		Env: func(string) string { return "secret" }})
	t.Cleanup(c.Close)
	return s, c
}

// TestTheOfficialA2ASDKAnswers: agents of the official SDK, of both versions of the protocol, with and without streams, are called,
// say how they end, and are canceled.
func TestTheOfficialA2ASDKAnswers(t *testing.T) {
	for _, version := range []string{"1.0", "0.3"} {
		for _, streams := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streams=%v", version, streams), func(t *testing.T) {
				t.Parallel()
				s, c := serveSDKAgent(t, version, streams)
				for task, want := range map[string][2]string{
					"works":         {"A is safe.\n\n{\"grade\":1}", ""},
					"message":       {"It is safe.", ""},
					"fails":         {"A is", `the task failed: "no disk"`},
					"rejects":       {"A is", `it rejected the task: "not mine"`},
					"asks":          {"A is", `the agent asks: "Which one?"`},
					"authorization": {"A is", `wants an authorization`},
				} {
					text, err := c.Call(t.Context(), a2aclient.Request{Name: "a2a/reviewer", Task: task, Key: task})
					if (err != nil) != (want[1] != "") || err != nil && !strings.Contains(err.Error(), want[1]) || !strings.HasSuffix(text, want[0]) {
						t.Errorf("%s: %q %v", task, text, err)
					}
				}
				if n := s.executed.Load(); n != 6 {
					t.Errorf("the agent worked %d times", n)
				}
				var asked *a2aclient.Question
				if _, err := c.Call(t.Context(), a2aclient.Request{Name: "a2a/reviewer", Task: "asks", Key: "asks again"}); !errors.As(err, &asked) {
					t.Fatalf("it asks nothing: %v", err)
				}
				text, err := c.Call(t.Context(), a2aclient.Request{Name: "a2a/reviewer", Task: "works", Key: "answers", Answers: asked.ID})
				if err != nil || !strings.HasSuffix(text, "A is safe.\n\n{\"grade\":1}") {
					t.Errorf("after its question is answered: %q %v", text, err)
				}
				canceled := s.canceled.Load()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				text, err = c.Call(ctx, a2aclient.Request{Name: "a2a/reviewer", Task: "hangs", Key: "hangs"})
				if err == nil || !strings.Contains(err.Error(), "its task was canceled") || !strings.HasSuffix(text, "A is") || s.canceled.Load() != canceled+1 {
					t.Errorf("canceled %d times: %q %v", s.canceled.Load()-canceled, text, err)
				}
				if _, err := c.Call(t.Context(), a2aclient.Request{Name: "a2a/stranger", Task: "works"}); err == nil || !strings.Contains(err.Error(), "HTTP 401") {
					t.Errorf("without the token: %v", errors.Unwrap(err))
				}
			})
		}
	}
}
