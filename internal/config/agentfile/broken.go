package agentfile

import (
	"bytes"
	"errors"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// brokenAgent holds the problems of a file that should define an agent.
type brokenAgent struct {
	names []string // that its agent may have
	// uncertain says that the file could not be read far enough: its agent may have another name.
	uncertain bool
	problems  []error
}

func (b *brokenAgent) Error() string   { return errors.Join(b.problems...).Error() }
func (b *brokenAgent) Unwrap() []error { return b.problems }

// newUnreadAgent returns the agent of a file without content: only the name of the file is known.
func newUnreadAgent(path string, err error) *brokenAgent {
	return &brokenAgent{names: namesOf(fileName(path)), uncertain: true, problems: []error{err}}
}

// newBrokenAgent returns the agent of a file that Parse refuses.
func newBrokenAgent(def Definition, data []byte, err error) *brokenAgent {
	b := &brokenAgent{problems: []error{err}}
	if def.At == nil { // its keys were not read
		b.names, b.uncertain = guessNames(def.Path, data)
		return b
	}
	b.names = namesOf(def.Name)
	line, given := def.At["name"]
	isName := func(p *Problem) bool { return p.Line == line }
	if given && slices.ContainsFunc(SplitProblems(err), isName) || len(b.names) == 0 {
		b.uncertain = true
	}
	return b
}

var (
	nameLine = lazyregexp.New(`(?m)^["']?name["']?[ \t]*:[ \t]*(.*?)[ \t\r]*$`)
	nameWord = lazyregexp.New(`\bname\b`)
)

// namesGuessedMax bounds the names that guessNames finds.
const namesGuessedMax = 32

// guessNames returns the names that the agent of a file may have whose keys cannot be read. The name is certain if the
// front matter is complete and names no other.
func guessNames(path string, data []byte) (names []string, uncertain bool) {
	front, _, err := cutFrontMatter(data)
	if err != nil {
		front = bytes.ReplaceAll(data, []byte{0}, nil) // UTF-16
	}
	lines := nameLine.FindAllSubmatch(front, namesGuessedMax)
	words := len(nameWord.FindAllIndex(front, namesGuessedMax))
	if err == nil && words == 1 && len(lines) == 1 {
		if name := string(bytes.Trim(lines[0][1], `"'`)); spec.IsAgentName(name) {
			return []string{name}, false
		}
	}
	names = namesOf(fileName(path))
	for _, line := range lines {
		names = append(names, namesOf(string(bytes.Trim(line[1], `"'`)))...)
	}
	return names, err != nil || words > 0 || len(names) == 0
}

// namesOf returns the name of an agent that is called so; none: a name of that form cannot be.
func namesOf(said string) []string {
	if spec.IsAgentName(said) {
		return []string{said}
	}
	if name := sanitizeName(said); name != "" {
		return []string{name}
	}
	return nil
}

// ErrorsFor returns what an error of Load says about the places as a whole and about the files that may define one of the
// named agents. A run of other agents leaves out the other broken files.
func ErrorsFor(err error, named ...string) error {
	return filterBroken(err, true, func(b *brokenAgent) bool {
		return slices.ContainsFunc(b.names, func(name string) bool { return slices.Contains(named, name) })
	})
}

// ErrorsWithoutName returns what an error of Load says about files whose agent may have any name: they could not be read
// far enough.
func ErrorsWithoutName(err error) error {
	return filterBroken(err, false, func(b *brokenAgent) bool { return b.uncertain })
}

// filterBroken returns the errors of the agents that keep chooses, and those about places if withPlaces is set.
func filterBroken(err error, withPlaces bool, keep func(*brokenAgent) bool) error {
	if b, ok := err.(*brokenAgent); ok {
		if keep(b) {
			return err
		}
		return nil
	}
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if withPlaces {
			return err
		}
		return nil
	}
	var list []error
	for _, e := range all.Unwrap() {
		list = append(list, filterBroken(e, withPlaces, keep))
	}
	return errors.Join(list...)
}
