package request

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	conversationFlag = "conversation"
	// LastConversation is the conversation of the newest run of the directory.
	LastConversation = "last"
	// lastRunsMax bounds the runs among which the newest of the directory is looked for.
	lastRunsMax = 100
)

// CheckConversation refuses a conversation that is named by nothing, such as --conversation "$UNSET".
func (r *Flags) CheckConversation(c *cobra.Command) error {
	if c.Flags().Changed(conversationFlag) && r.Request.Conversation == "" {
		return exit.UsageError("`troupe conversations list` shows them; leave the flag out for a new one", "--%s is empty", conversationFlag)
	}
	return nil
}

// ResolveConversation replaces "last" by the conversation of the newest run of the directory, or by that run if it has
// none. Later runs do not change what the request means.
func (r *Flags) ResolveConversation(s *session.Session) error {
	q := &r.Request
	if q.Conversation != LastConversation {
		return nil
	}
	runs, err := s.ListRuns(s.Context, client.ListRequest{Limit: lastRunsMax})
	if err != nil {
		return err
	}
	elsewhere := ""
	for i, run := range runs {
		info, err := s.Describe(s.Context, run.RunID)
		if isRefusal(err) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		if info.Description == nil {
			continue // it has not begun
		}
		if dir := info.Description.Workspace; !isSameDir(dir, q.Dir) {
			if i == 0 {
				elsewhere = dir
			}
			continue
		}
		if q.Conversation = info.Conversation; q.Conversation == "" {
			q.Conversation = run.RunID
		}
		return nil
	}
	hint := "`troupe conversations list` shows the conversations, `troupe list` the runs: name one"
	if elsewhere != "" {
		hint = "the newest run works in " + term.CleanLine(elsewhere) + ": name that with --dir, or a conversation of `troupe conversations list`"
	}
	if q.Dir == "" {
		return exit.UsageError(hint, "--%s %s: there is no run without a directory", conversationFlag, LastConversation)
	}
	return exit.UsageError(hint, "--%s %s: there is no run of the directory %s", conversationFlag, LastConversation, q.Dir)
}

// resolveAgent names no agent for a message of a conversation that was handed off: the node then
// chooses the agent that has it.
func (r *Flags) resolveAgent(s *session.Session) error {
	if !r.KeepsHolder || r.Request.Agent == "" {
		return nil
	}
	info, err := s.Conversations().Get(s.Context, r.Request.Conversation)
	if isRefusal(err) {
		return nil // the conversation has not begun
	}
	if info.HandedTo != "" {
		r.Request.Agent = ""
	}
	return err
}

// isSameDir reports whether two paths name one directory, or none.
func isSameDir(a, b string) bool {
	if a == b || a == "" || b == "" {
		return a == b
	}
	first, err := os.Stat(a)
	second, other := os.Stat(b)
	return errors.Join(err, other) == nil && os.SameFile(first, second)
}
