package request

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

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

// NeedsDecision reports whether a line that is no decision must not answer a question: the question is about a call, whose
// result the line would be, or about how to go on after a crash or on another node.
func NeedsDecision(q client.Question) bool {
	return q.Digest != "" || spec.Reason(q.Reason) == spec.ResumeUnsafe
}

// ParseDecision parses what a person types at a question. If the question needs a decision, one letter decides, a denial
// may have a reason ("n, use the staging server"), a text begins with "t ", and any other line is an error. The answer counts
// for the call of the question only.
func ParseDecision(q client.Question, text string) (client.AnswerRequest, error) {
	r := ParseAnswer(q.RunID, q.Agent, q.Query, text)
	if r.Digest = q.Digest; !NeedsDecision(q) || r.Decision != spec.TextOnly {
		return r, CheckAnswerText(r)
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	word, rest = strings.ToLower(strings.TrimRight(word, ",:")), strings.TrimSpace(rest)
	switch {
	case word == "n" || word == "no" || word == "deny":
		r.Decision, r.Text = spec.Deny, rest
	case word == "t" && rest != "":
		r.Text = rest
		return r, CheckResultText(q, r)
	case rest != "":
		return r, errNoDecision(text)
	case word == "once":
		r.Decision, r.Text = spec.Approve, ""
	case (word == "a" || word == "always") && q.Rule != "":
		r.Decision, r.Text, r.Always = spec.Approve, "", "run"
	case (word == "p" || word == "project") && q.Rule != "":
		r.Decision, r.Text, r.Always = spec.Approve, "", "project"
	case word == "s":
		r.Decision, r.Text = spec.Skip, ""
	default:
		return r, errNoDecision(text)
	}
	return r, nil
}

func errNoDecision(text string) error {
	return exit.UsageError("? lists the answers", "%.40q is not a decision, and nothing was answered", strings.TrimSpace(text))
}

// consents and refusals are words by which people mean a decision.
var (
	consents = []string{"ok", "okay", "k", "sure", "yep", "yeah", "go", "go ahead", "do it", "run it", "proceed", "continue", "allow", "allowed", "accept", "accepted", "agree", "agreed", "confirm", "confirmed", "fine", "lgtm"}
	refusals = []string{"nope", "reject", "rejected", "refuse", "refused", "denied", "disallow", "never", "stop", "abort", "don't", "do not"}
)

// CheckResultText refuses a text that would be the result of a call, or its outcome, although it means a decision or nothing.
func CheckResultText(q client.Question, r client.AnswerRequest) error {
	if r.Decision != spec.TextOnly || q.Call == "" || !NeedsDecision(q) {
		return nil
	}
	would := "the call would not run, and this text would be its result"
	if spec.Reason(q.Reason) == spec.ResumeUnsafe {
		would = "this text would be the outcome of the call"
	}
	text := strings.Trim(strings.ToLower(strings.TrimSpace(r.Text)), ".!")
	word, _, _ := strings.Cut(text, " ")
	short := strings.Count(text, " ") < 3 // "approve it, please" is no result of a call
	switch {
	case slices.Contains(consents, text), short && slices.Contains([]string{"approve", "approved", "yes"}, word):
		return exit.UsageError("write approve, or a text of more words", "%.40q is a text: %s", r.Text, would)
	case slices.Contains(refusals, text), text == "no", short && slices.Contains([]string{"deny", "denied"}, word):
		return exit.UsageError("write deny, or a text of more words", "%.40q is a text: %s", r.Text, would)
	case !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }):
		return exit.UsageError("write approve, deny, skip, or a text of words", "%.40q is a text: %s", r.Text, would)
	}
	return nil
}

// FindQuestion returns the open question that an answer is for; nil: there is none, or several agents ask it.
func FindQuestion(ctx context.Context, s *session.Session, r client.AnswerRequest) (found *client.Question, err error) {
	list, err := s.Questions(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		if q.RunID != r.RunID || q.Query != r.Query || r.Agent != "" && r.Agent != q.Agent {
			continue
		}
		if found != nil {
			return nil, nil
		}
		found = &q
	}
	return found, nil
}

// SendAnswer sends an answer, and says if another person must approve, too. An approval for all runs in a directory is
// also written to the user's own settings.
func SendAnswer(ctx context.Context, s *session.Session, r client.AnswerRequest, say func(string)) error {
	if r.Decision != spec.Approve {
		return s.Answer(ctx, r)
	}
	q, err := FindQuestion(ctx, s, r)
	if err != nil {
		return err
	}
	return SendAnswerTo(ctx, s, r, q, say)
}

// SendAnswerTo is SendAnswer for a question that was found; nil: the node says why it cannot be answered.
func SendAnswerTo(ctx context.Context, s *session.Session, r client.AnswerRequest, q *client.Question, say func(string)) error {
	switch {
	case q == nil || r.Decision != spec.Approve:
		return s.Answer(ctx, r)
	case q.Approvals > 1:
		return sendApproval(ctx, s, r, *q, say)
	case r.Always != "project" || q.Rule == "":
		return s.Answer(ctx, r)
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

// checkRulesRead refuses to write a rule for a directory if a node of this machine would begin runs there without it, or if
// its file is broken. Nodes of other machines have other directories.
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
		case n.Settings == "" && (n.Host == "" || n.Host == host):
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
			"no node of this machine is running, and those of other machines do not read your rules here")
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
		say(fmt.Sprintf("1 of %d approved, by %s; another person must approve it, too: troupe answer %s %s approve --agent %s", q.Approvals, r.By, r.RunID, r.Query, q.Agent))
	}
	return nil
}
