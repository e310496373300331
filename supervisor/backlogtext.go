package supervisor

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/clip"
)

// Limits of an answer about the backlog.
const (
	backlogShown  = 100 // tasks in a list
	backlogResult = 120 // bytes of a result in a list
)

// countTasks counts the tasks, for a model. One whose lease has ended counts as claimed: its agent still has it.
func countTasks(s State) string {
	b := s.backlog
	return fmt.Sprintf("%d open, %d claimed, %d done", b.countIn(taskOpen), b.countIn(taskClaimed), b.countIn(taskDone))
}

// describeBacklog lists the tasks for a model: those that are not done first.
func describeBacklog(s State) string {
	lines := []string{countTasks(s)}
	for _, ended := range []bool{false, true} {
		for i, t := range s.backlog.tasks {
			if t.state == taskDropped || (t.state == taskDone) != ended {
				continue
			}
			lines = append(lines, describeState(s, i)+": "+t.title)
			if ended {
				lines[len(lines)-1] += "\n> " + clipResult(t.result)
			}
		}
	}
	if more := len(lines) - 1 - backlogShown; more > 0 {
		lines = append(lines[:1+backlogShown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// describeState says what has become of a task.
func describeState(s State, i int) string {
	t := s.backlog.tasks[i]
	m, _ := s.Member(t.holder)
	switch {
	case isTaken(s, t):
		return fmt.Sprintf("%s is claimed by %s (%s) until %s", taskID(i), m.ID, m.Name, time.UnixMilli(leaseEnd(s, m.ID)).UTC().Format("15:04:05 UTC"))
	case t.state == taskClaimed:
		return fmt.Sprintf("%s is open, the lease of %s (%s) has ended", taskID(i), m.ID, m.Name)
	case t.state == taskDone:
		return fmt.Sprintf("%s is done by %s (%s)", taskID(i), m.ID, m.Name)
	case t.state == taskDropped:
		return taskID(i) + " was dropped by a person"
	}
	return taskID(i) + " is open"
}

// taskText is the whole task. Its texts are quoted: agents and people have written them.
func taskText(s State, i int) string {
	t := s.backlog.tasks[i]
	from := "a person"
	if m, ok := s.Member(t.poster); ok {
		from = fmt.Sprintf("%s (%s)", m.ID, m.Name)
	}
	text := fmt.Sprintf("%s (posted by %s)", t.title, from)
	if t.text != "" {
		text += "\n" + quoteLines(t.text)
	}
	if t.state == taskDone {
		text += "\nresult:\n" + quoteLines(t.result)
	}
	return text
}

// clipResult is the beginning of a result, on one line.
func clipResult(text string) string { return clip.Marked(clip.OneLine(text), backlogResult, "…") }

func quoteLines(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }
