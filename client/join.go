package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// ErrInbox says that no node would answer to the inbox prefix of the options.
var ErrInbox = errors.New("client: inbox prefix")

// Dial connects to a server elsewhere, and reconnects for ever. The caller must Close the
// client. Without a credential the client is an observer, and receives answers below the
// inbox prefix that all observers share.
func Dial(o bus.Options, prefix string) (*Client, error) {
	names, err := names.NewNames(prefix)
	if err == nil {
		names, err = names.As(o.As)
	}
	if err != nil {
		return nil, err
	}
	role := bus.RoleClient
	if o.IsAnonymous() {
		role = bus.RoleObserver
	}
	if o.As != "" {
		o.InboxPrefix = cmp.Or(o.InboxPrefix, bus.OwnerInbox(o.As))
	}
	o.InboxPrefix = cmp.Or(o.InboxPrefix, bus.InboxPrefix(role))
	if !bus.CanAnswer(o.InboxPrefix + ".x") {
		return nil, fmt.Errorf("%w %q: nodes answer below _INBOX, _INBOX_client and _INBOX_client_NAME only", ErrInbox, o.InboxPrefix)
	}
	nc, err := bus.Connect(o)
	if err != nil {
		return nil, err
	}
	c := New(nc, names)
	c.noTexts = o.As != ""
	return c, nil
}

// Join connects to the owner of a state directory. When the owner ends, the connection ends
// and gone is called: the next owner has another address. The caller must Close the client.
func Join(dir string, gone func()) (*Client, error) {
	nc, file, err := bus.JoinOwner(dir, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { gone() }))
	if err != nil {
		return nil, err
	}
	names, err := names.NewNames(file.Prefix)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return New(nc, names), nil
}

// ActAs returns a client whose requests are those of an owner, on the same connection.
func ActAs(c *Client, owner string) (*Client, error) {
	names, err := c.names.As(owner)
	if err != nil {
		return nil, err
	}
	return New(c.nc, names), nil
}

// Close closes the connection of a client made by Dial or Join.
func (c *Client) Close() { c.nc.Close() }

// URL is the server that the client is connected to.
func (c *Client) URL() string { return c.nc.ConnectedUrlRedacted() }

// Names returns the subject names that the client uses.
func (c *Client) Names() names.Names { return c.names }

// Lost reports whether an error says that the node, or the connection to it, is gone: the
// same request may be sent to the next node.
func Lost(err error) bool {
	for _, lost := range []error{ErrUnavailable, nats.ErrConnectionClosed, nats.ErrBadSubscription, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrConnectionDraining, nats.ErrStaleConnection} {
		if errors.Is(err, lost) {
			return true
		}
	}
	var refused *Error
	return errors.As(err, &refused) && refused.Code == CodeUnavailable
}

// IsRefused reports whether a node has refused a request, so that it has no effect. After any other error
// the request may have one.
func IsRefused(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code < CodeInternal
}

// ErrTooLarge says that a request exceeds what the server passes on.
var ErrTooLarge = nats.ErrMaxPayload

// Watch calls each for the events of all runs from now on, from a goroutine of its own, until
// stop is called. Events may be lost; use Events to read those of one run without a gap.
func (c *Client) Watch(each func(Event)) (stop func(), err error) {
	return watchSubject(c, c.names.AllEvents(), each)
}

// WatchRun calls each for the events of one run from now on, pieces of replies included, from a
// goroutine of its own, until stop is called. The run need not exist yet. Events may be lost; use Events
// to read them without a gap.
func (c *Client) WatchRun(run string, each func(Event)) (stop func(), err error) {
	subject, err := c.names.RunEvents(run)
	if err != nil {
		return nil, err
	}
	return watchSubject(c, subject, each)
}

// Question is one open query of a run.
type Question struct {
	RunID string `json:"run_id"`
	Agent string `json:"agent"`
	// AgentName is the name of the agent, Title that of the run in lists; "": not known.
	AgentName string `json:"agent_name,omitempty"`
	Title     string `json:"title,omitempty"`
	Query     string `json:"query"`
	Question  string `json:"question"`
	Reason    string `json:"reason"`
	Call      string `json:"call,omitempty"`
	// Digest is the SHA-256 of the call that is asked about, Rule the rule that an answer may add.
	Digest string `json:"digest,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// AskedMS and DueMS are when it was asked and when it expires, in Unix milliseconds; 0: unknown, never.
	AskedMS int64 `json:"asked_ms,omitempty"`
	DueMS   int64 `json:"due_ms,omitempty"`
	// RunDueMS is when the parked run ends if nobody answers, in Unix milliseconds; 0: it works, or no end is known.
	RunDueMS int64 `json:"run_due_ms,omitempty"`
	// Approvals is how many different people must approve the call; 0: one. ApprovedBy is the first approver.
	Approvals  int    `json:"approvals,omitempty"`
	ApprovedBy string `json:"approved_by,omitempty"`
	// Goal is the task of the run, Journal the digest of its root's journal, AgentJournal that of an agent below the root.
	Goal         string `json:"goal,omitempty"`
	Journal      string `json:"journal,omitempty"`
	AgentJournal string `json:"agent_journal,omitempty"`
}

// Questions lists the open queries of all runs, the oldest first.
func (c *Client) Questions(ctx context.Context) ([]Question, error) {
	var raw []struct {
		RunID     string `json:"run_id"`
		Agent     string `json:"agent"`
		AgentName string `json:"agent_name"`
		Title     string `json:"title"`
		Query     struct {
			Query, Question, Reason, Call, Digest, Rule string
			AskedMS                                     int64 `json:"asked_ms"`
			DueMS                                       int64 `json:"due_ms"`
			Approvals                                   int
			ApprovedBy                                  string `json:"approved_by"`
		}
		RunDueMS      int64 `json:"run_due_ms"`
		Goal, Journal string
		AgentJournal  string `json:"agent_journal"`
	}
	if err := c.askNode(ctx, "questions", struct{}{}, &raw); err != nil {
		return nil, err
	}
	list := make([]Question, len(raw))
	for i, r := range raw {
		q := r.Query
		list[i] = Question{
			RunID:        r.RunID,
			Agent:        r.Agent,
			AgentName:    r.AgentName,
			Title:        r.Title,
			Query:        q.Query,
			Question:     q.Question,
			Reason:       q.Reason,
			Call:         q.Call,
			Digest:       q.Digest,
			Rule:         q.Rule,
			AskedMS:      q.AskedMS,
			DueMS:        q.DueMS,
			RunDueMS:     r.RunDueMS,
			Approvals:    q.Approvals,
			ApprovedBy:   q.ApprovedBy,
			Goal:         r.Goal,
			Journal:      r.Journal,
			AgentJournal: r.AgentJournal,
		}
	}
	return list, nil
}

// Transcript returns one agent's messages, as the node reports them.
func (c *Client) Transcript(ctx context.Context, run, agent string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := c.askNode(ctx, "transcript", TranscriptRequest{RunID: run, Agent: agent}, &raw)
	return raw, err
}
