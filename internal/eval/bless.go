package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/supervisor"
)

// RecordedEnd describes how a run ended, or which question it waits with, by the expectations that a
// trial of it must meet.
func RecordedEnd(run *replay.Run) Expected {
	r := caseRecord{result: run.Result, events: run.Events}
	run.Super.Members(func(m supervisor.Member) { r.parked = r.parked || m.Query != nil && !run.Ended })
	return r.describeEnd()
}

// describeEnd returns the expectations that exactly this end meets.
func (r caseRecord) describeEnd() Expected {
	x := Expected{StopReason: r.result.Reason, Partial: &r.result.Partial, Parked: &r.parked, Turns: &r.result.Turns,
		Transitions: rootTransitions(r.events), Calls: proposedCalls(r.events)}
	if children := r.endedChildren(); len(children) > 0 {
		x.Children = children
	}
	return x
}

// Bless runs the cases of files and rewrites the expectations that do not hold, so that they describe the
// new result. It returns the ids of the cases that it has changed. Other failures remain: a
// forbidden tool that ran, a call without an answer, an outside event that did not happen, a replay that differs.
func Bless(ctx context.Context, parallel int, paths ...string) (changed []string, err error) {
	cases, err := LoadCases(paths...)
	if err != nil {
		return nil, err
	}
	records, verdicts := make([]caseRecord, len(cases)), make([]Verdict, len(cases))
	runParallel(len(cases), parallel, func(i int) { verdicts[i], records[i] = cases[i].judge(ctx) })
	byFile := map[string]map[string]caseRecord{}
	var files []string
	for i, c := range cases {
		if verdicts[i].Pass || verdicts[i].StopReason == "" {
			continue
		}
		file := c.Path[:strings.LastIndexByte(c.Path, ':')]
		if byFile[file] == nil {
			byFile[file] = map[string]caseRecord{}
			files = append(files, file)
		}
		byFile[file][c.ID] = records[i]
	}
	for _, file := range files {
		ids, err := blessFile(file, byFile[file])
		if err != nil {
			return changed, err
		}
		changed = append(changed, ids...)
	}
	return changed, nil
}

// blessFile rewrites the expectations of cases of a file.
func blessFile(path string, records map[string]caseRecord) (changed []string, err error) {
	data, err := readCaseFile(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 {
		return nil, &BadFile{Path: path, Text: "the file changed while its cases ran", Remedy: remedy}
	}
	list := []*yaml.Node{doc.Content[0]}
	if list[0].Kind == yaml.SequenceNode {
		list = list[0].Content
	}
	for _, c := range list {
		id := fieldOf(c, "case_id")
		if id == nil {
			continue
		}
		if r, ok := records[id.Value]; ok {
			did, err := r.blessExpected(fieldOf(c, "expected"))
			if err != nil {
				return nil, fmt.Errorf("bless %s: %w", path, err)
			}
			if did {
				changed = append(changed, id.Value)
			}
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	out, err := EncodeCases(doc.Content[0], filepath.Ext(path) == ".json")
	if err != nil {
		return nil, fmt.Errorf("bless %s: %w", path, err)
	}
	return changed, replaceFile(path, out)
}

// fieldOf returns the value of a key of a mapping; nil: it has none.
func fieldOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// blessExpected rewrites the expectations that do not hold: a value becomes the new one, a bound becomes
// as large as needed, and a text or an event that is not there is removed.
func (r caseRecord) blessExpected(expected *yaml.Node) (changed bool, err error) {
	if expected == nil || expected.Kind != yaml.MappingNode {
		return false, nil
	}
	r.overcalledTools, r.unfired, r.replay = nil, nil, nil // no expectations
	end := r.describeEnd()
	end.ToolRuns, end.FirstTools, end.MaxToolCalls = r.runsByTool, firstTools(r.events), &r.runs
	end.MaxTurns, end.MaxTokens = &r.result.Turns, &r.result.Budget.Used
	if end.Children == nil {
		end.Children = r.endedChildren()
	}
	values := map[string]any{"stop_reason": end.StopReason, "partial": end.Partial, "parked": end.Parked, "turns": end.Turns, "max_turns": end.MaxTurns,
		"max_tokens": end.MaxTokens, "max_tool_calls": end.MaxToolCalls, "tool_runs": end.ToolRuns, "transitions": end.Transitions,
		"first_tools": end.FirstTools, "calls": end.Calls, "children": end.Children}
	var kept []*yaml.Node
	for i := 0; i+1 < len(expected.Content); i += 2 {
		key, value := expected.Content[i], expected.Content[i+1]
		if r.meets(key, value) || key.Value == "forbidden_tools" {
			kept = append(kept, key, value)
			continue
		}
		changed = true
		v, known := values[key.Value]
		switch {
		case known:
			if err := value.Encode(v); err != nil {
				return false, err
			}
		case value.Kind == yaml.SequenceNode:
			value.Content = slices.DeleteFunc(value.Content, func(one *yaml.Node) bool {
				return !r.meets(key, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{one}})
			})
			if len(value.Content) == 0 {
				continue
			}
		default:
			continue
		}
		kept = append(kept, key, value)
	}
	expected.Content = kept
	return changed, nil
}

// meets reports whether one expectation holds.
func (r caseRecord) meets(key, value *yaml.Node) bool {
	var x Expected
	one := yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}}
	if one.Decode(&x) != nil {
		return false
	}
	x.sanitizeTools()
	if x.StopReason == "" {
		x.StopReason = r.result.Reason
	}
	return len(x.listDifferences(r)) == 0
}

// EncodeCases writes a case, or a list of cases, as YAML or JSON.
func EncodeCases(doc *yaml.Node, asJSON bool) ([]byte, error) {
	var out bytes.Buffer
	if asJSON {
		var text bytes.Buffer
		if err := writeJSON(&text, doc); err != nil {
			return nil, err
		}
		err := json.Indent(&out, text.Bytes(), "", "  ")
		out.WriteByte('\n')
		return out.Bytes(), err
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// writeJSON writes a node as JSON; its keys keep their order.
func writeJSON(to *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		to.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return err
			}
			if i > 0 {
				to.WriteByte(',')
			}
			to.Write(key)
			to.WriteByte(':')
			if err := writeJSON(to, n.Content[i+1]); err != nil {
				return err
			}
		}
		to.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		to.WriteByte('[')
		for i, one := range n.Content {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := writeJSON(to, one); err != nil {
				return err
			}
		}
		to.WriteByte(']')
		return nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	to.Write(raw)
	return err
}

// replaceFile replaces the content of a file, or of the file that a link leads to: a reader
// sees the old or the new one.
func replaceFile(path string, data []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return pathError(path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return pathError(path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".bless-*")
	if err != nil {
		return pathError(path, err)
	}
	_, err = f.Write(data)
	for _, step := range []func() error{func() error { return f.Chmod(info.Mode().Perm()) }, f.Close, func() error { return os.Rename(f.Name(), path) }} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		_ = f.Close() // the first error counts
		_ = os.Remove(f.Name())
		return pathError(path, err)
	}
	return nil
}
