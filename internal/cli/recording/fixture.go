package recording

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/fixture"
	"github.com/troupe-run/troupe/internal/runfile"
)

// recordedEnd is the value of --expect for the end that the run had.
const recordedEnd = "recorded"

// Fixture makes the command fixture.
func (cs *Commands) Fixture() *cobra.Command {
	var expect string
	var o fixture.Options
	c := &cobra.Command{
		Use: "fixture RUN|FILE", Args: exactlyOne,
		Short: "Write an eval case from a run",
		Long: `Write an eval case from a run: a scripted model with the replies that each agent got,
mocked tools with the recorded results, the answers of hooks and people, and how the run
ended. Run it with "troupe eval", fix the cause, and keep it as a test.

The case of a failed run expects the end "completed", and so it fails as the run failed.
--expect names another end, and --expect recorded the end that the run had, whatever it
is. After a fix, "troupe eval --bless" writes the new result as the expectation.

The case is run once before it is written. The exit code is 0 if it ends as the run did,
and 1 if it does not; docs/evals.md says what a case does not have of a run. Secrets that
this machine knows are masked in it, and texts that look like one.`,
		Example: `  troupe fixture last > case.yaml; troupe eval case.yaml
  troupe fixture ./run.jsonl --expect recorded > case.yaml
  troupe fixture 01k9z3 --shortest --expect-answer "42" > case.yaml`,
		Annotations: map[string]string{command.Formats: "yaml json"},
		RunE: func(cc *cobra.Command, args []string) error {
			if o.AsRecorded = expect == recordedEnd; !o.AsRecorded {
				o.Expect = spec.Reason(expect)
			}
			if o.Expect != "" && !slices.Contains(spec.Reasons(), o.Expect) {
				return exit.UsageError(suggestReason(expect), "--expect %q is not a stop reason", expect)
			}
			f, err := cs.Load(args[0])
			if err == nil {
				err = refuseRedacted(f)
			}
			if err != nil {
				return err
			}
			o.Mask = cs.Sessions.Secrets().MaskText
			return cs.writeFixture(cc.Context(), f, o)
		},
	}
	c.Flags().StringVar(&expect, "expect", "", `stop reason that the case expects, or "recorded" (default completed for a run that failed, else recorded)`)
	c.Flags().StringVar(&o.Answer, "expect-answer", "", "text that the answer must contain")
	c.Flags().BoolVar(&o.Shortest, "shortest", false,
		"leave out the last replies without which the run ends in the same way")
	// the flag is there
	_ = c.RegisterFlagCompletionFunc("expect", cobra.FixedCompletions(reasonWords(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func reasonWords() []string {
	words := []string{recordedEnd}
	for _, r := range spec.Reasons() {
		words = append(words, string(r))
	}
	return words
}

func suggestReason(word string) string {
	if near := config.NearestName(word, reasonWords()); near != "" {
		return "did you mean " + near + "?"
	}
	return "it is recorded, or one of " + strings.Join(reasonWords()[1:], ", ")
}

// writeFixture writes the case, and reports on stderr how its run ended.
func (cs *Commands) writeFixture(ctx context.Context, f runfile.File, o fixture.Options) error {
	made, err := fixture.Make(ctx, f, o)
	switch {
	case errors.Is(err, fixture.ErrNoRun):
		return exit.UsageError("troupe list shows the runs",
			"%s has no log of a supervisor: there is nothing to make a case of", f.Header.Run)
	case errors.Is(err, fixture.ErrNotEnded):
		return exit.UsageError("`troupe result --wait "+f.Header.Run+"` waits for its end; if its process has ended, `troupe run --resume "+f.Header.Run+"` goes on with it", "%s has not ended: nothing says yet how its case should end", f.Header.Run)
	case errors.Is(err, fixture.ErrSize):
		return exit.UsageError("--shortest leaves out replies that the end does not need", "%s: %s", f.Header.Run, strings.TrimPrefix(err.Error(), "fixture: "))
	case err != nil:
		return err
	}
	text, err := made.Encode(cs.Console.Output == "json")
	if err != nil {
		return err
	}
	if err := cs.Console.WriteText(text); err != nil {
		return err
	}
	cs.describeFixture(made)
	if !made.EndsAsRecorded() {
		return exit.WithCode(exit.Failed)
	}
	return nil
}

func (cs *Commands) describeFixture(made fixture.Fixture) {
	say := func(format string, args ...any) { cs.Console.Say(fmt.Sprintf(format, args...)) }
	if made.Kept < made.Replies {
		say("the case has %d of the %d replies", made.Kept, made.Replies)
	}
	if made.OutOfTime {
		say("the case has all replies: after %s no shorter one was found", fixture.ShortestTime)
	}
	for _, what := range made.Left {
		say("not in the case: %s", what)
	}
	for _, what := range made.Loosened {
		say("not checked, because it came out otherwise: %s", what)
	}
	if !made.EndsAsRecorded() {
		for _, d := range made.Verdict.Unlike {
			say("the case does not end as the run did: %s", d)
		}
		return
	}
	what := "passes"
	if !made.Verdict.Pass {
		what = "fails as the run failed: " + strings.Join(made.Verdict.Differences, "; ")
	}
	say("the case ends as the run did (%s), and %s", made.Verdict.StopReason, what)
}
