package a2aclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
)

// answer is what an agent has answered so far.
type answer struct {
	task      string // the id of its task; "": none is known
	state     taskState
	isMessage bool   // it answers with a message, without a task
	words     string // of its last status, or the text of that message
	said      string // its last message in the history of the task
	artifacts []artifact
	size      int // of the texts of the artifacts
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
		a.words, err = cutText(joinParts(e.Message.Parts, "\n"), answerBytesMax)
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
			a.said = clip.Prefix(joinParts(m.Parts, "\n"), answerBytesMax)
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
			a.words = ""
		}
		return nil
	}
	var err error
	a.words, err = cutText(joinParts(s.Message.Parts, "\n"), answerBytesMax)
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

// text returns the answer: the artifacts of the task, or else the words with which it ended, or else the agent's last message.
func (a *answer) text() string {
	var texts []string
	for _, r := range a.artifacts {
		if len(r.text) > 0 {
			texts = append(texts, string(r.text))
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "\n\n")
	case a.words != "":
		return a.words
	}
	return a.said
}

// partial returns what had arrived of an answer that did not end, marked as such; "" if there is nothing.
func (a *answer) partial() string {
	if a.size == 0 {
		return ""
	}
	text := a.text()
	return fmt.Sprintf("[partial: the first %d bytes of an answer that did not end]\n%s", len(text), text)
}

// result returns the answer, or an error that says how the task ended.
func (a *answer) result() (string, error) {
	if a.isMessage || a.state == stateCompleted {
		return a.text(), nil
	}
	words := "it gave no reason"
	if a.words != "" {
		words = quoteWords(a.words)
	}
	switch a.state {
	case stateFailed:
		return a.partial(), fmt.Errorf("%w: the task failed: %s", errForeign, words)
	case stateRejected:
		return a.partial(), fmt.Errorf("%w: it rejected the task: %s", errForeign, words)
	case stateCanceled:
		return a.partial(), fmt.Errorf("the task was canceled where the agent runs, and not by this run: %s. What it did before is unknown", words)
	case stateAuth:
		return a.partial(), fmt.Errorf("%w: %s", errAuth, words)
	}
	return a.partial(), fmt.Errorf("%w: %s", errQuestion, words)
}

// progress describes how far the agent is, for people who watch.
func (a *answer) progress() string {
	switch {
	case a.words != "" && !a.isSettled():
		return string(a.state) + ": " + a.words
	case a.size > 0:
		return fmt.Sprintf("%s: %d bytes of its answer", a.state, a.size)
	}
	return string(a.state)
}

// cutText returns at most so many bytes of a text, and an error if that is not all.
func cutText(text string, most int) (string, error) {
	if len(text) > most {
		return clip.Prefix(text, most), errTooLong
	}
	return text, nil
}

// clipWords shortens words of an agent inside of a sentence.
func clipWords(text string) string { return clip.Text(strings.ToValidUTF8(text, "\uFFFD"), 200) }

// quoteWords quotes words of an agent in an error, so that they do not pass for words of troupe.
func quoteWords(text string) string { return fmt.Sprintf("%q", clip.Text(text, wordsShown)) }
