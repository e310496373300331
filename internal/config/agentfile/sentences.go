package agentfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
)

// SentenceProblem says which of the sentences a prompt could not state one by one, and what to do; "": none.
func SentenceProblem(what string, list []string) (problem, hint string) {
	if len(list) > spec.FailureConditionsMax {
		return fmt.Sprintf("%d %s are given, at most %d are allowed", len(list), what, spec.FailureConditionsMax), "state the most important ones"
	}
	for i, c := range list {
		switch {
		case strings.TrimSpace(c) == "":
			return fmt.Sprintf("%s: number %d is empty", what, i+1), "write a sentence, such as \"a test fails\""
		case len(c) > spec.FailureConditionBytesMax:
			return fmt.Sprintf("%s: number %d has %d bytes, at most %d are allowed", what, i+1, len(c), spec.FailureConditionBytesMax), "write one sentence"
		case strings.ContainsFunc(c, unicode.IsControl) || !utf8.ValidString(c):
			return fmt.Sprintf("%s: number %d has a control character", what, i+1), "write one line of plain text"
		}
	}
	return "", ""
}

// sentenceFields are the keys of the sentences that the agent reads in addition to those of the run.
func sentenceFields() map[string]fieldReader {
	read := func(into func(*Definition) *[]string) fieldReader {
		return func(d *decoder, k string, n *yaml.Node) { *into(d.def) = readSentences(d, n, k) }
	}
	return map[string]fieldReader{
		"constraints": read(func(d *Definition) *[]string { return &d.Constraints }),
		"criteria":    read(func(d *Definition) *[]string { return &d.Criteria }),
		"fail_if":     read(func(d *Definition) *[]string { return &d.FailIf }),
	}
}

// readSentences reads a list of sentences, or a text with one a line.
func readSentences(d *decoder, n *yaml.Node, key string) []string {
	var list []string
	switch n.Kind {
	case yaml.ScalarNode:
		list = slices.DeleteFunc(strings.Split(d.readText(n, key), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	case yaml.SequenceNode:
		for _, c := range n.Content {
			list = append(list, d.readText(c, key))
		}
	default:
		d.rejectValue(n, key,
			"a list of sentences, such as [\"Name a source.\"]; evidence, schema and tries are keys of require")
		return nil
	}
	if problem, hint := SentenceProblem(key, list); problem != "" {
		d.addProblem(n.Line+1, "%s; %s", problem, hint)
	}
	return list
}
