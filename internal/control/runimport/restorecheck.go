package runimport

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/refuse"
	recorded "github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Anybody may have written a run file. So a node restores a run only if
//   - its first entry gives it no right that a new run would not get here (ImportConfig.CheckRestored);
//   - the logs keep the rules of the logs, and this version decides the same from them: then the file can only
//     contain what the world has said, and not other tasks, budgets or ends;
//   - the restoring user takes the responsibility for approvals that the file says people or hooks have given.

const (
	dumpHint = "`troupe dump RUN` writes a file that can be restored"
	// stampAheadMax is how far the clock that stamped an entry may be ahead of the clock of this node.
	stampAheadMax = 10 * time.Minute
	nanosMax      = int64(time.Millisecond)
)

// runFileCheck refuses the files, and forks, that must not become runs of this node.
type runFileCheck struct{ cfg *Config }

// checkedRestore is a run file that may be restored.
type checkedRestore struct {
	run      string
	entries  []mailbox.Message // in the order of their stamps, with those of the answers
	logs     map[mailbox.Address][]mailbox.Message
	replayed *recorded.Run
	answered []runindex.AnsweredQuestion
}

func (c checkedRestore) isOver() bool { return c.replayed.Super.Phase == supervisor.Over }

// state is the state of the run before a node continues it.
func (c checkedRestore) state() client.RunState {
	switch {
	case c.isOver():
		return client.RunFinished
	case c.replayed.Super.IsParked():
		return client.RunParked
	}
	return client.RunLive
}

// checkRestore refuses a file that must not be restored here.
func (c *runFileCheck) checkRestore(f runfile.File, r client.RestoreRequest, now time.Time) (checked checkedRestore, err error) {
	if err := checkRestoredHeader(f, r); err != nil {
		return checked, err
	}
	if err := checkStamps(f.Entries, now); err != nil {
		return checked, err
	}
	if f, err = c.moveRestored(f, r.Named, now); err != nil {
		return checked, err
	}
	checked, err = c.judgeLogs(f, r.Named)
	if err != nil {
		return checked, err
	}
	if err := checked.checkOriginal(f, r); err != nil {
		return checked, err
	}
	answers, err := checked.addAnswers(c.cfg.Answers, r, now)
	if err != nil {
		return checked, err
	}
	checked.addEntries(append(sortImported(f.Entries), answers...))
	return checked, nil
}

// addEntries notes the entries that are imported, in their order.
func (c *checkedRestore) addEntries(entries []mailbox.Message) {
	c.entries = entries
	for _, m := range entries {
		c.logs[m.To] = append(c.logs[m.To], m)
	}
}

// judgeLogs refuses logs that do not keep the rules, that this version does not understand in the same way, or that
// give a run more rights than a new one would get.
func (c *runFileCheck) judgeLogs(f runfile.File, named client.RunRequest) (checked checkedRestore, err error) {
	opened, err := firstOpened(f)
	if err != nil {
		return checked, err
	}
	if err := c.cfg.CheckRestored(opened, named); err != nil {
		return checked, err
	}
	if err := errors.Join(c.checkChanges(opened, named, f.Entries), c.checkSecrets(f)); err != nil {
		return checked, err
	}
	if report := verify.Logs(f.Entries); len(report.Findings) > 0 {
		return checked, badFile("`troupe verify FILE` shows all that is wrong", "the logs do not keep the rules: %s", report.Findings[0])
	}
	checked = checkedRestore{run: f.Header.Run, logs: map[mailbox.Address][]mailbox.Message{}, replayed: recorded.Logs(f.Entries, recorded.Options{})}
	if err := errors.Join(checked.replayed.Err(), checked.replayed.ReadErr); err != nil {
		return checked, badFile("`troupe replay FILE --assert` shows the place; restore it with the version that wrote it: "+f.Header.WrittenBy, "this version does not come to the state of the file: %v", err)
	}
	if n := checked.replayed.Unchecked; n > 0 {
		return checked, badFile("dump the run again; a run that has lost the end of a log is not restored",
			"a log of the file has lost its end: other logs know %d messages of entries that it lacks, and the run would do again what they record", n)
	}
	return checked, c.checkModels(opened, named, checked.replayed)
}

func badFile(hint, format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: bounds.TruncateText(fmt.Sprintf(format, args...), bounds.ErrorBytesMax), Hint: hint}
}

func checkRestoredHeader(f runfile.File, r client.RestoreRequest) error {
	switch h := f.Header; {
	case h.Redacted:
		return badFile(dumpHint+", without --redact",
			"the file of %s is redacted: it has no content, so nothing can continue from it", h.Run)
	case !h.Dump:
		return badFile(dumpHint, "the file of %s is not a consistent dump: its logs were read at different times", h.Run)
	case h.Run != r.RunID:
		return badFile("send the id of the run in the file", "the file has the run %s, the request names %s", h.Run, r.RunID)
	case len(f.Entries) > RestoreEntriesMax:
		return badFile("`troupe replay FILE` shows its end", "the file has %d entries, at most %d are restored", len(f.Entries), RestoreEntriesMax)
	}
	return nil
}

// checkStamps refuses stamps of a time to come: no timer would fire before it.
func checkStamps(entries []mailbox.Message, now time.Time) error {
	latest := now.Add(stampAheadMax).UnixMilli()
	for _, m := range entries {
		if m.At > latest || m.Nanos >= nanosMax {
			return badFile("set the clock of this machine", "an entry of %s is stamped %s, which is to come", m.To, time.UnixMilli(min(m.At, 1<<52)).UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// firstOpened returns what the run in the file was opened with.
func firstOpened(f runfile.File) (o supervisor.Opened, err error) {
	for _, m := range f.Entries {
		if m.To != mailbox.At(f.Header.Run, mailbox.Super) {
			continue
		}
		e, err := mailbox.Decode(m.Data)
		if err == nil && (e.From != "" || len(e.Items) != 1 || e.Items[0].Kind != o.Kind()) {
			break
		}
		if err == nil {
			err = mailbox.Unmarshal(e.Items[0].Body, &o)
		}
		if err == nil && o.Run != f.Header.Run {
			return o, badFile(dumpHint,
				"the log of the supervisor opens the run %.80q, the file is that of %s", o.Run, f.Header.Run)
		}
		if err != nil {
			return o, badFile(dumpHint, "the first entry of the supervisor's log cannot be read: %v", err)
		}
		return o, nil
	}
	return o, badFile(dumpHint, "the log of the supervisor does not begin with a run")
}

// checkOriginal refuses a run that its original, or another run, may still depend on, and approvals that were not
// given here.
func (c checkedRestore) checkOriginal(f runfile.File, r client.RestoreRequest) error {
	switch {
	case c.isOver():
		return nil
	case !r.OriginalStopped:
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%s had not ended when it was dumped (%s): if the original works too, both repeat each other's side effects", c.run, f.Header.State),
			Hint: "make sure that no node will continue the original, then add --original-stopped"}
	}
	if n := countApprovals(f.Entries) + countPassedCalls(c.replayed.Agents); n > 0 && !r.AcceptApprovals {
		return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("the file says that people or hooks have given %d approvals; whoever wrote it may have added them", n),
			Hint: "if you trust where the file comes from, add --accept-approvals"}
	}
	return nil
}

// checkSecrets refuses texts that this node masks wherever it stores anything. Masked entries would have other hashes,
// and a masked blob another name.
func (c *runFileCheck) checkSecrets(f runfile.File) error {
	refused := func(where string) error {
		return badFile("restore it with a node that does not know the secret",
			"%s holds a secret of this node, which must not be stored", where)
	}
	for _, m := range f.Entries {
		if !bytes.Equal(c.cfg.Redact(m.Data), m.Data) {
			return refused("an entry of " + string(m.To))
		}
	}
	for ref, data := range f.Blobs {
		if !bytes.Equal(c.cfg.Redact(data), data) {
			return refused("the blob " + ref)
		}
	}
	return nil
}

// countApprovals counts the approvals that people have given by requests.
func countApprovals(entries []mailbox.Message) (n int) {
	for _, m := range entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil || e.From != "" {
			continue
		}
		for _, item := range e.Items {
			var f agent.Answered
			if item.Kind == f.Kind() && mailbox.Unmarshal(item.Body, &f) == nil && f.Decision == spec.Approve {
				n++
			}
		}
	}
	return n
}

// countPassedCalls counts the calls without a result that hooks alone have let pass. A node of the name that the file
// gives does not ask its own hooks about such a call again, and runs it.
func countPassedCalls(agents map[spec.ID]agent.State) (n int) {
	for _, s := range agents {
		for _, c := range s.Calls {
			if c.Stage != agent.Ended && c.Gate.Passed && !c.Gate.Permit.Asked {
				n++
			}
		}
	}
	return n
}

// addAnswers makes the entries of answers that are given in advance, and notes their questions. The id of an answer
// depends on its question and on who decides what, so a restore that is repeated makes the same entries.
func (c *checkedRestore) addAnswers(answers Answers, r client.RestoreRequest, now time.Time) (entries []mailbox.Message, err error) {
	if len(r.Answers) == 0 {
		return nil, nil
	}
	summary := c.replayed.Super.Summary(true)
	for _, a := range r.Answers {
		a.RunID, a.Request = c.run, "restore"
		q, ok, err := answers.Find(c.run, summary, a)
		if err != nil {
			return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("several agents ask %.80q in the file of %s", a.Query, c.run), Hint: "name the agent, as in AGENT/QUERY; " + describeOpen(summary)}
		}
		if !ok || c.isOver() {
			return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("no question %.80q is open in the file of %s", a.Query, c.run), Hint: describeOpen(summary)}
		}
		if !slices.Contains(bounds.Decisions, a.Decision) {
			return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("decision %q is invalid", a.Decision), Hint: "use " + refuse.JoinWords(bounds.Decisions)}
		}
		if err := answers.Check(a, q, now); err != nil {
			return nil, err
		}
		fact := answers.Fact(a, q)
		body, err := mailbox.Marshal(fact)
		if err != nil {
			return nil, fmt.Errorf("control: restore: %w", err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: answers.ID(a), Kind: fact.Kind(), Body: body}}})
		if err != nil {
			return nil, fmt.Errorf("control: restore: %w", err)
		}
		if fact.Request == "" { // else a second person has to approve
			c.answered = append(c.answered, runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: a.Request, AtMS: now.UnixMilli(), Logged: true})
		}
		entries = append(entries, mailbox.Message{To: mailbox.At(c.run, string(q.Agent)).In(q.Pool), At: now.UnixMilli(), Data: data})
	}
	return entries, nil
}

// answeredQuestions are the questions that are open for the supervisor and have an answer: one given in advance, or one
// in the log of the agent, which had not told the supervisor that it goes on. A row remembers AnsweredMax of them.
func (c *checkedRestore) answeredQuestions() []runindex.AnsweredQuestion {
	answered := slices.Clone(c.answered)
	for _, q := range c.replayed.Super.Summary(true).Questions {
		s, ok := c.replayed.Agents[q.Agent]
		isOpen := !ok || s.Phase == agent.Waiting && s.Suspended.Question.Query == q.Query
		if isOpen || slices.ContainsFunc(answered, func(a runindex.AnsweredQuestion) bool { return a.Names(q) }) || len(answered) >= runindex.AnsweredMax {
			continue
		}
		answered = append(answered, runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: "logged", Logged: true})
	}
	return answered
}

// describeOpen names the questions that are open in a file.
func describeOpen(s supervisor.Summary) string {
	var open []string
	for _, q := range s.Questions {
		open = append(open, fmt.Sprintf("%s of %s", q.Query, q.Agent))
	}
	if len(open) == 0 {
		return "no question is open in it"
	}
	return "open are: " + strings.Join(open, ", ")
}
