package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// The backlog is a list of tasks that the agents of a run share. The log of the run orders their operations: of two
// claims of one task, the first entry wins. A claim has a lease. Each message of the agent renews its leases, and its
// end or handoff opens its tasks again. A task whose lease has expired stays with its agent until another one claims
// it, so a late result is lost only if another agent has claimed the task.

// Limits of a backlog. How many tasks it may have and how long a lease lasts are limits of the run.
const backlogClaimsMax = 8 // tasks that one agent may have claimed at a time

// BacklogSet adds a task of a person to the backlog of a live run, or drops one. One of Title and Drop is set.
type BacklogSet struct {
	Request string `msgpack:"r"` // that names the new task: see TaskOfRequest
	Title   string `msgpack:"n,omitempty"`
	Text    string `msgpack:"t,omitempty"`
	Drop    string `msgpack:"d,omitempty"` // id
	By      string `msgpack:"b,omitempty"`
}

// Kind is the fact's word in logs.
func (BacklogSet) Kind() string { return "backlog_set" }

// backlog is a value: tasks is cloned before it is changed.
type backlog struct {
	tasks []backlogTask // in the order of their ids; the first is t1
	since int64         // leases count from here at the earliest: before, no process had the run
}

// taskState is what has become of a task. The words are in events.
type taskState string

const (
	taskOpen    taskState = "open"
	taskClaimed taskState = "claimed"
	taskDone    taskState = "done"
	taskDropped taskState = "dropped"
)

// backlogTask is one task. cause is the call of the agent that posted it, or the request of a client.
type backlogTask struct {
	title, text string
	poster      spec.ID // "": a person
	by          string  // the person
	cause       string
	state       taskState
	holder      spec.ID // has claimed it, or has done it
	result      string
	tainted     *spec.Taint // text from outside that the author of its texts had read
}

func taskID(i int) string { return "t" + strconv.Itoa(i+1) }

// find returns the index of a task, or -1.
func (b backlog) find(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "t"))
	if err != nil || n < 1 || n > len(b.tasks) || taskID(n-1) != id {
		return -1
	}
	return n - 1
}

// put returns the backlog with another state of a task.
func (b backlog) put(i int, t backlogTask) backlog {
	b.tasks = slices.Clone(b.tasks)
	b.tasks[i] = t
	return b
}

// countIn counts the tasks in a state.
func (b backlog) countIn(state taskState) (n int) {
	for _, t := range b.tasks {
		if t.state == state {
			n++
		}
	}
	return n
}

// heldBy lists the ids of the tasks that an agent has claimed.
func (b backlog) heldBy(id spec.ID) (list []string) {
	for i, t := range b.tasks {
		if t.state == taskClaimed && t.holder == id {
			list = append(list, taskID(i))
		}
	}
	return list
}

// leaseEnd is when the leases of an agent end.
func leaseEnd(s State, holder spec.ID) int64 {
	m, _ := s.Member(holder)
	return max(m.heardMS, s.backlog.since) + cmp.Or(s.Run.Limits.LeaseMS, spec.LeaseDefaultMS)
}

// isTaken reports whether a task is claimed and its lease goes on.
func isTaken(s State, t backlogTask) bool {
	return t.state == taskClaimed && leaseEnd(s, t.holder) > s.Now
}

// isFree reports whether a member may claim a task that it does not have.
func isFree(s State, m Member, t backlogTask) bool {
	return t.state == taskOpen || t.state == taskClaimed && t.holder != m.ID && !isTaken(s, t) //mutant:lease-ignored
}

// handleBacklog answers a call of one of the tools of the backlog.
func handleBacklog(s State, from spec.ID, f agent.Backlog) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	s, text, why := stepBacklog(s, m, f)
	return s, []Effect{Tell{To: from, Fact: agent.Returned{Call: f.Call, Error: why != "", Text: text + why, Tainted: backlogTaint(s, m, f)}}}
}

// stepBacklog returns the answer to a call, or why it changed nothing.
func stepBacklog(s State, m Member, f agent.Backlog) (next State, text, why string) {
	begins := f.Do == "post" || f.Do == "claim"
	switch problem := f.Problem(); {
	case !slices.Contains(m.Rights, "backlog_"+f.Do):
		return s, "", fmt.Sprintf("this agent may not use backlog_%.16s", f.Do)
	case problem != "":
		return s, "", problem
	case begins && (s.Cancel != nil || s.Phase != Live || m.Stopping):
		return s, "", "the backlog is unchanged: " + whyEnding(s, m)
	case f.Do == "post":
		return postByAgent(s, m, f)
	}
	if f.Task == "" && (f.Do == "done" || f.Do == "return") {
		own := s.backlog.heldBy(m.ID)
		if len(own) != 1 {
			return s, "", fmt.Sprintf("name the task: you have %s", cmp.Or(strings.Join(own, ", "), "none"))
		}
		f.Task = own[0]
	}
	i := s.backlog.find(f.Task)
	if i < 0 && f.Task != "" {
		return s, "", fmt.Sprintf("the backlog has no task %q; backlog_list shows the ids", f.Task)
	}
	switch f.Do {
	case "claim":
		return claimTask(s, m, i)
	case "done":
		return endTask(s, m, i, f)
	case "return":
		return returnTask(s, m, i, f.Text)
	}
	if i < 0 {
		return s, describeBacklog(s), ""
	}
	return s, describeState(s, i) + "\n" + taskText(s, i), ""
}

// postByAgent adds a task of an agent. A call that was answered before gets the same answer again.
func postByAgent(s State, m Member, f agent.Backlog) (next State, text, why string) {
	i := slices.IndexFunc(s.backlog.tasks, func(t backlogTask) bool { return t.poster == m.ID && t.cause == f.Call })
	if i < 0 {
		if why := whyNoRoom(s); why != "" {
			return s, "", why
		}
		i = len(s.backlog.tasks)
		s = addTask(s, backlogTask{title: f.Title, text: f.Text, poster: m.ID, cause: f.Call, tainted: f.Tainted})
	}
	return s, fmt.Sprintf("posted as %s", taskID(i)), ""
}

// whyNoRoom says why a run may have no further task; "": it may.
func whyNoRoom(s State) string {
	if most := min(cmp.Or(s.Run.Limits.Backlog, spec.BacklogDefault), spec.BacklogMost); len(s.backlog.tasks) >= most {
		return fmt.Sprintf("not posted: the backlog of a run may have %d tasks in all (max_backlog)", most)
	}
	return ""
}

func addTask(s State, t backlogTask) State {
	t.state = taskOpen
	s.backlog.tasks = append(slices.Clip(s.backlog.tasks), t)
	return publishTask(s, event.KindBacklogPosted, len(s.backlog.tasks)-1, "")
}

// claimTask gives a member a task: number i, or with -1 the first that is free.
func claimTask(s State, m Member, i int) (next State, text, why string) {
	own := s.backlog.heldBy(m.ID)
	if i < 0 {
		i = slices.IndexFunc(s.backlog.tasks, func(t backlogTask) bool { return isFree(s, m, t) })
	}
	if i < 0 {
		return s, "no task is open: " + countTasks(s), ""
	}
	switch t := s.backlog.tasks[i]; {
	case t.state == taskClaimed && t.holder == m.ID: // each message renews its lease
		return s, taskID(i) + " is yours already", ""
	case !isFree(s, m, t):
		return s, "", "not claimed: " + describeState(s, i)
	case len(own) >= backlogClaimsMax:
		return s, "", fmt.Sprintf("not claimed: you have %s, and an agent may have %d tasks at a time; report one as done, or return it", strings.Join(own, ", "), backlogClaimsMax)
	case t.state == taskClaimed:
		s = releaseTask(s, i, "its lease has ended")
	}
	t := s.backlog.tasks[i]
	t.state, t.holder = taskClaimed, m.ID
	s.backlog = s.backlog.put(i, t) //mutant:claim-given-twice
	s = publishTask(s, event.KindBacklogClaimed, i, "")
	return s, fmt.Sprintf("%s is yours while you work on it. Report it with backlog_done, or give it back with backlog_return.\n%s", taskID(i), taskText(s, i)), ""
}

// endTask records that a member has done a task that it has claimed.
func endTask(s State, m Member, i int, f agent.Backlog) (next State, text, why string) {
	t := s.backlog.tasks[i]
	switch {
	case t.state == taskDone && t.holder == m.ID:
		return s, taskID(i) + " is done already", ""
	case t.state != taskClaimed || t.holder != m.ID: //mutant:done-without-a-claim
		return s, "", fmt.Sprintf("not recorded, because you do not have the task: %s", describeState(s, i))
	}
	t.state, t.result, t.tainted = taskDone, f.Text, cmp.Or(f.Tainted, t.tainted)
	s.backlog = s.backlog.put(i, t)
	return publishTask(s, event.KindBacklogDone, i, ""), taskID(i) + " is done: " + countTasks(s), ""
}

// returnTask opens a task again that a member has claimed.
func returnTask(s State, m Member, i int, reason string) (next State, text, why string) {
	if t := s.backlog.tasks[i]; t.state != taskClaimed || t.holder != m.ID {
		return s, "", fmt.Sprintf("not returned, because you do not have the task: %s", describeState(s, i))
	}
	return releaseTask(s, i, reason), taskID(i) + " is open again", ""
}

// releaseTask opens a task that is claimed.
func releaseTask(s State, i int, why string) State {
	s = publishTask(s, event.KindBacklogReturned, i, why)
	t := s.backlog.tasks[i]
	t.state, t.holder = taskOpen, ""
	s.backlog = s.backlog.put(i, t)
	return s
}

// releaseTasks opens all tasks that a member has claimed.
func releaseTasks(s State, m Member, why string) State {
	for i, t := range s.backlog.tasks {
		if t.state == taskClaimed && t.holder == m.ID {
			s = releaseTask(s, i, why)
		}
	}
	return s
}

// CheckBacklog says why a person cannot change the backlog in this way; "": they can.
func CheckBacklog(s State, f BacklogSet) (why string) {
	i := s.backlog.find(f.Drop)
	switch problem := (agent.Backlog{Do: "post", Title: cmp.Or(f.Title, f.Drop), Text: f.Text}).Problem(); {
	case !slices.ContainsFunc(s.Run.Tools, func(t model.ToolSpec) bool { return t.Name == "backlog_claim" }):
		return "no agent of this run can claim tasks: none has backlog_claim among its `tools`"
	case s.Phase == "" || s.Phase == Queued:
		return "the run has not begun"
	case s.Cancel != nil || s.Phase != Live:
		return whyEnding(s, Member{})
	case problem != "":
		return problem
	case f.Drop == "":
		return whyNoRoom(s)
	case i < 0:
		return fmt.Sprintf("the backlog has no task %.32q", f.Drop)
	case s.backlog.tasks[i].state == taskDone, s.backlog.tasks[i].state == taskDropped:
		return describeState(s, i)
	}
	return ""
}

// handleBacklogSet carries out what a person wants of the backlog. The client was answered
// before, so a refusal is a warning.
func handleBacklogSet(s State, f BacklogSet) State {
	if why := CheckBacklog(s, f); why != "" {
		return s.publishEvent(event.KindWarningRaised, event.Warning{What: "the backlog was not changed", Why: why, Live: s.Live})
	}
	if f.Drop == "" {
		return addTask(s, backlogTask{title: f.Title, text: f.Text, by: cmp.Or(f.By, "a user"), cause: f.Request})
	}
	i := s.backlog.find(f.Drop)
	t := s.backlog.tasks[i]
	t.state = taskDropped
	s.backlog = s.backlog.put(i, t)
	return publishTask(s, event.KindBacklogDropped, i, "by "+cmp.Or(f.By, "a user"))
}

// TaskOfRequest is the id of the task that a request of a person has added; "": it has added none.
func TaskOfRequest(s State, request string) string {
	i := slices.IndexFunc(s.backlog.tasks, func(t backlogTask) bool { return t.poster == "" && t.cause == request })
	if i < 0 {
		return ""
	}
	return taskID(i)
}

// BacklogOf lists the tasks of a run at a time in Unix milliseconds. A task whose lease has ended by then is open.
func BacklogOf(s State, now int64) []event.BacklogTask {
	s.Now = max(s.Now, now)
	list := make([]event.BacklogTask, len(s.backlog.tasks))
	for i, t := range s.backlog.tasks {
		list[i] = viewTask(s, i)
		if list[i].Text, list[i].Result = t.text, t.result; t.state == taskClaimed && !isTaken(s, t) {
			list[i].State = string(taskOpen)
		}
	}
	return list
}

// viewTask is a task as observers see it, without its texts.
func viewTask(s State, i int) event.BacklogTask {
	t := s.backlog.tasks[i]
	m, _ := s.Member(t.holder)
	v := event.BacklogTask{Task: taskID(i), Title: t.title, State: string(t.state), PostedBy: t.poster, By: t.by, Agent: t.holder, Name: m.Name}
	if t.state == taskClaimed {
		v.UntilMS = leaseEnd(s, t.holder)
	}
	return v
}

// publishTask publishes what has happened to a task.
func publishTask(s State, kind event.Kind, i int, why string) State {
	v := viewTask(s, i)
	v.Why = why
	switch kind {
	case event.KindBacklogPosted:
		v.Text = s.backlog.tasks[i].text
	case event.KindBacklogDone:
		v.Result = s.backlog.tasks[i].result
	case event.KindBacklogReturned:
		v.State, v.UntilMS = string(taskOpen), 0
	}
	return s.publishEvent(kind, v)
}
