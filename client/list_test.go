package client_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// A node of an earlier build sends one page, and refuses fields that it does not know.
func TestListOfANodeWithoutPagesIsItsOnlyPage(t *testing.T) {
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	subscribe(t, nc, "list", func(m *nats.Msg) {
		answer := nats.NewMsg(m.Reply)
		answer.Data = []byte(`[{"run_id":"r2"},{"run_id":"r1"}]`)
		if strings.Contains(string(m.Data), "before") {
			answer.Header.Set(micro.ErrorCodeHeader, client.CodeBad)
		}
		if err := m.RespondMsg(answer); err != nil {
			t.Error(err)
		}
	})
	list, err := client.New(nc, names.Names{}).List(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
