package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
)

// NamedAgent is an agent of a run, by the two words that a person may use for it.
type NamedAgent struct{ ID, Name string }

// FindAgent returns the id of the agent of a run that a person means: see ChooseAgent.
func (s *Session) FindAgent(ctx context.Context, run, word string) (string, error) {
	if word == "" {
		return "", nil
	}
	isID := word == string(spec.Root) || spec.ID(word).IsBelow(spec.Root)
	info, err := s.Get(ctx, run)
	switch {
	case err != nil && isID:
		return word, nil // the node says itself what it can do with a run that it cannot show
	case err != nil:
		return "", err
	case isID && info.Result != nil && info.Result.AgentsLeftOut > 0:
		return word, nil
	}
	var agents []NamedAgent
	for _, m := range AgentResults(info.Result) {
		agents = append(agents, NamedAgent{string(m.ID), m.Name})
	}
	return ChooseAgent(run, word, agents)
}

// idEnd begins the end of an id, as a screen shows an id that is too long for its column.
const idEnd = "…"

// candidatesShown is how many agents an error names.
const candidatesShown = 8

// ChooseAgent returns the id of the agent that a person means by a word: a whole id, the name of exactly one agent,
// or the end of exactly one id behind "…". The agent that "" means is the command's to choose.
func ChooseAgent(run, word string, agents []NamedAgent) (string, error) {
	if word == "" {
		return "", nil
	}
	end, isEnd := strings.CutPrefix(word, idEnd)
	var found []NamedAgent
	var words []string
	for _, a := range agents {
		if a.ID == word {
			return word, nil
		}
		if a.Name == word || isEnd && end != "" && strings.HasSuffix(a.ID, end) {
			found = append(found, a)
		}
		words = append(words, a.ID, a.Name)
	}
	switch len(found) {
	case 0:
		hint := "troupe tree " + run + " shows the names and ids of its agents"
		if near := config.NearestName(word, words); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return "", exit.UsageError(hint, "run %s has no agent %q", run, word)
	case 1:
		return found[0].ID, nil
	}
	return "", exit.UsageError("name one by its id: "+listCandidates(found),
		"run %s has %d agents %q", run, len(found), word)
}

func listCandidates(found []NamedAgent) string {
	var ids []string
	for _, a := range found[:min(len(found), candidatesShown)] {
		ids = append(ids, a.ID)
	}
	text := strings.Join(ids, ", ")
	if n := len(found) - len(ids); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
