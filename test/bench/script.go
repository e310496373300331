package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// errScript: a model name is not the name of a script.
var errScript = errors.New("bench: unknown script")

// Kinds of scripts.
const (
	scriptLook = "look" // takes N turns: N-1 with one call of the tool, and the answer
	scriptFan  = "fan"  // delegates to N children at once, then answers
	scriptWait = "wait" // never answers
	scriptAsk  = "ask"  // asks a person, then answers
)

// script is what a model does. Its name is the name of the model, so that every column and the
// model server play the same one: look-10, fan-64, wait, look-10-20ms.
type script struct {
	name  string
	kind  string
	count int
	delay time.Duration // before each reply
}

// parseScript reads the name of a script.
func parseScript(name string) (script, error) {
	parts := strings.Split(name, "-")
	s := script{name: name, kind: parts[0], count: 1}
	var err error
	if len(parts) > 1 {
		s.count, err = strconv.Atoi(parts[1])
	}
	if len(parts) > 2 && err == nil {
		s.delay, err = time.ParseDuration(parts[2])
	}
	switch {
	case err != nil:
		return s, fmt.Errorf("%w %q: %w", errScript, name, err)
	case s.kind != scriptLook && s.kind != scriptFan && s.kind != scriptWait && s.kind != scriptAsk:
		return s, fmt.Errorf("%w %q", errScript, name)
	}
	return s, nil
}

// childModelName is the model of the children of a fan-out, which answer at once.
const childModelName = "child"

// childTask is what a child is asked to do. Equal calls would be a loop.
func childTask(child int) string { return "go " + strconv.Itoa(child) }

// answerText is the answer of every script.
const answerText = "done"

// lookArgs are the arguments of the one tool.
type lookArgs struct {
	Row int `json:"row" jsonschema:"number of the row"`
}

// The one tool: its name, and what a model reads about it.
const (
	lookName        = "look"
	lookDescription = "Returns the content of a row."
)

const rowPrefix = "row "

// lookUp is the one tool.
func lookUp(row int) string { return rowPrefix + strconv.Itoa(row) + " is empty" }

// rowOf returns the row that a result of the tool is about; 0 if it is no such result.
func rowOf(result string) int {
	rest, ok := strings.CutPrefix(result, rowPrefix)
	if !ok {
		return 0
	}
	digits, _, _ := strings.Cut(rest, " ")
	row, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return row
}

// reply is what a model says next: a text, or calls.
type reply struct {
	text     string
	row      int // argument of the one tool; 0: no call of it
	children int // how many children to delegate to
	question string
}

// next returns the reply to a conversation that ends with a result of a tool; "" means that it
// ends with the task. It needs only that, so it costs the same at every length.
func (s script) next(result string) reply {
	switch {
	case s.kind == scriptLook && rowOf(result)+1 < s.count:
		return reply{row: rowOf(result) + 1}
	case s.kind == scriptFan && result == "":
		return reply{children: s.count}
	case s.kind == scriptAsk && result == "":
		return reply{question: "Which one?"}
	}
	return reply{text: answerText}
}

// lookJSON encodes the arguments of a call of the one tool.
func lookJSON(row int) string { return `{"row":` + strconv.Itoa(row) + `}` }
