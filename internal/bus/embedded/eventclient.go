package embedded

import (
	"bufio"
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/process"
)

// errManySubs is the server's message to a connection beyond the limit of its subscriptions.
const errManySubs = "-ERR 'maximum subscriptions exceeded'\r\n"

// eventClient is the client of one connection of the port, as far as events concern it. It reads what the client sends,
// passes it to the server, and keeps subscriptions to events: the fan-out serves those. Whether the client may
// connect, and all else that it may do, is the server's decision.
type eventClient struct {
	relay     *connRelay
	in        *bufio.Reader
	mayFollow bool                 // its credential permits events
	most      int                  // subscriptions
	events    map[string]*eventSub // by the client's id
	others    map[string]struct{}  // ids of subscriptions that the server has
}

func newEventClient(r *connRelay) *eventClient {
	return &eventClient{relay: r, in: bufio.NewReaderSize(r.out, ControlLineMax), events: map[string]*eventSub{}, others: map[string]struct{}{}}
}

// forward carries what the client sends, until either side ends.
func (c *eventClient) forward() {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			// The end, or a line of more than the server allows: it does not refuse each such line (PING, PONG), and
			// nothing behind one may pass unseen.
			_, _ = c.relay.in.Write(line)
			return
		}
		if !isUnambiguous(line) {
			return
		}
		if c.keepLine(line) {
			continue
		}
		if c.relay.proxy.isDecision(line) && process.IsAgentPeer(c.relay.out) {
			if err := forwardMarked(c.relay.in, bytes.Clone(line), c.in); err != nil {
				return
			}
			continue
		}
		if _, err := c.relay.in.Write(line); err != nil {
			return
		}
		if !isPublish(line) {
			continue
		}
		size, err := payloadSize(line)
		if err != nil { // the server refuses the line and ends
			_, _ = io.Copy(c.relay.in, c.in)
			return
		}
		if _, err := io.CopyN(c.relay.in, c.in, int64(size)); err != nil {
			return
		}
	}
}

func isPublish(line []byte) bool {
	fields := bytes.Fields(line)
	return len(fields) > 1 && (bytes.EqualFold(fields[0], []byte("PUB")) || bytes.EqualFold(fields[0], []byte("HPUB")))
}

// keepLine handles a line that concerns a subscription to events, and reports whether the server must not see it.
func (c *eventClient) keepLine(line []byte) bool {
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return false
	}
	switch verb := string(bytes.ToUpper(fields[0])); {
	case verb == "CONNECT":
		_, document, _ := bytes.Cut(line, fields[0])
		c.mayFollow, c.most = c.relay.proxy.fanOut.admits(document)
	case verb == "SUB" && c.mayFollow:
		return c.keepSub(fields[1:])
	case verb == "UNSUB" && c.mayFollow:
		return c.keepUnsub(fields[1:])
	}
	return false
}

// keepSub begins a subscription to events. Those with a queue group, and all others, are the server's.
func (c *eventClient) keepSub(fields [][]byte) bool {
	id := string(fields[len(fields)-1])
	if c.events[id] != nil || len(c.events)+len(c.others) >= c.most {
		maps.DeleteFunc(c.events, func(_ string, s *eventSub) bool { return c.relay.proxy.fanOut.isOver(s) })
	}
	if c.events[id] != nil {
		return true // it exists: the server ignores such a line, too
	}
	if _, known := c.others[id]; !known && len(c.events)+len(c.others) >= c.most {
		c.relay.deliver([]byte(errManySubs), false)
		return true
	}
	if len(fields) == 2 && c.relay.proxy.fanOut.serves(string(fields[0])) {
		if sub := c.relay.proxy.fanOut.subscribe(c.relay, string(fields[0]), id); sub != nil {
			c.events[id] = sub
			c.relay.proxy.fanOut.await(sub)
			return true
		}
	}
	c.others[id] = struct{}{}
	return false
}

// keepUnsub ends a subscription to events, at once or after as many events as the client names.
func (c *eventClient) keepUnsub(fields [][]byte) bool {
	id := string(fields[0])
	sub := c.events[id]
	if sub == nil {
		delete(c.others, id)
		return false
	}
	most := uint64(0)
	if len(fields) > 1 {
		var err error
		if most, err = strconv.ParseUint(string(fields[1]), 10, 62); err != nil {
			return false // the server refuses the line and ends
		}
	}
	if c.relay.proxy.fanOut.limit(sub, most) {
		delete(c.events, id)
	}
	return true
}

func (c *eventClient) unsubscribeAll() {
	for sub := range maps.Values(c.events) {
		c.relay.proxy.fanOut.limit(sub, 0)
	}
}

// credential is what a client presents in CONNECT.
type credential struct {
	User     string `json:"user"`
	Password string `json:"pass"`
	Token    string `json:"auth_token"`
	NKey     string `json:"nkey"`
	JWT      string `json:"jwt"`
	Verbose  bool   `json:"verbose"`
	Pedantic bool   `json:"pedantic"`
}

// admits reports whether the fan-out serves a client with this CONNECT document, and how many subscriptions it may
// have. A verbose client gets an answer for each line from the server, so the server alone serves it.
func (f *eventFanOut) admits(document []byte) (bool, int) {
	var c credential
	if json.Unmarshal(document, &c) != nil || c.Verbose || c.Pedantic {
		return false, 0
	}
	if c == (credential{}) {
		return f.open, WatcherSubsMax
	}
	equal := func(role bus.Role) bool {
		return c.User == string(role) && subtle.ConstantTimeCompare([]byte(c.Password), []byte(f.secrets[role])) == 1
	}
	switch {
	case equal(bus.RoleObserver):
		return true, WatcherSubsMax
	case equal(bus.RoleClient):
		return true, SubjectsMax
	}
	return false, 0
}

// message returns an event as a client receives it.
func (s *eventSub) message(subject, payload []byte) []byte {
	head := fmt.Appendf(nil, "MSG %s %s %d\r\n", subject, s.id, len(payload)-len("\r\n"))
	return slices.Concat(head, payload)
}
