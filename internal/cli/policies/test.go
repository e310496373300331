package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/recording"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

// factsBytesMax bounds a file of facts.
const factsBytesMax = 1 << 20

func (cs *Commands) testCommand() *cobra.Command {
	var facts, run string
	c := &cobra.Command{
		Use: "test FILE", Args: command.Exactly("FILE"),
		Short: "Check a policy file, and say what it decides about facts or about a recorded run",
		Long: `Check a policy file. With --facts, say what each rule decides about the facts of a JSON
file, and why: one object or a list of them, such as

  {"on": "stop", "agent": "root", "answer": "Done.", "turns": 3, "tokens": 41000}

With --run, say what the policy would have decided at each boundary of a recorded run,
together with the recorded decision. RUN is a run, or a run file of "troupe export RUN --logs". After
the first decision that differs, the run would have gone another way.

The exit code is 2 if the file cannot be used.`,
		Example: `  troupe policy test policy.yaml
  troupe policy test policy.yaml --facts facts.json
  troupe policy test policy.yaml --run last -o json |
    jq '.boundaries[] | select(.verdict.vetoed)'`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, args []string) error {
			if facts != "" && run != "" {
				return exit.UsageError("use one of them", "--facts and --run exclude each other")
			}
			for _, name := range []string{"facts", "run"} {
				if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return exit.UsageError("name what to test with, or leave it out", "--%s is empty", name)
				}
			}
			p, err := ReadFile(args[0])
			if err != nil {
				return err
			}
			return cs.test(tested{File: args[0], Policy: p}, facts, run)
		},
	}
	c.Flags().StringVar(&facts, "facts", "", "JSON file with the facts of one or more boundaries")
	c.Flags().StringVar(&run, "run", "", "run, or run file, at whose boundaries the policy is tested")
	return c
}

// tested is what `policy test -o json` prints.
type tested struct {
	File       string            `json:"file"`
	Policy     supervisor.Policy `json:"policy"`
	Boundaries []testedBoundary  `json:"boundaries"`
}

// testedBoundary is one decision.
type testedBoundary struct {
	Entry    uint64                   `json:"entry,omitempty"` // of the supervisor's log
	AtMS     int64                    `json:"at_ms,omitempty"`
	On       string                   `json:"on"`
	Agent    string                   `json:"agent"`
	Turn     int                      `json:"turn"`
	Verdict  testedVerdict            `json:"verdict"`
	Recorded *testedVerdict           `json:"recorded,omitempty"`
	Rules    []supervisor.RuleReading `json:"rules"`
}

type testedVerdict struct {
	Vetoed  bool   `json:"vetoed"`
	Rule    string `json:"rule,omitempty"`
	Why     string `json:"why,omitempty"`
	Version int    `json:"policy_version,omitempty"`
}

func verdictOf(v supervisor.Verdict, version int) testedVerdict {
	return testedVerdict{Vetoed: v.Vetoed, Rule: v.Rule, Why: v.Why, Version: version}
}

func (cs *Commands) test(t tested, facts, run string) error {
	t.Boundaries = []testedBoundary{}
	var err error
	switch {
	case facts != "":
		err = t.addFacts(facts)
	case run != "":
		err = cs.addRun(&t, run)
	}
	if err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(t)
	}
	return cs.printTested(t, facts != "", run != "")
}

func (t *tested) add(b supervisor.Boundary) *testedBoundary {
	t.Boundaries = append(t.Boundaries, testedBoundary{On: b.On, Agent: string(b.Facts.Agent), Turn: b.Facts.Turns,
		Verdict: verdictOf(t.Policy.Decide(b.On, b.Facts), t.Policy.Version), Rules: t.Policy.Explain(b.On, b.Facts)})
	return &t.Boundaries[len(t.Boundaries)-1]
}

// factsDocument is one object of a file of facts.
type factsDocument struct {
	On string `json:"on"`
	supervisor.PolicyFacts
}

// addFacts tests the policy with the facts of a file.
func (t *tested) addFacts(path string) error {
	data, err := safefile.Read(path, factsBytesMax)
	if err != nil {
		return exit.UsageError("name a JSON file with facts", "--facts %s: %v", path, safefile.WithoutName(err))
	}
	list, err := parseFacts(data)
	if err != nil {
		return exit.UsageError(`write them as {"on": "stop", "answer": "Done.", "turns": 3}; docs/policy.md lists the facts`, "--facts %s: %v", path, err)
	}
	for _, f := range list {
		t.add(supervisor.Boundary{On: f.On, Facts: f.PolicyFacts})
	}
	return nil
}

func parseFacts(data []byte) ([]factsDocument, error) {
	var list []factsDocument
	into := any(&list)
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		list = make([]factsDocument, 1)
		into = &list[0]
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the first JSON value: write a list for several boundaries")
	}
	for _, f := range list {
		if f.On != supervisor.OnStop && f.On != supervisor.OnTurn {
			return nil, fmt.Errorf("on is %.40q, it must be \"stop\" or \"turn\"", f.On)
		}
	}
	return list, nil
}

// addRun tests the policy at the boundaries of a recorded run.
func (cs *Commands) addRun(t *tested, text string) error {
	logs := recording.Commands{Console: cs.Console, Sessions: cs.Sessions}
	f, err := logs.Load(text)
	if err != nil {
		return err
	}
	for _, b := range replay.Logs(f.Entries, replay.Options{Boundaries: true}).Boundaries {
		added := t.add(b.Boundary)
		recorded := verdictOf(b.Verdict, b.Version)
		added.Entry, added.AtMS, added.Recorded = b.Entry, b.AtMS, &recorded
	}
	return nil
}

func (cs *Commands) printTested(t tested, facts, run bool) error {
	page := cs.Console.NewPage()
	page.AddLine(fmt.Sprintf("%s: version %d, %s", term.CleanLine(t.File), t.Policy.Version, console.CountOf(len(t.Policy.Rules), "rule")))
	switch {
	case facts:
		for _, b := range t.Boundaries {
			page.Lines = append(page.Lines, "")
			page.AddLine(fmt.Sprintf("%s of %s: %s", b.On, term.CleanLine(orText(b.Agent, "an agent")), b.Verdict.text()))
			page.AddTable(console.Left("  RULE", "HOLDS", "BECAUSE"), readingRows(b.Rules))
		}
	case run:
		page.Lines = append(page.Lines, "")
		rows, differ := boundaryRows(t.Boundaries)
		page.AddTable(console.Left("ENTRY", "AT", "AGENT", "TURN", "ON", "WITH THIS POLICY", "RECORDED"), rows)
		page.AddLine(fmt.Sprintf("%d of %s differ", differ, console.CountOf(len(rows), "decision")))
	default:
		page.Lines = append(page.Lines, "")
		addRules(page, t.Policy.Rules)
	}
	return cs.Console.PrintLines(page.Lines)
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (v testedVerdict) text() string {
	if !v.Vetoed {
		return "allowed"
	}
	return "vetoed by " + term.CleanLine(v.Rule)
}

func readingRows(list []supervisor.RuleReading) (rows [][]string) {
	for _, r := range list {
		holds := "no"
		if r.Holds {
			holds = "yes"
		}
		rows = append(rows, []string{"  " + term.CleanLine(r.Rule), holds, term.CleanLine(r.Why)})
	}
	return rows
}

func boundaryRows(list []testedBoundary) (rows [][]string, differ int) {
	for _, b := range list {
		if b.Recorded.Vetoed != b.Verdict.Vetoed {
			differ++
		}
		rows = append(rows, []string{fmt.Sprint(b.Entry), term.FormatDuration(time.Duration(b.AtMS) * time.Millisecond), term.CleanLine(b.Agent),
			fmt.Sprint(b.Turn), b.On, b.Verdict.text(), b.Recorded.text()})
	}
	return rows, differ
}
