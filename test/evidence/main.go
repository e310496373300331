// Command evidence checks that the evidence in a report.json is true.
// It shares no code with the program that writes such reports, so that it
// does not repeat a mistake of that program.
//
//	go run ./test/evidence --dir DIR report.json
//
// For each evidence with a path and a line: the file is inside DIR and that
// line is exactly the text; where the text holds [masked], the parts around it
// occur in the line in the same order. For each evidence with a commit: git
// knows the commit and, if a path is given too, the commit touches that path.
// It exits 1 if any evidence is false, a finding has none, or there is none at all.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

// Exit codes.
const (
	exitTrue  = 0
	exitFalse = 1
	exitUsage = 2
)

// reportVersion is the only form of report.json that this program can judge.
const reportVersion = 1

type report struct {
	V        int       `json:"v"`
	Findings []finding `json:"findings"`
	Limits   []string  `json:"limits"`
}

type finding struct {
	Kind     string     `json:"kind"`
	Title    string     `json:"title"`
	Evidence []evidence `json:"evidence"`
}

type evidence struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Text   string `json:"text"`
	Commit string `json:"commit"`
}

func (e evidence) String() string {
	if e.Commit != "" {
		return "commit " + e.Commit + " " + e.Path
	}
	return fmt.Sprintf("%s:%d", e.Path, e.Line)
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("evidence", flag.ContinueOnError)
	flags.SetOutput(errs)
	dir := flags.String("dir", ".", "the directory that the report is about")
	flags.Usage = func() {
		fmt.Fprintln(errs, "usage: evidence --dir DIR report.json")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return exitUsage
	}
	r, err := loadReport(flags.Arg(0))
	if err != nil {
		fmt.Fprintln(errs, "error:", err)
		return exitUsage
	}
	j, err := newChecker(*dir)
	if err != nil {
		fmt.Fprintln(errs, "error:", err)
		return exitUsage
	}
	defer j.close()
	return checkAll(j, r, out)
}

func loadReport(name string) (report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return report{}, err
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return report{}, fmt.Errorf("%s: %w", name, err)
	}
	if r.V != reportVersion {
		return report{}, fmt.Errorf("%s: version %d is not %d", name, r.V, reportVersion)
	}
	return r, nil
}

// checkAll prints each failure and the counts.
func checkAll(j *checker, r report, out io.Writer) int {
	lines, commits, failed, bare := 0, 0, 0, 0
	for i, f := range r.Findings {
		if len(f.Evidence) == 0 {
			bare++
			fmt.Fprintf(out, "FALSE finding %d (%s): no evidence: %s\n", i+1, f.Kind, f.Title)
		}
		for _, e := range f.Evidence {
			if e.Commit != "" {
				commits++
			} else {
				lines++
			}
			if err := j.checkEvidence(e); err != nil {
				failed++
				fmt.Fprintf(out, "FALSE finding %d (%s): %s: %v\n", i+1, f.Kind, e, err)
			}
		}
	}
	total := lines + commits
	fmt.Fprintf(out, "%d findings, %d evidence (%d lines, %d commits): %d true, %d false, %d findings without evidence\n",
		len(r.Findings), total, lines, commits, total-failed, failed, bare)
	if failed > 0 || bare > 0 || total == 0 {
		return exitFalse
	}
	return exitTrue
}
