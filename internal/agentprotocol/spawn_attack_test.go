package agentprotocol

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// The fields of a spawn have limits: a list has them of each session.
func TestAttackLongFieldsOfSpawn(t *testing.T) {
	t.Parallel()
	h := serveHost(t, connectServer(t), "a")
	list := func(n int, text string) string { return `["` + strings.Repeat(text+`","`, n-1) + text + `"]` }
	x := func(n int) string { return strings.Repeat("x", n) }
	for i, k := range []struct {
		field  string
		value  string
		accept bool
	}{
		{"cwd", `"` + x(dirBytesMax) + `"`, true}, {"cwd", `"` + x(dirBytesMax+1) + `"`, false},
		{"model", `"` + x(modelBytesMax) + `"`, true}, {"model", `"` + x(modelBytesMax+1) + `"`, false},
		{"allowed_tools", list(allowedToolsMax, "x"), true}, {"allowed_tools", list(allowedToolsMax+1, "x"), false},
		{"allowed_tools", `["` + x(allowedBytesMax) + `"]`, true}, {"allowed_tools", `["` + x(allowedBytesMax) + `","x"]`, false},
		{"agent", `"` + x(1<<16) + `"`, false}, {"session_id", `"` + x(1<<16) + `"`, false}, {"permission_mode", `"` + x(1<<16) + `"`, false},
	} {
		_, err := h.controller.spawn(t.Context(), "", []byte(`{"`+k.field+`":`+k.value+`}`))
		var refused *client.Error
		if (err == nil) != k.accept || err != nil && (!errors.As(err, &refused) || refused.Code != client.CodeBad && k.field != "agent") {
			t.Errorf("%d, %s of %d bytes: %v", i, k.field, len(k.value), err)
		}
	}
}

// A list has room in one message of the server, and says how many sessions there are and after which to ask.
func TestAttackListIsTooLong(t *testing.T) {
	t.Parallel()
	h := serveHost(t, connectServer(t), "a")
	h.payloadMax = 32 << 10
	for i := range sessionsMax {
		if _, err := h.controller.spawn(t.Context(), "", fmt.Appendf(nil, `{"session_id":"own-%02d","cwd":%q,"max_lifetime_s":0}`, i, strings.Repeat("<", dirBytesMax))); err != nil {
			t.Fatal(err)
		}
	}
	const others = 200
	for i := range others {
		h.listener.hearAgents(beatOf(heartbeat{Session: fmt.Sprintf("s-%03d", i), Role: roleSession, Node: "b", State: stateIdle}))
	}
	var all []string
	for after, pages := "", 1; ; pages++ {
		v, err := h.controller.listSessions(t.Context(), "", fmt.Appendf(nil, `{"after":%q}`, after))
		if err != nil {
			t.Fatal(err)
		}
		page := v.(sessionPage)
		if n := len(encode(page)); n > h.payloadMax {
			t.Fatalf("page %d has %d bytes", pages, n)
		}
		for _, s := range page.Sessions {
			all = append(all, s.SessionID)
		}
		if page.Next == "" {
			if pages < 3 || page.Total != 0 {
				t.Errorf("%d pages, the last of %d", pages, page.Total)
			}
			break
		}
		if page.Total != sessionsMax+others || len(page.Sessions) == 0 {
			t.Fatalf("%d of %d after %q", len(page.Sessions), page.Total, after)
		}
		after = page.Next
	}
	if len(all) != sessionsMax+others || all[0] != "own-00" || all[len(all)-1] != "s-199" {
		t.Errorf("%d sessions: %q", len(all), all)
	}
	// A session that needs a message alone is listed without its long fields.
	h.payloadMax = 2 << 10
	if v, err := h.controller.listSessions(t.Context(), "", nil); err != nil || len(v.(sessionPage).Sessions) == 0 || v.(sessionPage).Sessions[0].Dir != "" {
		t.Errorf("%+v %v", v, err)
	}
}
