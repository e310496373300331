package agentfile

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/amount"
)

// valueReader reads single values of a file. A value of another form than its key takes is a problem that names the key
// and shows what to write, and counts as zero.
type valueReader struct{ fileReport }

func (r *valueReader) rejectValue(n *yaml.Node, key, remedy string) {
	r.addProblem(n.Line+1, "%s is %s; write %s", key, kindOf(n), remedy)
}

func (r *valueReader) readText(n *yaml.Node, key string) string {
	if n.Kind != yaml.ScalarNode {
		r.rejectValue(n, key, "a text")
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(n.Value, "\uFFFD"))
}

// readList reads a list of texts, or a text with commas.
func (r *valueReader) readList(n *yaml.Node, key string) []string {
	items := []string{}
	switch {
	case n.Kind == yaml.ScalarNode:
		return append(items, splitCommas(r.readText(n, key))...)
	case n.Kind != yaml.SequenceNode:
		r.rejectValue(n, key, "a list, such as [a, b]")
		return items
	}
	for _, c := range n.Content {
		if s := r.readText(c, key); s != "" {
			items = append(items, s)
		}
	}
	return items
}

func (r *valueReader) readNumber(n *yaml.Node, key string, low, high float64, remedy string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(v) || v < low || v > high {
		r.rejectValue(n, key, remedy)
		return 0
	}
	return v
}

func (r *valueReader) readInteger(n *yaml.Node, key string, remedy string) int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		r.rejectValue(n, key, remedy)
		return 0
	}
	return v
}

func (r *valueReader) readDuration(n *yaml.Node, key string) time.Duration {
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v <= 0 {
		r.rejectValue(n, key, "a duration, such as 90s or 3m")
		return 0
	}
	return v
}

// readTokens reads a number of tokens, such as 12000 or 12k.
func (r *valueReader) readTokens(n *yaml.Node, key string) int64 {
	v, err := amount.ParseTokens(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		r.rejectValue(n, key, "a number of tokens, such as 12000 or 12k")
		return 0
	}
	return v
}

func (r *valueReader) readBool(n *yaml.Node, key string) bool {
	v, err := strconv.ParseBool(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.rejectValue(n, key, "true or false")
		return false
	}
	return v
}

// readAny decodes a value of any form; it is bounded because there are no aliases.
func (r *valueReader) readAny(n *yaml.Node, key string) any {
	var v any
	if err := n.Decode(&v); err != nil {
		r.rejectValue(n, key, "valid YAML without special tags")
		return nil
	}
	return v
}

// readJSON returns a mapping as JSON text.
func (r *valueReader) readJSON(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode {
		r.rejectValue(n, key, "a mapping, such as {key: value}")
		return ""
	}
	text, err := json.Marshal(r.readAny(n, key))
	if err != nil {
		r.rejectValue(n, key, "a mapping whose keys are texts")
		return ""
	}
	return string(text)
}

// readCount reads a whole number; 0 means none.
func (r *valueReader) readCount(n *yaml.Node, key, remedy string) int {
	return int(r.readNumber(n, key, 0, 1<<30, remedy))
}

func (r *valueReader) readDecision(n *yaml.Node, key string) string {
	word := strings.ToLower(n.Value)
	if n.Kind != yaml.ScalarNode || !slices.Contains([]string{"allow", "ask", "deny"}, word) {
		r.rejectValue(n, key, "allow, ask or deny")
	}
	return word
}

// readPaths reads absolute paths; ~ expands to the home directory of the user whose process
// reads them.
func (r *valueReader) readPaths(n *yaml.Node, key string) []string {
	list := r.readList(n, key)
	for i, p := range list {
		if rest, ok := strings.CutPrefix(p, "~/"); ok || p == "~" {
			home, err := os.UserHomeDir()
			if err != nil {
				r.addProblem(n.Line, "%s: %q: %v", key, p, err)
				continue
			}
			p = filepath.Join(home, rest)
			if list[i] == "~" {
				p = home
			}
		}
		if !filepath.IsAbs(p) {
			r.rejectValue(n, key, "absolute paths, such as /opt/go or ~/go")
		}
		list[i] = p
	}
	return list
}

// readPolicy reads the setting `policy`: the rules, as JSON text, or the file that has them.
func (r *valueReader) readPolicy(n *yaml.Node, key string) (text, file string) {
	if n.Kind == yaml.ScalarNode {
		return "", r.readText(n, key)
	}
	return r.readPolicyText(n, key), ""
}

// readPolicyText reads rules as JSON text: package policy reads that.
func (r *valueReader) readPolicyText(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		r.rejectValue(n, key, "a list of rules, or a mapping with the key rules")
		return ""
	}
	text, err := json.Marshal(r.readAny(n, key))
	if err != nil {
		r.rejectValue(n, key, "a list of rules, or a mapping with the key rules")
		return ""
	}
	return string(text)
}
