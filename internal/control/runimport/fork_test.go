package runimport

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// forkedRun forks a recorded run as a node does, without a store.
func forkedRun(f runfile.File, r client.RunRequest, p forkPoint) (checkedRestore, error) {
	now := time.UnixMilli(newestStamp(f.Entries)).Add(time.Hour)
	c := &runFileCheck{&Config{Redact: bytes.Clone, CheckRestored: func(supervisor.Opened, client.RunRequest) error { return nil },
		CheckRestoredChange: func(supervisor.Opened, client.RunRequest, RecordedChange) error { return nil }}}
	entries, err := makeFork(f.Entries, r, p, now, nil)
	if err != nil {
		return checkedRestore{}, err
	}
	return c.judgeLogs(runfile.File{Header: runfile.Header{Run: r.RunID, Dump: true}, Entries: entries}, client.RunRequest{})
}

func recordedFiles(t *testing.T) map[string]runfile.File {
	t.Helper()
	paths, err := filepath.Glob("../../replay/testdata/runs/*/*.jsonl")
	if err != nil || len(paths) < 18 {
		t.Fatal(err, len(paths))
	}
	files := map[string]runfile.File{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if files[path], err = runfile.Read(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestRecordedRunsAreForkedAtEachTurn: at each turn of each agent the copied logs keep the rules of the logs, this
// version decides the same from them, and no entry names the original.
//
//behaviour:shows D6
func TestRecordedRunsAreForkedAtEachTurn(t *testing.T) {
	t.Parallel()
	forks, prompted := 0, 0
	for name, f := range recordedFiles(t) {
		var agents []string
		dir := ""
		for _, m := range f.Entries {
			if id := m.To.Agent(); id != mailbox.Super && !slices.Contains(agents, id) {
				agents = append(agents, id)
			}
		}
		if o, err := firstOpened(f); err == nil && o.Workspace != "" {
			dir = t.TempDir()
		}
		for _, id := range agents {
			for turn := 0; ; turn++ {
				p := forkPoint{f.Header.Run, id, strconv.Itoa(turn)}
				checked, err := forkedRun(f, client.RunRequest{RunID: "other", Dir: dir}, p)
				if err != nil && strings.Contains(err.Error(), "no complete turn") {
					break
				}
				if err != nil {
					t.Errorf("%s: %s: %v", name, p, err)
					continue
				}
				forks++
				before, after := checked.replayed.Super.Pool, checked.replayed.Super.Run
				if over := before.Spent.Tokens + before.Held.Tokens; before.Limit.Tokens > 0 && over > before.Limit.Tokens || after.Run != "other" || after.Fork != p.String() || after.Workspace != dir {
					t.Errorf("%s: %s: %d tokens of %d, %+v", name, p, over, before.Limit.Tokens, after)
				}
				if _, err := forkedRun(f, client.RunRequest{RunID: "other", Dir: dir, Prompt: "Look again."}, p); err != nil {
					t.Errorf("%s: %s with a prompt: %v", name, p, err)
				} else {
					prompted++
				}
			}
		}
	}
	if forks < 100 || prompted != forks {
		t.Errorf("%d forks, %d with a prompt: the test shows little", forks, prompted)
	}
}

// TestResultIsChangedAtThePoint: with Instead, the call of the point has another result in the fork, and the agent goes on
// from there.
//
//behaviour:shows D6
func TestResultIsChangedAtThePoint(t *testing.T) {
	t.Parallel()
	changed := 0
	for name, f := range recordedFiles(t) {
		dir := ""
		if o, err := firstOpened(f); err == nil && o.Workspace != "" {
			dir = t.TempDir()
		}
		for _, call := range []string{"1-0", "1-1", "2-0", "2-1", "3-0"} {
			checked, err := forkedRun(f, client.RunRequest{RunID: "other", Dir: dir, Instead: "the moon is full"}, forkPoint{f.Header.Run, "root", call})
			if err != nil {
				if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Hint == "" {
					t.Errorf("%s: %s: %v", name, call, err)
				}
				continue
			}
			s := checked.replayed.Agents["root"]
			if text := resultsOf(s); !strings.Contains(text, "the moon is full") {
				t.Errorf("%s: %s: %q", name, call, text)
			}
			changed++
		}
	}
	if changed < 5 {
		t.Errorf("%d results are changed: the test shows little", changed)
	}
}

// resultsOf are all results of tools that an agent knows.
func resultsOf(s agent.State) string {
	var all strings.Builder
	for _, m := range s.History {
		for _, r := range m.Results {
			all.WriteString(r.Text)
		}
	}
	for _, c := range s.Calls {
		all.WriteString(c.Result.Text)
	}
	return all.String()
}

// TestTheAnswerOfAForkIsMarkedAsGiven: the question that a fork answers is open for the supervisor until the agent has read
// its log. Nobody is asked it again meanwhile; a question without an answer stays open.
func TestTheAnswerOfAForkIsMarkedAsGiven(t *testing.T) {
	t.Parallel()
	f := recordedFiles(t)["../../replay/testdata/runs/0.1.0/parked_and_answered.jsonl"]
	answered, err := forkedRun(f, client.RunRequest{RunID: "other", Instead: "the blue one"}, forkPoint{f.Header.Run, "root", "1-0.1"})
	if err != nil {
		t.Fatal(err)
	}
	summary := answered.replayed.Super.Summary(true)
	marks := answered.answeredQuestions()
	if len(summary.Questions) != 1 || len(marks) != 1 || !marks[0].Names(summary.Questions[0]) || !marks[0].Logged {
		t.Errorf("%+v: %+v", summary.Questions, marks)
	}
	unanswered := answered
	if unanswered.replayed, err = replayWhole(f.Entries, f.Header.Run); err != nil {
		t.Fatal(err)
	}
	if marks := unanswered.answeredQuestions(); len(marks) != 0 {
		t.Errorf("no one has answered: %+v", marks)
	}
}
