package agentfile

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/a2aclient"
)

// a2aKey is the key of a settings file that names agents of the protocol A2A.
const a2aKey = "a2a_agents"

// a2aAgentsMax bounds how many of them a file names.
const a2aAgentsMax = 64

// readA2AAgents reads {NAME: {url: https://…, endpoint: …, token_env: VARIABLE, token_header: …}}.
func readA2AAgents(d *decoder, key string, n *yaml.Node) (list []a2aclient.Agent) {
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, key, "a mapping of names, such as {reviewer: {url: https://agents.example.com}}")
		return nil
	}
	if count := len(n.Content) / 2; count > a2aAgentsMax {
		d.addProblem(n.Line+1, "%s names %d agents, at most %d are read", key, count, a2aAgentsMax)
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		a := a2aclient.Agent{Name: n.Content[i].Value}
		within, before := fmt.Sprintf("%s.%.80s.", key, a.Name), len(d.problems)
		text := func(into *string) fieldReader {
			return func(d *decoder, k string, n *yaml.Node) { *into = d.readText(n, k) }
		}
		d.readFields(n.Content[i+1], within, map[string]fieldReader{"url": text(&a.URL), "endpoint": text(&a.Endpoint), "token_env": text(&a.TokenEnv), "token_header": text(&a.TokenHeader)})
		line := n.Content[i].Line + 1
		switch err := a.Validate(); {
		case len(d.problems) > before: // its fields
		case err != nil:
			d.addProblem(line, "%v", err)
		case slices.ContainsFunc(list, func(b a2aclient.Agent) bool { return b.Name == a.Name }):
			d.addProblem(line, "%s.%s is set twice; keep one", key, a.Name)
		default:
			list = append(list, a)
		}
	}
	return list
}

// rejectA2AAgents refuses the agents of a directory's file: it may come from anyone, and would lead tasks and
// credentials to servers of its choice.
func rejectA2AAgents(file string, list []a2aclient.Agent) error {
	if len(list) == 0 {
		return nil
	}
	return &Problem{Path: file, Err: fmt.Errorf("%w: %s: a directory cannot say where agents of other programs are: take it out here, and write it in your own file", ErrField, a2aKey)}
}
