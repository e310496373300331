package request

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/suggest"
)

// UserName names the user of this process to those who read later who decided.
func UserName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// RefuseAgents refuses to answer for an agent: its tools and hooks run with these variables.
func RefuseAgents(getenv func(string) string) error {
	for _, name := range []string{"TROUPE_CALL", "TROUPE_HOOK"} {
		if getenv(name) != "" {
			return exit.UsageError("a person answers, in a terminal of their own",
				"an agent cannot answer questions: %s is set, so this is a tool or a hook of a run", name)
		}
	}
	return nil
}

// ParseAnswer parses a decision in whole words; any other text is the answer itself.
func ParseAnswer(run, agent, query, text string) client.AnswerRequest {
	r := client.AnswerRequest{RunID: run, Agent: agent, Query: query, Decision: spec.Decision(strings.ToLower(strings.TrimSpace(text))), By: UserName()}
	switch r.Decision {
	case spec.Approve, spec.Deny, spec.Skip:
	case "y", "yes":
		r.Decision = spec.Approve
	case "n", "no":
		r.Decision = spec.Deny
	default:
		r.Decision, r.Text = spec.TextOnly, text
	}
	return r
}

// CheckAnswerText refuses a text that is almost a decision: it would be the result of the call that is asked about.
func CheckAnswerText(r client.AnswerRequest) error {
	if r.Decision != spec.TextOnly {
		return nil
	}
	for _, d := range []spec.Decision{spec.Approve, spec.Deny, spec.Skip} {
		if suggest.Misspells(r.Text, string(d)) {
			return exit.UsageError("write "+string(d)+", or a text of more words",
				"%.40q is almost the answer %s, and as a text it would be the result of the call", r.Text, d)
		}
	}
	return nil
}

// ParseDecision parses what a person types at a question. If it asks for an approval, one letter decides, and a denial
// may have a reason: "n, use the staging server". The answer counts for the call of the question only.
func ParseDecision(q client.Question, text string) client.AnswerRequest {
	r := ParseAnswer(q.RunID, q.Agent, q.Query, text)
	if r.Digest = q.Digest; q.Digest == "" || r.Decision != "text" {
		return r
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToLower(strings.TrimRight(word, ",:")) {
	case "n", "no", "deny":
		r.Decision, r.Text = spec.Deny, strings.TrimSpace(rest)
		return r
	}
	switch spec.Decision(strings.ToLower(strings.TrimSpace(text))) {
	case "once":
		r.Decision, r.Text = spec.Approve, ""
	case "a", "always":
		r.Decision, r.Text, r.Always = spec.Approve, "", "run"
	case "p", "project":
		r.Decision, r.Text, r.Always = spec.Approve, "", "project"
	case "s":
		r.Decision, r.Text = spec.Skip, ""
	}
	return r
}

// SendAnswer sends an answer, and says if another person must approve, too. An approval for all runs in a directory is
// also written to the user's own settings.
func SendAnswer(ctx context.Context, s *session.Session, r client.AnswerRequest, say func(string)) error {
	if r.Decision != spec.Approve {
		return s.Answer(ctx, r)
	}
	list, err := s.Questions(ctx)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.RunID != r.RunID || q.Query != r.Query || r.Agent != "" && r.Agent != q.Agent {
			continue
		}
		if q.Approvals > 1 {
			return sendApproval(ctx, s, r, q, say)
		}
		if r.Always != "project" || q.Rule == "" {
			break
		}
		d, err := s.Describe(ctx, r.RunID)
		if err != nil {
			return err
		}
		if d.Description.Workspace == "" {
			return exit.UsageError("use --always run", "the run has no directory, so there is no project")
		}
		if err := checkRulesRead(ctx, s, d.Description.Workspace); err != nil {
			return err
		}
		r.Always = "run" // the rule counts for this run, too
		if err := s.Answer(ctx, r); err != nil {
			return err
		}
		file, err := agentfile.AllowInProject(filepath.Dir(config.UserFile()), d.Description.Workspace, q.Rule)
		if err != nil {
			return err
		}
		say(fmt.Sprintf("%s is allowed in %s from now on: see %s", q.Rule, d.Description.Workspace, file))
		return nil
	}
	return s.Answer(ctx, r) // the node says why it cannot be
}

// checkRulesRead refuses to write a rule for a directory if no node would read it, or if its file is broken.
func checkRulesRead(ctx context.Context, s *session.Session, dir string) error {
	file := config.UserFile()
	if _, err := agentfile.LoadProject(filepath.Dir(file), dir); err != nil {
		return refuse.Bad("fix that file, or use --always run", "your rules for the directory cannot be read: %v", err)
	}
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(node.SettingsPlace(file), ":")
	here := 0
	for _, n := range nodes {
		theirs, isLocal := strings.CutPrefix(n.Settings, host+":")
		switch {
		case n.Settings == "":
			return refuse.Bad("use --always run; the operator of the node allows more",
				"the node %s reads no rules of a user, so a rule for the directory would have no effect", n.Name)
		case isLocal && theirs != file:
			return refuse.Bad("use --always run, or write the rule below permissions.allow in that file",
				"the node %s reads its rules from %s, and not from yours beside %s", n.Name, theirs, file)
		case isLocal:
			here++
		}
	}
	if here == 0 {
		return refuse.Bad("use --always run, or answer on the machine of the node",
			"no node of this machine acts on the run, and those of other machines do not read your rules here")
	}
	return nil
}

// sendApproval sends the approval of a call that two people must approve.
func sendApproval(ctx context.Context, s *session.Session, r client.AnswerRequest, q client.Question, say func(string)) error {
	if r.Always == "project" {
		return exit.UsageError("approve it once, or with --always run; a rule for all your runs is written by hand into your own settings",
			"%d people must approve this call, and a rule for the directory is one person's", q.Approvals)
	}
	if err := s.Answer(ctx, r); err != nil {
		return err
	}
	if q.ApprovedBy == "" {
		say(fmt.Sprintf("1 of %d approved, by %s; another person must approve it, too: troupe answer %s %s approve", q.Approvals, r.By, r.RunID, r.Query))
	}
	return nil
}
