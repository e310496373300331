package control

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Answer makes the command answer.
func (cs *Commands) Answer() *cobra.Command {
	var who, always, digest, by string
	c := &cobra.Command{
		Use: "answer RUN QUERY approve|deny|skip|TEXT [REASON]", Args: command.Between(3, 4, "RUN", "QUERY", "ANSWER", "REASON"),
		Short: "Answer an agent's question",
		Long: "Answer an agent's question. approve lets the call run once, or with --always also those like it;\n" +
			"deny refuses it, and the agent reads the reason; skip goes on without it.\n" +
			"Any other text is the answer to what an agent asks. If the question is about a call, the call does\n" +
			"not run, and the text is its result; a word such as ok is refused there: write approve. A call of a run\n" +
			"with --approvals 2 runs once two different people have approved it. If several agents ask under the same\n" +
			"QUERY, --agent says which one is meant.",
		Example: "  troupe questions\n  troupe answer 01k9z3 2-0.1 approve\n  troupe answer 01k9z3 2-0.1 approve --always run\n" +
			"  troupe answer 01k9z3 2-0.1 deny \"use the staging server\"\n  troupe answer 01k9z3 2-0.1 \"use the second one\"",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if err := request.RefuseAgents(cs.Console.Getenv); err != nil {
				return err
			}
			return cs.Sessions.Visit(session.ToInspect, func(ctx context.Context, s *session.Session) error {
				run, err := cs.findAskingRun(ctx, s, args[0])
				if err != nil {
					return err
				}
				id, err := s.FindAgent(ctx, run, who)
				if err != nil {
					return err
				}
				r := request.ParseAnswer(run, id, args[1], args[2])
				if err := request.CheckAnswerText(r); err != nil {
					return err
				}
				if len(args) == 4 {
					if r.Decision != spec.Deny && r.Decision != spec.Skip {
						return exit.UsageError("put the answer into one argument", "only deny and skip take a reason")
					}
					r.Text = strings.TrimSpace(args[3])
				}
				if err := checkAnswerFlags(c, r, always, by); err != nil {
					return err
				}
				r.Always, r.Digest = cmp.Or(always, r.Always), digest
				r.By = cmp.Or(cs.Sessions.Conn.As, by, r.By) // a node records the verified name of an owner
				return cs.sendAnswer(ctx, s, r)
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", "agent that asks: "+command.AgentFlag+" (needed if several ask under the same QUERY)")
	c.Flags().StringVar(&always, "always", "",
		"approve calls like this one, too: run for the rest of the run, project also for your later runs in its directory")
	c.Flags().StringVar(&digest, "digest", "",
		"SHA-256 of the call, from troupe questions -o json; the answer is refused if the call has changed")
	c.Flags().StringVar(&by, "by", "", "name with which the answer is recorded (default: the name of your account; with --as that name)")
	return c
}

// checkAnswerFlags refuses flags that do not fit the answer.
func checkAnswerFlags(c *cobra.Command, r client.AnswerRequest, always, by string) error {
	switch {
	case always != "" && r.Decision != spec.Approve:
		return exit.UsageError("write approve, or leave --always out", "--always goes with approve, and the answer is %s", r.Decision)
	case c.Flags().Changed("by") && strings.TrimSpace(by) == "":
		return exit.UsageError("write --by NAME, or leave it out: then the name of your account counts", "--by is empty")
	}
	return nil
}

// sendAnswer sends an answer, and prints what it has decided.
func (cs *Commands) sendAnswer(ctx context.Context, s *session.Session, r client.AnswerRequest) error {
	q, err := request.FindQuestion(ctx, s, r)
	if err == nil && q != nil { // the question that was found is answered, and no other one with its name
		r.Agent, r.Digest = q.Agent, cmp.Or(r.Digest, q.Digest)
		err = request.CheckResultText(*q, r)
	}
	if err == nil {
		err = request.SendAnswerTo(ctx, s, r, q, cs.Console.Say)
	}
	if errors.Is(err, client.ErrUnavailable) && cs.Sessions.Conn.NamesServer() && r.Always != "project" {
		return cs.storeAnswer(ctx, s, r)
	}
	if err != nil {
		return err
	}
	if q == nil { // it was asked, or the others were answered, only just now
		return cs.printInForce(ctx, s, r.RunID, "answered: "+string(r.Decision), map[string]any{"query": r.Query, "decision": r.Decision})
	}
	decided := request.DescribeAnswer(*q, r)
	return cs.printInForce(ctx, s, r.RunID, term.CleanLine(q.Agent+": "+decided),
		map[string]any{"agent": q.Agent, "query": r.Query, "decision": r.Decision, "decided": decided})
}

// findAskingRun returns the id of the run that an answer is for. While no node is up, a prefix of an id cannot be
// resolved, so the text counts as a whole id: the node that reads the answer refuses it if there is no such run.
func (cs *Commands) findAskingRun(ctx context.Context, s *session.Session, text string) (string, error) {
	run, err := s.FindRun(ctx, text)
	if errors.Is(err, client.ErrUnavailable) && cs.Sessions.Conn.NamesServer() {
		return strings.ToLower(text), nil
	}
	return run, err
}

// storeAnswer leaves an answer on a server that nodes share, because none of them is up.
func (cs *Commands) storeAnswer(ctx context.Context, s *session.Session, r client.AnswerRequest) error {
	if err := client.StoreAnswer(ctx, s.Client, r); err != nil {
		return err
	}
	if !cs.Console.Quiet {
		cs.Console.Say("stored: no node is running; a node reads it when it starts")
		if !client.IsRunID(r.RunID) {
			cs.Console.Say("the node refuses it if " + term.CleanLine(r.RunID) + " is not the whole id of a run")
		}
		if r.Decision == spec.Approve && r.Digest == "" {
			cs.Console.Say("if this is about a call, the node refuses it: such an approval needs --digest, from `troupe questions -o json` or the event query.asked")
		}
		if r.Decision == spec.TextOnly {
			cs.Console.Say("if this is about a call, the call does not run, and the text is its result")
		}
	}
	if cs.Console.Output == "table" {
		return nil
	}
	return cs.Console.PrintData(map[string]any{"run_id": r.RunID, "recorded": false, "stored": true, "running": false})
}
