// Command mutants tests the simulator: it removes one rule after another from
// the program and lets the simulator play seeds until it notices.
//
//	go run ./test/sim/mutants                 all mutants
//	go run ./test/sim/mutants -only no-clip   one of them (a part of its name)
//	go run ./test/sim/mutants -seeds 20000    longer
//	go run ./test/sim/mutants -part 2/3       every third of them
//	go run ./test/sim/mutants -run TestEveryPrefix -only unanswered    noticed by the judge of what is on record
//
// Nothing in the tree is changed: mutants are overlays of patched copies in a
// temporary directory. Most of them share one test binary (switched.go); one
// that changes more than the bodies of functions has its own. The command
// fails when a mutant survives, when a patch no longer applies, and when the
// program without a mutation does not pass.
//
// # Sites
//
// A mutant finds its places by markers, not by the text of the code, so that it
// survives a rename. A marker is a directive comment at the end of a line:
//
//	if l.Phase != Alive { //mutant:acts-before-own-resumed
//
// It marks the outermost statement, case clause or function that begins on that
// line. A line has at most one marker; behind another comment it stands at the
// end of it. A marker has the name of the mutant that edits the line. Where a
// mutant edits several lines, or several mutants edit one line, the marker names
// the rule of the line, and the table names the marker.
//
// # Operations
//
// An edit applies an operation (operation.go) to the syntax tree at its site.
// Prefer those without a text, since no rename breaks them:
//
//   - Drop deletes a statement or a case clause.
//   - Never and Always decide a condition. Raise moves its bound.
//   - Without deletes one term of a condition, and Within applies another
//     operation to that term.
//   - Unchanged returns the receiver or the state as it came in.
//   - DropField leaves a field out of a literal.
//
// The others have a text, which should be short and name little of the program:
// AndAlso, ReplaceTerm, ReplaceInit, Replace, InsertBefore, InsertAfter.
//
// # Mutants that the simulator does not judge
//
// A rule of code that the simulator does not run, or whose entry point matters, names the Go tests that notice its
// mutant (noticedBy, entrypoints.go): each of them has to fail.
//
// # A new mutant
//
// Put the marker at the line that implements the rule, add the mutant to the
// table, and run the command with -only and its name. TestPatchesApply takes
// seconds: it fails on a mutant without its marker, on a marker without a
// mutant, on a marker that occurs twice, on a condition that has got or lost a
// term, and on a mutant that does not compile. After a rename it names the
// mutants whose texts need the new name.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Defaults of the flags.
const (
	seedsDefault = 8000
	jobsDefault  = 2
)

func main() {
	seeds := flag.Int("seeds", seedsDefault, "seeds to play before a mutant counts as a survivor")
	only := flag.String("only", "", "try only mutants with this in their name, or with one of several, separated by commas")
	jobs := flag.Int("jobs", jobsDefault, "mutants at once")
	verbose := flag.Bool("v", false, "say what each mutant did")
	part := flag.String("part", "1/1", "try the K-th of N parts, as K/N, without the program as it is: each takes its turn in CI, where the simulator itself has just run")
	judge := flag.String("run", "Test(Any)?Seeds$", "the test that has to notice")
	flag.Parse()
	root, err := moduleRoot()
	if err == nil {
		err = run(root, *judge, *seeds, *jobs, *only, *part, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(out))), err
}

func run(root, judge string, seeds, jobs int, only, part string, verbose bool) error {
	chosen, err := choose(only, part)
	if err != nil {
		return err
	}
	sites, err := findSites(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &trial{root: root, dir: dir, judge: judge, seeds: seeds, sites: sites, shared: newSwitched()}
	if err := t.buildShared(chosen); err != nil {
		return err
	}
	verdicts := make([]verdict, len(chosen))
	var wait sync.WaitGroup
	turns := make(chan struct{}, jobs)
	for i, m := range chosen {
		wait.Go(func() {
			turns <- struct{}{}
			verdicts[i] = t.try(m)
			fmt.Fprintln(os.Stderr, m.Name, verdicts[i].seed) // it takes long: show progress
			<-turns
		})
	}
	wait.Wait()
	return table(verdicts, verbose)
}

// choose returns the mutants whose names have one of some parts, separated by commas, or every N-th as K/N.
func choose(only, part string) ([]Mutant, error) {
	var k, parts int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &parts); err != nil || k < 1 || k > parts {
		return nil, fmt.Errorf("-part %q is not K/N", part)
	}
	var chosen []Mutant
	for i, m := range all() {
		named := slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(m.Name, part) })
		if named && (parts == 1 || i > 0 && i%parts == k-1) { // the first is the program as it is
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}

func all() []Mutant {
	return slices.Concat([]Mutant{{Name: "none", Rule: "nothing: the program as it is"}}, ofLives, ofLoop, ofManners, ofRun, ofGates, ofAllowances, ofKin, ofHandoffs, ofSteering, ofForks, ofContexts, ofSubtrees, ofBacklog, ofRest, ofActivations, ofLanes, ofPermissions, ofEntryPoints, blind)
}

// table prints what became of the mutants.
func table(verdicts []verdict, verbose bool) error {
	tried, bad := 0, 0
	fmt.Printf("%-32s %-10s %8s  %s\n", "mutant", "killed at", "seconds", "rule that it drops")
	for _, v := range verdicts {
		tried++
		end := v.seed
		switch {
		case v.err != nil:
			end, bad = "BROKEN", bad+1
		case v.mutant.Name == "none" && end != "":
			end, bad = "FAILS "+end, bad+1
		case v.mutant.Name == "none":
			end = "passes"
		case end == "":
			end, bad = "SURVIVES", bad+1
		}
		fmt.Printf("%-32s %-10s %8.1f  %s\n", v.mutant.Name, end, v.took.Seconds(), v.mutant.Rule)
		if v.err != nil {
			fmt.Printf("    %v\n", v.err)
		} else if verbose && v.why != "" {
			fmt.Printf("    %s\n", v.why)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d are not as they should be", bad, tried)
	}
	return nil
}
