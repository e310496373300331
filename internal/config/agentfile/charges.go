package agentfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// chargesKey is the key of an agent file, and of a settings file, with what is charged for agents of other programs.
const chargesKey = "delegate_charges"

// chargesMax bounds how many of them a file names.
const chargesMax = 64

// readCharges reads {HARNESS/OWNER/NAME: USD}. A name may end with /* and is then about all
// agents whose names begin so.
func readCharges(d *decoder, key string, n *yaml.Node) map[string]float64 {
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, key, "a mapping of agents of other programs to US dollars, such as {cc/derek/reviewer: 0.25}")
		return nil
	}
	if count := len(n.Content) / 2; count > chargesMax {
		d.addProblem(n.Line+1, "%s names %d agents, at most %d are read", key, count, chargesMax)
		return nil
	}
	charges := map[string]float64{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if prefix, all := strings.CutSuffix(name, "/*"); !all && CheckForeignAgent(name) != nil || all && (prefix == "" || strings.Count(prefix, "/") > 1) {
			d.addProblem(n.Content[i].Line+1, "%s: %.80q names no agent of another program; write HARNESS/OWNER/NAME, HARNESS/OWNER/*, HARNESS/* or */*", key, name)
			continue
		}
		charges[name] = d.readNumber(n.Content[i+1], key+"."+name, 0.000001, 1e6,
			"an amount in US dollars for each delegation, such as 0.25")
	}
	return charges
}

// rejectCharges refuses the charges of a directory's file: it may come from anyone, and a low charge
// would get around a limit in money.
func rejectCharges(file string, charges map[string]float64) error {
	if len(charges) == 0 {
		return nil
	}
	return &Problem{Path: file, Err: fmt.Errorf("%w: %s: a directory cannot say what agents of other programs cost: take it out here, and write it in your own file", ErrField, chargesKey)}
}

// ChargeFor returns what is charged for an agent of another program, in US dollars; 0: nothing is stated. The name
// itself precedes patterns, and of these the longest counts.
func ChargeFor(charges map[string]float64, name string) float64 {
	if usd, ok := charges[name]; ok {
		return usd
	}
	best, usd := -1, 0.0
	for pattern, amount := range charges {
		prefix, all := strings.CutSuffix(pattern, "*")
		if all && (pattern == "*/*" || strings.HasPrefix(name, prefix)) && len(pattern) > best {
			best, usd = len(pattern), amount
		}
	}
	return usd
}
