package request

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// answerer names the user of this process to those who read later who decided.
func answerer() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// ParseAnswer parses a decision as people write it: "no, because …" is a denial with a reason.
func ParseAnswer(run, agent, query, text string) client.AnswerRequest {
	r := client.AnswerRequest{RunID: run, Agent: agent, Query: query, Decision: strings.ToLower(strings.TrimSpace(text)), By: answerer()}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch r.Decision {
	case "approve", "deny", "skip":
	case "y", "yes", "once":
		r.Decision = "approve"
	case "n", "no":
		r.Decision = "deny"
	case "a", "always", "always run":
		r.Decision, r.Always = "approve", "run"
	case "p", "project", "always project":
		r.Decision, r.Always = "approve", "project"
	default:
		if word = strings.ToLower(strings.TrimRight(word, ",:")); word == "deny" || word == "no" {
			r.Decision, r.Text = "deny", strings.TrimSpace(rest)
			break
		}
		r.Decision, r.Text = "text", text
	}
	return r
}

// SendAnswer sends an answer. An approval for all runs in a directory is first written to the user's own settings.
func SendAnswer(ctx context.Context, s *session.Session, r client.AnswerRequest, say func(string)) error {
	if r.Always != "project" {
		return s.Answer(ctx, r)
	}
	list, err := s.Questions(ctx)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.RunID != r.RunID || q.Query != r.Query || r.Agent != "" && r.Agent != q.Agent || q.Rule == "" {
			continue
		}
		d, err := s.Describe(ctx, r.RunID)
		if err != nil {
			return err
		}
		if d.Description.Workspace == "" {
			return exit.UsageError("use --always run", "the run has no directory, so there is no project")
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
