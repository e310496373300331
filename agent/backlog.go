package agent

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Backlog is a call of one of the tools of the shared backlog. The supervisor keeps the
// backlog of its run, and answers.
type Backlog struct {
	Call string `msgpack:"c"`
	Do   string `msgpack:"d"`           // list, post, claim, done or return
	Task string `msgpack:"i,omitempty"` // id; "" in a claim: the first task that is open
	// Title and Text are those of a new task. Text is also the result of a task that is done, and why one is returned.
	Title string `msgpack:"n,omitempty"`
	Text  string `msgpack:"t,omitempty"`
	// Tainted is the text from outside that the sender has read; nil: none.
	Tainted *spec.Taint `msgpack:"ta,omitempty"`
}

// Kind is the message's word in the supervisor's log.
func (Backlog) Kind() string { return "backlog" }
func (Backlog) effect()      {}

// The tools of the backlog have one prefix, so that an agent file can name them all as backlog_*.
const (
	backlogPrefix = "backlog_"
	backlogList   = backlogPrefix + "list"
	backlogPost   = backlogPrefix + "post"
	backlogClaim  = backlogPrefix + "claim"
	backlogDone   = backlogPrefix + "done"
	backlogReturn = backlogPrefix + "return"
)

// Bounds of the texts of the backlog.
const (
	taskTitleBytesMax = 200
	taskTextBytesMax  = 8 << 10
	taskIDBytesMax    = 16
)

// BacklogTools describes the tools of the shared backlog, for code that offers them. They change
// nothing outside of the run.
func BacklogTools() []model.ToolSpec {
	text := map[string]string{"type": "string"}
	described := func(what string) map[string]string { return map[string]string{"type": "string", "description": what} }
	task := described("the task's id, such as t3")
	return []model.ToolSpec{
		{Name: backlogList, Class: model.Read, Schema: objectSchema(map[string]any{"task": task}),
			Description: "List the tasks of the backlog that all agents of this run share. With task: show that one in full."},
		{Name: backlogPost, Class: model.Read, Schema: objectSchema(map[string]any{"title": text, "text": described("all that an agent needs to do it")}, "title"),
			Description: "Post a task to the shared backlog. Any agent that may claim tasks can do it; do not wait for that in this turn."},
		{Name: backlogClaim, Class: model.Read, Schema: objectSchema(map[string]any{"task": task}),
			Description: "Claim a task of the shared backlog: without task, the first open one. Nobody else can claim it while you work on it."},
		{Name: backlogDone, Class: model.Read, Schema: objectSchema(map[string]any{"task": task, "result": text}, "result"),
			Description: "Report a task that you have claimed as done, with its result. Without task: the one that you have."},
		{Name: backlogReturn, Class: model.Read, Schema: objectSchema(map[string]any{"task": task, "why": text}, "why"),
			Description: "Give back a task that you have claimed and will not do. It is open for all agents again. Without task: the one that you have."},
	}
}

type backlogArgs struct{ Task, Title, Text, Result, Why string }

// newBacklog returns the message of a call of one of the tools of the backlog.
func newBacklog(id, tool, args string) Backlog {
	var a backlogArgs
	decodeArgs(args, &a)
	return Backlog{Call: id, Do: strings.TrimPrefix(tool, backlogPrefix), Task: strings.TrimSpace(a.Task), Title: strings.TrimSpace(a.Title),
		Text: a.Text + a.Result + a.Why} // each tool has one of them
}

// Problem describes the error of a malformed call; "": the call is valid.
func (f Backlog) Problem() string {
	switch {
	case len(f.Task) > taskIDBytesMax:
		return fmt.Sprintf("%.32q is not the id of a task; backlog_list shows the ids", f.Task)
	case len(f.Title) > taskTitleBytesMax:
		return fmt.Sprintf("the title is %d bytes, at most %d are allowed; put the rest into the text", len(f.Title), taskTitleBytesMax)
	case strings.ContainsFunc(f.Title, unicode.IsControl):
		return "the title is more than one line; put the rest into the text"
	case len(f.Text) > taskTextBytesMax:
		return fmt.Sprintf("the text is %d bytes, at most %d are allowed", len(f.Text), taskTextBytesMax)
	}
	switch blank := strings.TrimSpace(f.Text) == ""; f.Do {
	case "post":
		if f.Title == "" {
			return "the task has no title"
		}
	case "done":
		if blank {
			return "the result is empty"
		}
	case "return":
		if blank {
			return "why is empty"
		}
	}
	return ""
}
