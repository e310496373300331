package judges_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	sdkclient "github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/node"
)

// withToken adds the token of a node to requests.
type withToken struct{ token string }

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connectSDK starts a node and connects the client of the official SDK with one of its agents, by its card.
func connectSDK(t *testing.T, agent, script string) *sdkclient.Client {
	t.Helper()
	const token = "a-token-of-the-judges"
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), node.Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), DontListen: true, Lazy: true, Model: "script/" + file, Env: func(string) string { return "" },
		HTTP: &node.HTTPConfig{Address: "127.0.0.1:0", Token: token}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	with := &http.Client{Transport: withToken{token}}
	card, err := agentcard.NewResolver(with).Resolve(t.Context(), n.HTTPURL()+"/a2a/"+agent)
	if err != nil {
		t.Fatal(err)
	}
	if card.Name != agent || !card.Capabilities.Streaming || len(card.SecuritySchemes) != 1 || len(card.Skills) != 1 {
		t.Errorf("the card is %+v", card)
	}
	c, err := sdkclient.NewFromCard(t.Context(), card, sdkclient.WithJSONRPCTransport(with))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTheOfficialA2ASDKCalls: the client of the official SDK sends, streams, gets and cancels tasks of a node, and knows its errors.
func TestTheOfficialA2ASDKCalls(t *testing.T) {
	t.Parallel()
	c := connectSDK(t, "assistant", "agents:\n  assistant: [{text: \"It is safe, {{user}}.\"}]\n")
	ask := &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("A"))}
	got, err := c.SendMessage(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	task, ok := got.(*a2a.Task)
	if !ok || task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 || task.Artifacts[0].Parts[0].Text() != "It is safe, A." {
		t.Errorf("%+v", got)
	}
	again, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID})
	if err != nil || again.Status.State != a2a.TaskStateCompleted || again.ContextID != task.ContextID {
		t.Errorf("%+v %v", again, err)
	}
	var text strings.Builder
	var last a2a.TaskState
	for e, err := range c.SendStreamingMessage(t.Context(), ask) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *a2a.Task:
			if e.ID == task.ID || e.Status.State != a2a.TaskStateSubmitted {
				t.Errorf("%+v", e)
			}
		case *a2a.TaskArtifactUpdateEvent:
			text.WriteString(e.Artifact.Parts[0].Text())
		case *a2a.TaskStatusUpdateEvent:
			last = e.Status.State
		}
	}
	if text.String() != "It is safe, A." || last != a2a.TaskStateCompleted {
		t.Errorf("%q %s", text.String(), last)
	}
	_, err = c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: "01jzzzzzzzzzzzzzzzzzzzzzzz"})
	_, err2 := c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: task.ID})
	_, err3 := c.ListTasks(t.Context(), &a2a.ListTasksRequest{})
	if !errors.Is(err, a2a.ErrTaskNotFound) || !errors.Is(err2, a2a.ErrTaskNotCancelable) || !errors.Is(err3, a2a.ErrUnsupportedOperation) {
		t.Errorf("%v, %v, %v", err, err2, err3)
	}
}

// TestTheOfficialA2ASDKCancels: a task at work is subscribed to, and canceled, which ends the stream.
func TestTheOfficialA2ASDKCancels(t *testing.T) {
	t.Parallel()
	c := connectSDK(t, "assistant", "agents:\n  assistant: [{text: never, delay: 1h}]\n")
	got, err := c.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("A")), Config: &a2a.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		t.Fatal(err)
	}
	id := got.(*a2a.Task).ID
	canceled := make(chan error, 1)
	var last a2a.TaskState
	for e, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: id}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *a2a.Task:
			go func() {
				task, err := c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: id})
				if err == nil && task.Status.State != a2a.TaskStateCanceled {
					err = errors.New("its state is " + string(task.Status.State))
				}
				canceled <- err
			}()
		case *a2a.TaskStatusUpdateEvent:
			last = e.Status.State
		}
	}
	select {
	case err = <-canceled:
	case <-time.After(time.Minute):
		err = errors.New("not canceled")
	}
	if err != nil || last != a2a.TaskStateCanceled {
		t.Errorf("%s %v", last, err)
	}
}
