package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/safefile"
)

// ParallelDefault is how many cases run at once: they mostly wait.
const ParallelDefault = 8

// Run runs the cases, several at once, and reports in their order.
func Run(ctx context.Context, cases []Case, parallel int) Report {
	began := time.Now()
	verdicts := make([]Verdict, len(cases))
	runParallel(len(cases), parallel, func(i int) { verdicts[i] = cases[i].Run(ctx) })
	return buildReport(verdicts, time.Since(began))
}

// runParallel calls a function for each of n cases, several at once.
func runParallel(n, parallel int, run func(i int)) {
	if parallel <= 0 {
		parallel = ParallelDefault
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			run(i)
		})
	}
	all.Wait()
}

// Run runs one case and judges it.
func (c *Case) Run(ctx context.Context) Verdict {
	v, _ := c.judge(ctx)
	return v
}

// judge runs the case and returns the record, too, by which it is judged.
func (c *Case) judge(ctx context.Context) (Verdict, caseRecord) {
	v := Verdict{Case: c.ID, File: c.Path, About: c.About, Expected: c.Expected.StopReason}
	t, err := c.runToEnd(ctx)
	if t == nil {
		v.Differences = []string{err.Error()}
		return v, caseRecord{}
	}
	r, more := t.collectRecord()
	v.StopReason, v.Parked, v.Turns, v.ToolRuns = r.result.Reason, r.parked, r.result.Turns, r.runs
	v.Tokens, v.CostUSD, v.CostKnown = r.result.Budget.Used, r.result.CostUSD, r.result.CostKnown
	v.LatencyMS, v.Replayed = t.duration.Milliseconds(), r.replay == nil
	v.countProposals(r)
	v.Differences = c.Expected.listDifferences(r)
	v.compareRecorded(c.Recorded, r)
	for _, err := range []error{err, more} {
		if err != nil {
			v.Differences = append([]string{err.Error()}, v.Differences...)
		}
	}
	v.Pass = len(v.Differences) == 0
	return v, r
}

// collectRecord gathers the data for the judgement. The events are those of the logs: all of them,
// in the order of the entries.
func (t *caseRun) collectRecord() (caseRecord, error) {
	log, err := t.readLog()
	if err != nil {
		return caseRecord{replay: err}, fmt.Errorf("eval: %w", err)
	}
	f := replayLogs(log)
	r := caseRecord{result: f.Result, parked: t.parked, events: f.Events, prompts: t.models.sentPrompts(), replay: compareReport(f, t.reported, t.published), verification: verifyLogs(log, t.claimEnd())}
	for _, e := range t.published {
		if e.Seq == 0 { // a delta: it is in no log
			r.events = append(r.events, e)
		}
	}
	r.runsByTool, r.overcalledTools, r.runs = t.mocks.countRuns()
	for i, d := range t.c.Interventions {
		if !t.fired[i] {
			r.unfired = append(r.unfired, t.listUnseen(d)...)
		}
	}
	return r, nil
}

// LoadCases reads the cases of files and of directories, in which every .yaml, .yml
// and .json file is one of cases.
func LoadCases(paths ...string) ([]Case, error) {
	var cases []Case
	seen := map[string]string{}
	for _, path := range paths {
		files, err := caseFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := readCaseFile(file)
			if err != nil {
				return nil, pathError(file, err)
			}
			more, err := ParseCases(file, data)
			if err != nil {
				return nil, err
			}
			for _, c := range more {
				if at, twice := seen[c.ID]; twice {
					return nil, &BadFile{Path: c.Path, Text: fmt.Sprintf("case %s is in %s as well", c.ID, at), Remedy: "give each case an id of its own"}
				}
				seen[c.ID] = c.Path
			}
			cases = append(cases, more...)
		}
	}
	return cases, nil
}

func readCaseFile(file string) ([]byte, error) {
	return safefile.Read(file, FileBytesMax)
}

var caseExtensions = []string{".yaml", ".yml", ".json"}

// caseFiles are the files of cases at a path.
func caseFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var list []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(caseExtensions, filepath.Ext(p)) {
			list = append(list, p)
		}
		return err
	})
	if err != nil {
		return nil, pathError(path, err)
	}
	if len(list) == 0 {
		return nil, &BadFile{Path: path, Text: "no files of cases here", Remedy: "cases are in files that end in .yaml, .yml or .json"}
	}
	return list, nil
}

func pathError(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &BadFile{Path: path, Text: strings.TrimPrefix(err.Error(), path+": "), Remedy: "name a file of cases, or a directory of them"}
}
