package httpapi

import (
	"strings"
	"testing"
	"time"
)

// A ticket is good once, for a time; a session is good at nodes of its token, for a time.
func TestTicketsAndSessionsEnd(t *testing.T) {
	now := time.Now()
	k := newSessionKeeper("a token of one node")
	k.now = func() time.Time { return now }
	first := k.newTicket()
	if !k.takeTicket(first.Ticket) || k.takeTicket(first.Ticket) || k.takeTicket("") {
		t.Error("a ticket is good once, and an empty one never")
	}
	old := k.newTicket()
	now = now.Add(ticketLife)
	if k.takeTicket(old.Ticket) {
		t.Error("an old ticket was accepted")
	}
	early := k.newTicket()
	for range ticketsMax {
		k.newTicket()
	}
	if k.takeTicket(early.Ticket) || len(k.tickets) != ticketsMax {
		t.Errorf("%d tickets wait", len(k.tickets))
	}

	s := k.newSession().Session
	again := newSessionKeeper("a token of one node")
	again.now = k.now
	if !k.accepts(s) || !again.accepts(s) {
		t.Error("a session does not outlive the process")
	}
	if other := newSessionKeeper("a token of another"); other.accepts(s) {
		t.Error("the session of another node was accepted")
	}
	forged := strings.Replace(s, s[len(sessionPrefix):len(sessionPrefix)+4], "____", 1)
	for _, bad := range []string{"", sessionPrefix, forged, s + "A", strings.TrimPrefix(s, sessionPrefix)} {
		if k.accepts(bad) {
			t.Errorf("%q was accepted", bad)
		}
	}
	now = now.Add(sessionLife)
	if k.accepts(s) {
		t.Error("an old session was accepted")
	}
}
