package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox/memory"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// errNotOwner refuses a request about the schedule of another user.
var errNotOwner = errors.New("not the owner")

// published is an event that a schedule has published.
type published struct {
	kind event.Kind
	name string
	data any
}

// newConfig returns the configuration of a node whose runs all can be built and opened, and which appends its events to a
// list.
func newConfig(t *testing.T) (cfg Config, events *[]published) {
	t.Helper()
	events = &[]published{}
	return Config{
		Store: memory.New(memory.Config{}), Triggers: openTriggers(t), Keeps: true, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
		Publish: func(kind event.Kind, name string, data any) { *events = append(*events, published{kind, name, data}) },
		Lock:    func(context.Context, string) (func(), error) { return func() {}, nil },
		CheckOwner: func(_ context.Context, _, owner string) error {
			if owner != "" {
				return errNotOwner
			}
			return nil
		},
		Differences: func(r, made client.RunRequest) (fields []string) {
			if r.Prompt != made.Prompt {
				fields = []string{"prompt"}
			}
			return fields
		},
		PrepareRun: func(_ context.Context, r client.RunRequest) (client.RunRequest, error) { return r, nil },
		BuildRun: func(context.Context, client.RunRequest, string) (client.RunAccepted, error) {
			return client.RunAccepted{}, nil
		},
		OpenRun:    func(context.Context, client.RunRequest) error { return nil },
		NewRefusal: func(err error) *client.Error { return &client.Error{Code: client.CodeBad, Text: err.Error()} },
	}, events
}

// openTriggers returns the triggers of a server of this test alone.
func openTriggers(t *testing.T) *bus.Triggers {
	t.Helper()
	nc := bustest.Connect(t, bustest.StartServer(t), bus.RoleNode)
	triggers, err := bus.NewTriggers(nc, names.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return triggers
}

// Two nodes make the schedule of one id at the same time, and neither sees the lock of the other. The log decides which
// request made it, and the other request gets the answer that it would have got a moment later.
func TestCreate_OfTwoNodesTheFirstEntryDecides(t *testing.T) {
	t.Parallel()
	ours := client.RunRequest{RunID: "s", Prompt: "ours", On: "ours"}
	theirs := client.RunRequest{Prompt: "theirs"}
	create := func(t *testing.T, owner string) (any, error) {
		t.Helper()
		cfg, _ := newConfig(t)
		c := NewRegistry(cfg)
		c.cfg.BuildRun = func(ctx context.Context, _ client.RunRequest, _ string) (client.RunAccepted, error) {
			rule, err := schedule.NewRule(schedule.Times{On: "theirs"}, now)
			if err != nil {
				return client.RunAccepted{}, err
			}
			request, err := json.Marshal(theirs)
			if err != nil {
				return client.RunAccepted{}, err
			}
			_, err = c.logs.append(ctx, "s", schedule.Scheduled{Request: request, Rule: rule, Owner: owner, Salt: []byte("theirs")})
			return client.RunAccepted{}, err
		}
		return c.Create(t.Context(), ours)
	}
	t.Run("of the same owner", func(t *testing.T) {
		t.Parallel()
		answer, err := create(t, "")
		if err != nil {
			t.Fatal(err)
		}
		if accepted, ok := answer.(client.RunAccepted); !ok || !accepted.Existed || !slices.Equal(accepted.Differs, []string{"prompt", "times"}) {
			t.Errorf("%+v, want one that existed and differs", answer)
		}
	})
	t.Run("of another owner", func(t *testing.T) {
		t.Parallel()
		if answer, err := create(t, "somebody"); !errors.Is(err, errNotOwner) {
			t.Errorf("%+v, %v, want a refusal", answer, err)
		}
	})
}
