package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/test/cputime"
	"github.com/troupe-run/troupe/supervisor"
)

// rule is a policy file with one rule.
func rule(text string) []byte {
	return []byte("rules: [{name: x, on: stop, why: y, when: '" + text + "'}]")
}

// An expression means what it means in Go, for each combination of what its conditions say.
func TestExpressionsMeanWhatTheySay(t *testing.T) {
	for text, want := range map[string]func(p, q, r bool) bool{
		`turns > 1`:                       func(p, _, _ bool) bool { return p },
		`1 < turns`:                       func(p, _, _ bool) bool { return p },
		`!(turns <= 1)`:                   func(p, _, _ bool) bool { return p },
		`turns > 1 && tokens >= 40_000`:   func(p, q, _ bool) bool { return p && q },
		`turns > 1 || tokens >= 2 * 20e3`: func(p, q, _ bool) bool { return p || q },
		`!(turns > 1 && tokens >= 40000)`: func(p, q, _ bool) bool { return !p || !q },
		`!(turns > 1 || tokens >= 40000)`: func(p, q, _ bool) bool { return !p && !q },
		`turns > 1 && (tokens >= 40000 || contains(answer, "no"))`:  func(p, q, r bool) bool { return p && (q || r) },
		`(turns > 1 || tokens >= 40000) && !contains(answer, "no")`: func(p, q, r bool) bool { return (p || q) && !r },
		`matches(answer, "^(no|never)$") || has(results, "grep")`:   func(_, q, r bool) bool { return r || q },
		`!matches(answer, "^no$") && !has(results, "grep")`:         func(_, q, r bool) bool { return !r && !q },
		`answer == "no" && agent != "root-1-0" && name == "lead"`:   func(_, _, r bool) bool { return r },
	} {
		p, err := policy.Parse("p.yaml", []byte("rules: [{name: x, on: stop, why: y, when: "+fmt.Sprintf("%q", text)+"}]"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i := range 8 {
			f := supervisor.PolicyFacts{Agent: "root", Name: "lead"}
			if i&1 > 0 {
				f.Turns = 2
			}
			if i&2 > 0 {
				f.Tokens, f.Results = 40000, []string{"grep"}
			}
			if i&4 > 0 {
				f.Answer = "no"
			}
			if got := p.Decide(supervisor.OnStop, f).Vetoed; got != want(i&1 > 0, i&2 > 0, i&4 > 0) {
				t.Errorf("%s: %v with %+v", text, got, f)
			}
		}
	}
}

// What cannot be applied is refused with the place, the value and the remedy, and a hostile file costs neither time
// nor memory.
func TestAttackAPolicyFileIsBounded(t *testing.T) {
	many := "rules:\n" + strings.Repeat("  - {use: budget, name: n}\n", 100)
	for name, c := range map[string]struct{ text, says string }{
		"a large file":         {"rules: [" + strings.Repeat(" ", policy.FileBytesMax) + "]", "at most 131072 are read"},
		"deep nesting":         {strings.Repeat("[", 50) + strings.Repeat("]", 50), "levels deep"},
		"deeper nesting":       {strings.Repeat("[", 60000) + strings.Repeat("]", 60000), ""},
		"aliases":              {"a: &a [1]\nrules: [*a]", "aliases"},
		"no YAML":              {"\x00\x01", ""},
		"no policy":            {"3", "a list of rules"},
		"nothing":              {"", "it is empty"},
		"two documents":        {"rules: []\n---\nrules: []", "several documents"},
		"an unknown key":       {"rule: []", `unknown key "rule"`},
		"a misspelled key":     {"rules: [{name: x, on: stop, why: y, wen: turns > 3}]", `p.yaml:1: unknown key "wen"`},
		"a condition's key":    {"rules: [{name: x, on: stop, why: y, when: [{fakt: turns}]}]", `unknown key "fakt"`},
		"a boundary":           {"rules: [{name: x, on: lunch, why: y}]", `on is "lunch"`},
		"no reason":            {"rules: [{name: x, on: stop}]", "why is empty"},
		"a wrong type":         {"rules: [{name: [x], on: stop, why: y}]", "p.yaml:1"},
		"many rules":           {many, "100 rules, at most 64"},
		"the same name":        {"rules: [{use: budget}, {use: budget}]", "another rule has the same name"},
		"a version":            {"version: many\nrules: []", `version is "many"`},
		"a long expression":    {string(rule(strings.Repeat("turns > 1 && ", 200) + "turns > 1")), "at most 1024"},
		"deep parentheses":     {string(rule(strings.Repeat("(", 500) + "turns > 1" + strings.Repeat(")", 500))), ""},
		"many alternatives":    {string(rule(strings.Repeat("(turns>1||calls>1)&&", 20) + "turns>1")), "alternatives, at most 64"},
		"an unknown fact":      {string(rule("tokns > 3")), `p.yaml:1: rule "x": column 1 of the expression: unknown fact "tokns"; did you mean tokens?`},
		"an unknown function":  {string(rule("now() > 3")), "column 1"},
		"a call of a program":  {string(rule(`exec("rm -rf /")`)), "unknown function"},
		"a function literal":   {string(rule(`func() bool { for {} }()`)), "a function is contains, matches or has"},
		"two facts":            {string(rule("turns > calls")), "turns is compared with a number"},
		"division by nothing":  {string(rule("turns > 1 / 0")), "compared with a number"},
		"single quotes":        {"rules: [{name: x, on: stop, why: y, when: \"contains(answer, 'report')\"}]", "double quotes"},
		"words for operators":  {string(rule(`answer contains "x"`)), `contains(answer, "text")`},
		"an answer at a turn":  {`rules: [{name: x, on: turn, why: y, when: 'contains(answer, "x")'}]`, "no answer before a turn"},
		"a broken pattern":     {string(rule(`matches(answer, "(")`)), "no RE2 pattern"},
		"a large pattern":      {string(rule(`matches(answer, "(a{90}b){9}(c{90}d){9}(e{99}f){9}(g{99}h){9}(i{99}j){9}")`)), "too large"},
		"large classes":        {string(rule(`matches(answer, "` + `\\pL{900}` + `")`)), "too large"},
		"many patterns":        {"rules:\n" + strings.Repeat(`  - {on: stop, why: y, when: 'matches(answer, "a{900}")'}`+"\n", 10), "too large"},
		"a long reason":        {"rules: [{name: x, on: stop, why: " + strings.Repeat("y", 2000) + "}]", "at most 1024"},
		"an unknown rule":      {"rules: [{use: bugdet}]", "did you mean budget?"},
		"a parameter":          {"rules: [{use: budget, after: 3m}]", "budget takes no after"},
		"a parameter alone":    {"rules: [{name: x, on: turn, why: y, times: 3}]", "belong to a built-in rule"},
		"a duration":           {"rules: [{use: deadline, after: soon}]", `after is "soon"`},
		"no duration":          {"rules: [{use: deadline}]", "needs after"},
		"no tools":             {"rules: [{use: required-evidence}]", "needs tools"},
		"percent":              {"rules: [{use: budget, percent: 900}]", "percent is 900"},
		"use and when":         {"rules: [{use: budget, when: turns > 3}]", "leave out when"},
		"an empty expression":  {"rules: [{name: x, on: stop, why: y, when: ' '}]", "when is empty"},
		"a number as when":     {"rules: [{name: x, on: stop, why: y, when: 3}]", "an expression in quotes"},
		"a rule of a rule":     {"rules: [{name: x, on: turn, why: y, use: {rule: budget}}]", "p.yaml:1"},
		"what is not finite":   {string(rule("turns > 1e999")), "compared with a number"},
		"hidden text in a key": {"rules: [{\u202ename: x}]", "unknown key"},
	} {
		began := cputime.Used(t)
		_, err := policy.Parse("p.yaml", []byte(c.text))
		switch {
		case name == "deep parentheses" && err == nil: // it says the same as without them
		case err == nil:
			t.Errorf("%s: it is accepted", name)
		case !errors.Is(err, policy.ErrFile) || !strings.HasPrefix(err.Error(), "p.yaml"):
			t.Errorf("%s: %v does not name the file", name, err)
		case !strings.Contains(err.Error(), c.says) || len(err.Error()) > 900:
			t.Errorf("%s: %v does not say %q", name, err, c.says)
		}
		if took := cputime.Used(t) - began; took > 5*time.Second {
			t.Errorf("%s takes %s", name, took)
		}
	}
}

// What a node shows of a policy can be set again, and means the same.
func TestAPolicyIsReadAsItIsWritten(t *testing.T) {
	first, err := policy.Parse("p.yaml", []byte(`version: 3
rules:
  - {use: budget, percent: 75}
  - {use: deadline, after: 90s, why: It is late.}
  - {use: thrash, times: 3}
  - {use: diminishing-returns}
  - {use: required-evidence, tools: [read_file, grep], agent: root}
  - {name: a, on: stop, when: '!contains(answer, "x") || turns > 3', why: y}
  - {name: b, on: stop, when: [{fact: answer, op: lacks, text: x}, {fact: turns, op: "<", number: 3}], why: y}
  - {on: turn, any: [[{fact: usd, op: ">", number: 0.5}], [{fact: depth, op: "=", number: 2}]], why: y}
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := policy.Parse("p.json", text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range second.Rules {
		second.Rules[i].Means = ""
	}
	if fmt.Sprintf("%+v", strip(first)) != fmt.Sprintf("%+v", strip(second)) {
		t.Errorf("got  %+v\nwant %+v", strip(second), strip(first))
	}
	if n := second.Rules[7].Name; n != "rule-8" {
		t.Errorf("a rule without a name is called %q", n)
	}
}

// The rules of an agent file are about its agent: also if it has the name that another agent has as its id.
func TestAnAgentCannotBringRulesAboutAnother(t *testing.T) {
	text := []byte(`[{name: a, on: stop, why: y}]`)
	for name, refused := range map[string]bool{"root": true, "root-1-0": true, "root-12": true, "rooter": false, "root-cause": false, "helper": false} {
		p, err := policy.ParseAgent("a.md", name, text)
		if (err != nil) != refused || !refused && p.Rules[0].Agent != name {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}

// A version leaves room for those of later changes: the rules of a run with a higher one could not be set again, and no
// case could be made of it.
func TestAVersionLeavesRoomForLaterOnes(t *testing.T) {
	for text, refused := range map[string]bool{"1000000000": false, "1000000001": true, "2147483647": true} {
		_, err := policy.Parse("p.yaml", []byte("version: "+text+"\nrules: [{name: a, on: stop, why: y}]"))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "leave it out") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// strip replaces pointers by what they point to.
func strip(p supervisor.Policy) (list []string) {
	for _, r := range p.Rules {
		use := ""
		if r.Use != nil {
			use = fmt.Sprintf("%+v", *r.Use)
		}
		r.Use = nil
		list = append(list, fmt.Sprintf("%+v %s", r, use))
	}
	return list
}

// FuzzParse: no file makes the reader fail, and what it accepts can be decided.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`rules: [{use: budget}, {name: a, on: stop, when: '!contains(answer, "x")', why: y}]`))
	f.Add([]byte(`{"version":1,"rules":[{"on":"turn","any":[[{"fact":"usd","op":">","number":1}]],"why":"y"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse("p", data)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		p.Decide(supervisor.OnStop, supervisor.PolicyFacts{Answer: "a"})
		p.Explain(supervisor.OnTurn, supervisor.PolicyFacts{})
	})
}
