// Package config finds settings that a command did not get by a flag: in the environment
// (TROUPE_*), in troupe.yaml of the directory, in the user's file, in this order. Only the
// user can change settings that protect the user's money and state: see userOnlyKeys. Package
// config refuses unknown keys, with their position and a suggestion.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/namedlimit"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/internal/workdir"
)

const (
	// FileName is the file in the directory, and in the user's directory.
	FileName = "troupe.yaml"
	// FileBytesMax is the most that is read of a file.
	FileBytesMax = 1 << 20
	envPrefix    = "TROUPE_"
)

// ErrSetting is wrapped by every error about the value of a setting.
var ErrSetting = errors.New("setting")

// valueKind is the type of a setting's value.
type valueKind int

const (
	textKind valueKind = iota
	pathKind
	wholeKind
	numberKind
	tokensKind
	durationKind
	boolKind
	listKind
	linesKind    // texts, one a line of the value
	ageKind      // how long a run stays: see ParseRetention
	sizeKind     // how much is stored
	limitKind    // a whole number; -1 is "none at all", where the limit allows it
	policyKind   // a path, or a tree that other packages read
	priorityKind // a word of throttle.ParsePriority
	rateKind     // rates by provider and model: see throttle.ParseRateTable
	treeKind     // other packages read it, and it has no variable; guardrails, patience and tool_retries have flags
)

// settingKinds are the settings, named as the long flags with underscores.
var settingKinds = map[string]valueKind{
	"model": textKind, "store_dir": pathKind, "log_store": textKind, "color": textKind, "output": textKind, "otlp_endpoint": textKind, "telemetry_content": textKind, "events_content": textKind,
	"max_turns": wholeKind, "max_tokens": tokensKind, "max_tool_calls": wholeKind, "max_depth": wholeKind, "max_children": wholeKind, "max_messages": wholeKind,
	"max_agents": wholeKind, "max_budget_usd": numberKind, "allow_unpriced": listKind, "allow_unbounded": listKind, "pricing_file": pathKind, "timeout": durationKind, "unattended": boolKind, "question_timeout": durationKind, "park_timeout": durationKind, "permission_mode": textKind, "log_patience": durationKind, "max_live_runs": wholeKind, "retain_age": ageKind, "retain_size": sizeKind, "reconcile_every": durationKind,
	"max_backlog": wholeKind, "backlog_lease": durationKind,
	"requests_per_minute": rateKind, "tokens_per_minute": rateKind,
	"priority": priorityKind, "fallback": listKind, "fail_if": linesKind, "constraints": linesKind, "criteria": linesKind, "json_schema": pathKind, "use_tokens": tokensKind,
	"require": treeKind, "continue": treeKind, "watch": treeKind, "breaker": treeKind,
	"context": treeKind, "polling": treeKind, "tool_retries": treeKind, "patience": treeKind, "limit_notes": treeKind, "max_agent_tokens": tokensKind, "max_agent_budget_usd": numberKind, "tools": treeKind, "a2a_agents": treeKind, "delegate_charges": treeKind, "hooks": treeKind, "guardrails": treeKind, "permissions": treeKind, "policy": policyKind,
}

func init() { // the limits of each agent
	for _, n := range namedlimit.All() {
		if n.Request != "" {
			settingKinds[n.Request], settingMeanings[n.Request] = limitKind, n.Text
		}
	}
}

// Setting is one value and where it was found.
type Setting struct {
	Key   string
	Value string
	From  string // TROUPE_MODEL, or troupe.yaml:3
	// Raised: the directory's file sets more than the user's own does, if that sets the key at
	// all. It is not the user's decision.
	Raised bool
	// Below is the directory that the file Value must be in, because that directory names the
	// file: a caller reads it with safefile.ReadBelow(Below).
	Below string

	absolute bool // the file says an absolute path
}

// Flag returns the name of the flag that takes precedence over the setting.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Error returns the error of an invalid value, with its position.
func (s Setting) Error(why string) error {
	return fmt.Errorf("%w %s: %s: %s", ErrSetting, s.From, s.Key, why)
}

// SettingSources say where to look.
type SettingSources struct {
	// Dir holds troupe.yaml; "" looks in none.
	Dir string
	// User is the user's file. Default: XDG_CONFIG_HOME/troupe/troupe.yaml.
	User string
	// Getenv reads the environment. Default os.Getenv.
	Getenv func(string) string
	// Environ lists the environment, to find misspelled variables. Default os.Environ.
	Environ func() []string
	// Settled reports whether a key needs no value, because its flag (Setting.Flag) was given
	// or does not exist. Default: every key needs one.
	Settled func(flag string) bool
}

// UserFile is the file of settings that is the user's own, whatever the directory.
func UserFile() string { return filepath.Join(xdg.ConfigHome, "troupe", FileName) }

// Load returns the settings by key. The first place that has a key takes precedence.
func Load(p SettingSources) (map[string]Setting, error) {
	if p.Getenv == nil {
		p.Getenv = os.Getenv
	}
	if p.User == "" {
		p.User = UserFile()
	}
	if p.Environ == nil {
		p.Environ = os.Environ
	}
	if err := checkVariables(p.Environ()); err != nil {
		return nil, err
	}
	all := settingsOf(p.Getenv)
	if err := p.addFiles(all); err != nil {
		return nil, err
	}
	for _, s := range all {
		if err := s.checkValue(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addFiles adds the settings of the files, unless an earlier place has the key.
func (p SettingSources) addFiles(all map[string]Setting) error {
	mine, err := readSettings(p.User)
	if err != nil {
		return err
	}
	var theirs []Setting
	if dir := filepath.Join(p.Dir, FileName); p.Dir != "" && !sameFile(dir, p.User) {
		if theirs, err = readDirSettings(p.Dir); err != nil {
			return err
		}
	}
	user := map[string]Setting{}
	for _, s := range mine {
		user[s.Key] = s
	}
	for _, s := range theirs {
		if _, ok := all[s.Key]; ok || settingKinds[s.Key] == linesKind {
			continue
		}
		own, known := user[s.Key]
		if err := s.refuseUserOnly(p.Dir, p.User, own, known); err != nil && (p.Settled == nil || !p.Settled(s.Flag())) {
			return err
		}
		if settingKinds[s.Key] == policyKind {
			continue // it adds to the user's: the node reads it
		}
		if s.Raised = s.exceedsLimit(own, known, 0); settingKinds[s.Key] == rateKind {
			s = s.loweredRates(own)
		}
		if settingKinds[s.Key] == pathKind {
			s.Below = p.Dir
		}
		all[s.Key] = s
	}
	for _, s := range mine {
		if _, ok := all[s.Key]; !ok && settingKinds[s.Key] != linesKind {
			all[s.Key] = s
		}
	}
	addSentences(all, mine, "")
	addSentences(all, theirs, DirectorySentence)
	return nil
}

// DirectorySentence begins each sentence of the file of a directory: that may come from anyone, so an agent must be
// able to tell it from what its user says.
const DirectorySentence = "(" + FileName + " of the directory) "

// addSentences adds the sentences of a file: they add up, so the file of a directory removes none of the user's.
func addSentences(all map[string]Setting, file []Setting, mark string) {
	for _, s := range file {
		if settingKinds[s.Key] != linesKind {
			continue
		}
		s.Value = markLines(s.Value, mark)
		if known, ok := all[s.Key]; ok {
			s.Value, s.From = known.Value+"\n"+s.Value, known.From+" and "+s.From
		}
		all[s.Key] = s
	}
}

// markLines puts a mark before each line that has a text.
func markLines(text, mark string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			lines[i] = mark + strings.TrimSpace(line)
		}
	}
	return strings.Join(lines, "\n")
}

// readSettings reads one file; a missing file has no settings.
func readSettings(file string) ([]Setting, error) {
	data, err := safefile.Read(file, FileBytesMax)
	return parseSettings(file, data, err)
}

// readDirSettings reads the file of a directory that may come from anyone: it follows no link that
// leads out of the directory.
func readDirSettings(dir string) ([]Setting, error) {
	data, err := safefile.ReadBelow(workdir.Real(dir), FileName, FileBytesMax)
	return parseSettings(filepath.Join(dir, FileName), data, err)
}

func parseSettings(file string, data []byte, err error) ([]Setting, error) {
	n, err := parseFile(file, data, err)
	if n == nil {
		return nil, err
	}
	var found []Setting
	for s, err := range eachSetting(file, n) {
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// parseFile parses a file to its mapping; nil if it is missing, empty or no mapping.
func parseFile(file string, data []byte, err error) (*yaml.Node, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w file %w", ErrSetting, err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%w file %s: %w", ErrSetting, file, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	if n := doc.Content[0]; n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w %s:%d: expected `key: value` lines", ErrSetting, file, n.Line)
	}
	return doc.Content[0], nil
}

// eachSetting yields the settings of a mapping that have a value, or their errors, in
// the order of their lines.
func eachSetting(file string, n *yaml.Node) iter.Seq2[Setting, error] {
	return func(yield func(Setting, error) bool) {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			s, err := readSetting(file, key, value)
			if seen[key.Value] {
				s, err = Setting{}, fmt.Errorf("%w %s:%d: %s is set twice", ErrSetting, file, key.Line, key.Value)
			}
			seen[key.Value] = true
			if (err != nil || s.Key != "") && !yield(s, err) {
				return
			}
		}
	}
}

// readSetting reads one key; without a value that this package reads, the Setting is empty.
func readSetting(file string, key, value *yaml.Node) (Setting, error) {
	where := fmt.Sprintf("%s:%d", file, key.Line)
	form, known := settingKinds[key.Value]
	switch {
	case !known:
		return Setting{}, fmt.Errorf("%w %s: unknown key %q%s", ErrSetting, where, key.Value, suggestKey(key.Value))
	case form == treeKind, form == policyKind && value.Kind != yaml.ScalarNode:
		return Setting{}, nil
	case form == linesKind && value.Kind == yaml.SequenceNode:
		items, ok := joinTexts(value, "\n")
		if !ok {
			return Setting{}, fmt.Errorf("%w %s: %s: expected a list of texts, each in one line", ErrSetting, where, key.Value)
		}
		value = &yaml.Node{Kind: yaml.ScalarNode, Value: items}
	case form == linesKind && value.Kind == yaml.MappingNode:
		return Setting{}, fmt.Errorf("%w %s: %s: expected sentences; evidence, schema and tries are keys of require", ErrSetting, where, key.Value)
	case form == rateKind && value.Kind == yaml.MappingNode:
		items, ok := joinRates(value)
		if !ok {
			return Setting{}, fmt.Errorf("%w %s: %s: expected PROVIDER: NUMBER or PROVIDER/MODEL: NUMBER", ErrSetting, where, key.Value)
		}
		value = &yaml.Node{Kind: yaml.ScalarNode, Value: items}
	case (form == listKind || form == rateKind) && value.Kind == yaml.SequenceNode:
		items, ok := joinTexts(value, ",")
		if !ok {
			return Setting{}, fmt.Errorf("%w %s: %s: expected a list of texts", ErrSetting, where, key.Value)
		}
		value = &yaml.Node{Kind: yaml.ScalarNode, Value: items}
	case value.Kind != yaml.ScalarNode:
		return Setting{}, fmt.Errorf("%w %s: %s: expected one value", ErrSetting, where, key.Value)
	}
	if value.Value == "" || value.Tag == "!!null" {
		return Setting{}, nil
	}
	s := Setting{Key: key.Value, Value: value.Value, From: where}.inNumbers()
	isPath := form == pathKind || form == policyKind
	if s.absolute = isPath && filepath.IsAbs(s.Value); isPath && !s.absolute {
		s.Value = filepath.Join(filepath.Dir(file), s.Value)
	}
	return s, nil
}

// joinTexts joins a list of texts, which do not contain the separator.
func joinTexts(n *yaml.Node, separator string) (joined string, ok bool) {
	items := make([]string, len(n.Content))
	for i, c := range n.Content {
		if items[i] = c.Value; c.Kind != yaml.ScalarNode || strings.Contains(c.Value, separator) {
			return "", false
		}
	}
	return strings.Join(items, separator), true
}

// checkValue reports a value that is not of its kind.
func (s Setting) checkValue() error {
	if k := settingKinds[s.Key]; k == wholeKind || k == tokensKind {
		if n, err := strconv.ParseInt(s.Value, 10, 64); err == nil && n < 0 {
			return s.Error(fmt.Sprintf("%s must not be negative", s.Value))
		}
	}
	switch settingKinds[s.Key] {
	case wholeKind:
		if _, err := strconv.ParseInt(s.Value, 10, 64); err != nil {
			return s.Error(fmt.Sprintf("%q is not a whole number", s.Value))
		}
	case tokensKind:
		if _, err := strconv.ParseInt(s.Value, 10, 64); err != nil {
			return s.Error(fmt.Sprintf("%q is not %s", s.Value, amount.ErrTokens))
		}
	case limitKind:
		for _, l := range namedlimit.All() {
			if n, err := strconv.ParseInt(s.Value, 10, 64); l.Request == s.Key && (err != nil || !l.Allows(n)) {
				return s.Error(fmt.Sprintf("%q is not a whole number from %d to %d", s.Value, l.Least, l.Most))
			}
		}
	case numberKind:
		if v, err := strconv.ParseFloat(s.Value, 64); err != nil || !(v >= 0) || math.IsInf(v, 1) {
			return s.Error(fmt.Sprintf("%q is not an amount", s.Value))
		}
	case priorityKind:
		if _, err := throttle.ParsePriority(s.Value); err != nil {
			return s.Error(fmt.Sprintf("%q is not high, normal or low", s.Value))
		}
	case rateKind:
		if _, err := parseRates(s.Value); err != nil {
			return s.Error(err.Error())
		}
	case ageKind:
		if _, err := parseRetainAge(s.Value); err != nil {
			return s.Error(err.Error())
		}
	case sizeKind:
		if _, err := parseRetainSize(s.Value); err != nil {
			return s.Error(err.Error())
		}
	case boolKind:
		if _, err := strconv.ParseBool(s.Value); err != nil {
			return s.Error(fmt.Sprintf("%q is not true or false", s.Value))
		}
	case durationKind:
		if d, err := time.ParseDuration(s.Value); err != nil || d < 0 {
			return s.Error(fmt.Sprintf("%q is not a duration such as 90s or 5m", s.Value))
		}
	}
	return nil
}
