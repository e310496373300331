package a2aclient

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
)

// answer is what an agent has answered so far.
type answer struct {
	task       string // the id of its task; "": unknown
	state      taskState
	isMessage  bool   // it answers with a message, without a task
	statusText string // of its last status, or the text of that message
	artifacts  []artifact
	size       int // of the texts of the artifacts

	lastMessage    string // its last message in the history of the task
	lastMessageErr error  // errTooLong if lastMessage is cut, which matters only if that is the answer
}

// artifact is one result of a task.
type artifact struct {
	id   string
	text []byte
}

// isSettled reports whether nothing more is to be expected of the agent.
func (a *answer) isSettled() bool {
	return a.isMessage || a.state.isOver() || a.state == stateInput || a.state == stateAuth
}

// add reads one more result of the agent.
func (a *answer) add(data json.RawMessage) error {
	e, err := parseEvent(data)
	switch {
	case err != nil:
		return err
	case e.Message != nil:
		if err := a.check(e.Message.TaskID, true); err != nil {
			return err
		}
		a.isMessage = true
		a.statusText, err = cutText(joinParts(e.Message.Parts, "\n"), answerBytesMax)
		return err
	case e.Task != nil:
		return a.addTask(*e.Task)
	case e.StatusUpdate != nil:
		if err := a.check(e.StatusUpdate.TaskID, false); err != nil {
			return err
		}
		return a.addStatus(e.StatusUpdate.Status)
	case e.ArtifactUpdate != nil:
		if err := a.check(e.ArtifactUpdate.TaskID, false); err != nil {
			return err
		}
		return a.addArtifact(e.ArtifactUpdate.Artifact, e.ArtifactUpdate.Append)
	}
	return nil // of a later version
}

// addTask reads a task as it is now.
func (a *answer) addTask(t wireTask) error {
	if err := a.check(t.ID, false); err != nil {
		return err
	}
	for _, m := range t.History {
		if strings.EqualFold(strings.TrimPrefix(m.Role, "ROLE_"), "agent") {
			a.lastMessage, a.lastMessageErr = cutText(joinParts(m.Parts, "\n"), answerBytesMax)
		}
	}
	if len(t.Artifacts) > 0 { // a server may leave out what it has sent before
		a.artifacts, a.size = nil, 0
	}
	for _, r := range t.Artifacts {
		if err := a.addArtifact(r, false); err != nil {
			return err
		}
	}
	return a.addStatus(t.Status)
}

// check compares the id of a task with the one that is known. A stream is about one task.
func (a *answer) check(id string, optional bool) error {
	switch {
	case id == "" && optional:
		return nil
	case id == "" || len(id) > idBytesMax || a.task != "" && id != a.task:
		return errMalformed
	}
	a.task = id
	return nil
}

func (a *answer) addStatus(s wireStatus) error {
	state, ok := parseState(s.State)
	if !ok {
		return errMalformed
	}
	a.state = state
	if s.Message == nil {
		if state != stateCompleted { // an agent may send its answer with the status before
			a.statusText = ""
		}
		return nil
	}
	var err error
	a.statusText, err = cutText(joinParts(s.Message.Parts, "\n"), answerBytesMax)
	return err
}

// addArtifact adds an artifact, or the next piece of one.
func (a *answer) addArtifact(r wireArtifact, more bool) error {
	i := -1
	for j := range a.artifacts {
		if a.artifacts[j].id == r.ArtifactID {
			i = j
		}
	}
	if i < 0 {
		if len(a.artifacts) == artifactsMax {
			return errTooMany
		}
		i = len(a.artifacts)
		a.artifacts = append(a.artifacts, artifact{id: r.ArtifactID})
	}
	b := &a.artifacts[i]
	if !more {
		a.size -= len(b.text)
		b.text = nil
	}
	text, err := cutText(joinParts(r.Parts, ""), answerBytesMax-a.size)
	b.text, a.size = append(b.text, text...), a.size+len(text)
	return err
}

// text returns the answer: the artifacts of the task, or else the text of its last status, or else the agent's last
// message.
func (a *answer) text() string { return cmp.Or(a.artifactText(), a.statusText, a.lastMessage) }

// artifactText returns the texts of the artifacts.
func (a *answer) artifactText() string {
	var texts []string
	for _, r := range a.artifacts {
		if len(r.text) > 0 {
			texts = append(texts, string(r.text))
		}
	}
	return strings.Join(texts, "\n\n")
}

// markPartial marks what had arrived of an answer that did not end; "" if there is nothing.
func markPartial(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("[partial: the first %d bytes of an answer that did not end]\n%s", len(text), text)
}

// result returns the answer, or an error that says how the task ended.
func (a *answer) result() (string, error) {
	artifacts := a.artifactText()
	if a.isMessage || a.state == stateCompleted {
		if artifacts == "" && a.statusText == "" && a.lastMessageErr != nil {
			return markPartial(a.lastMessage), a.lastMessageErr
		}
		return a.text(), nil
	}
	text, reason := markPartial(artifacts), "it gave no reason" // the text of the status is the reason
	if a.statusText != "" {
		reason = quoteText(a.statusText)
	}
	switch a.state {
	case stateFailed:
		return text, fmt.Errorf("%w: the task failed: %s", errForeign, reason)
	case stateRejected:
		return text, fmt.Errorf("%w: it rejected the task: %s", errForeign, reason)
	case stateCanceled:
		return text, fmt.Errorf("the task was canceled where the agent runs, and not by this run: %s. "+
			"What it did before is unknown", reason)
	case stateAuth:
		return text, fmt.Errorf("%w: %s", errAuth, reason)
	}
	return text, fmt.Errorf("%w: it waits for an answer: %s", errForeign, reason)
}

// progress describes how far the agent is, for people who watch.
func (a *answer) progress() string {
	switch {
	case a.statusText != "" && !a.isSettled():
		return string(a.state) + ": " + a.statusText
	case a.size > 0:
		return fmt.Sprintf("%s: %d bytes of its answer", a.state, a.size)
	}
	return string(a.state)
}

// cutText returns at most the given number of bytes of a text, and an error if it cuts the text.
func cutText(text string, most int) (string, error) {
	if len(text) > most {
		return clip.Prefix(text, most), errTooLong
	}
	return text, nil
}

// clipText shortens text of an agent inside of a sentence.
func clipText(text string) string { return clip.Text(strings.ToValidUTF8(text, "\uFFFD"), 200) }

// quoteText quotes text of an agent in an error, so that it does not pass for words of troupe.
func quoteText(text string) string { return fmt.Sprintf("%q", clip.Text(text, quotedBytesMax)) }
