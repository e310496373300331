package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ruleDocument is a rule as people write it: `when` is a list of conditions or an expression, and `use` names a
// built-in rule, whose parameters are further fields.
type ruleDocument struct {
	Name    string          `json:"name,omitempty"`
	Use     string          `json:"use,omitempty"`
	On      string          `json:"on,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	When    json.RawMessage `json:"when,omitempty"`
	Any     [][]Condition   `json:"any,omitempty"`
	Why     string          `json:"why,omitempty"`
	Percent float64         `json:"percent,omitempty"`
	After   string          `json:"after,omitempty"`
	Times   int             `json:"times,omitempty"`
	Tools   []string        `json:"tools,omitempty"`
	Means   string          `json:"means,omitempty"`
	Source  string          `json:"source,omitempty"`
}

// MarshalJSON writes a rule as people write it, so that what a run shows can be set again.
func (r Rule) MarshalJSON() ([]byte, error) {
	d := ruleDocument{Name: r.Name, On: r.On, Agent: r.Agent, Why: r.Why, Source: r.Source}
	var err error
	switch {
	case r.Use != nil:
		if d.Means = r.Means; len(r.When)+len(r.Any) > 0 {
			d.Means = r.Describe()
		}
		d.Use, d.Percent, d.Times, d.Tools = r.Use.Rule, r.Use.Percent, r.Use.Times, r.Use.Tools
		if r.Use.AfterMS != 0 {
			d.After = (time.Duration(r.Use.AfterMS) * time.Millisecond).String()
		}
	case r.Expression != "":
		d.When, err = json.Marshal(r.Expression)
	default:
		d.Any = r.Any
		if len(r.When) > 0 {
			d.When, err = json.Marshal(r.When)
		}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// UnmarshalJSON reads a rule as people write it. An unknown key is an error: without a condition that it misspells, a
// rule would hold always.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var d ruleDocument
	if err := decodeStrictly(data, &d); err != nil {
		return err
	}
	*r = Rule{Name: d.Name, On: d.On, Agent: d.Agent, Any: d.Any, Why: d.Why, Means: d.Means, Source: d.Source}
	hasCondition := len(d.When) > 0 && string(d.When) != "null"
	parameters := d.Percent != 0 || d.After != "" || d.Times != 0 || len(d.Tools) > 0
	switch {
	case d.Use != "" && (hasCondition || len(d.Any) > 0):
		return fmt.Errorf("%w: rule %.80q: use cannot be combined with when or any: leave out when and any", ErrPolicy, d.Name)
	case d.Use == "" && parameters:
		return fmt.Errorf("%w: rule %.80q: percent, after, times and tools belong to a built-in rule: name it with use", ErrPolicy, d.Name)
	case d.Use != "":
		r.Use = &BuiltIn{Rule: d.Use, Percent: d.Percent, Times: d.Times, Tools: d.Tools}
		if d.After == "" {
			return nil
		}
		after, err := time.ParseDuration(d.After)
		if err != nil || after < time.Millisecond {
			return fmt.Errorf("%w: rule %.80q: after is %.40q, it must be a duration such as 90s or 10m", ErrPolicy, d.Use, d.After)
		}
		r.Use.AfterMS = after.Milliseconds()
		return nil
	case !hasCondition:
		return nil
	case d.When[0] == '"':
		if err := json.Unmarshal(d.When, &r.Expression); err != nil {
			return err
		}
		if strings.TrimSpace(r.Expression) == "" {
			return fmt.Errorf("%w: rule %.80q: when is empty: leave it out for a rule that always holds", ErrPolicy, d.Name)
		}
		if len(d.Any) > 0 {
			return fmt.Errorf("%w: rule %.80q: any cannot be combined with an expression; use || in it", ErrPolicy, d.Name)
		}
		return nil
	}
	if d.When[0] != '[' {
		return fmt.Errorf("%w: rule %.80q: when is an expression in quotes, or a list of conditions", ErrPolicy, d.Name)
	}
	return decodeStrictly(d.When, &r.When)
}

// decodeStrictly decodes JSON, and refuses keys that the value does not have.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if key, unknown := strings.CutPrefix(text, "unknown field "); unknown {
		keys := []string{"name", "use", "on", "agent", "when", "any", "why", "percent", "after", "times", "tools"}
		if _, inCondition := into.(*[]Condition); inCondition {
			keys = []string{"fact", "op", "text", "number"}
		}
		return fmt.Errorf("%w: unknown key %s; the keys are %s", ErrPolicy, key, strings.Join(slices.Clip(keys), ", "))
	}
	if key, _, isType := strings.Cut(text, " of type "); isType && strings.Contains(text, "cannot unmarshal") {
		_, field, _ := strings.Cut(key, ".")
		return fmt.Errorf("%w: %s has another type than a rule needs", ErrPolicy, strings.TrimSpace("a value "+field))
	}
	return fmt.Errorf("%w: %s", ErrPolicy, text)
}
