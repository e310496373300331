package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
)

// Bounds of the variables of one file.
const (
	claudeEnvMax      = 100
	claudeEnvBytesMax = 32 << 10
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedVariable matches variables that no file gives to commands: troupe and its sandbox set them, or they hold
// keys and addresses of model providers, which the commands of a model must not have.
var reservedVariable = lazyregexp.New(`^(TROUPE_.*|HOME|TMPDIR|TERM|PWD|CLAUDE_PROJECT_DIR|(ANTHROPIC|OPENAI|GEMINI|GOOGLE_GEMINI|OLLAMA)_.*|GOOGLE_API_KEY)$`)

// LoadClaudeEnv reads the key `env` of the user's own settings.json: NAME=value, sorted, for commands that agents,
// hooks and MCP servers of the user run. A missing file has none.
func LoadClaudeEnv(file string) ([]string, error) {
	data, err := safefile.Read(file, FileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("env: %w", err)
	}
	root, err := parseJSON(file, data)
	if err != nil {
		return nil, err
	}
	d := newDecoder(file, &Definition{})
	var env []string
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "env" {
			env, _ = readVariables(d, "env", root.Content[i+1])
		}
	}
	return env, errors.Join(d.problems...)
}

// readVariables reads variables of commands, and the names of those that are left out.
func readVariables(d *decoder, key string, n *yaml.Node) (env, reserved []string) {
	switch {
	case n.Tag == "!!null":
		return nil, nil
	case n.Kind != yaml.MappingNode:
		d.rejectValue(n, key, `an object of variables, such as {"CI": "1"}`)
		return nil, nil
	case len(n.Content) > 2*claudeEnvMax:
		d.addProblem(n.Line+1, "%s: more than %d variables", key, claudeEnvMax)
		return nil, nil
	}
	size := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		size += len(name.Value) + len(value.Value)
		switch {
		case !variableName.MatchString(name.Value):
			d.addProblem(name.Line+1, "%s: %.40q is not the name of a variable", key, printable(name.Value))
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null" || strings.Contains(value.Value, "\x00"): // the value may be a secret
			d.addProblem(value.Line+1, "%s: the value of %.40s must be a text without NUL", key, name.Value)
		case reservedVariable.MatchString(name.Value):
			reserved = append(reserved, name.Value)
		default:
			env = append(env, name.Value+"="+value.Value)
		}
	}
	if size > claudeEnvBytesMax {
		d.addProblem(n.Line+1, "%s: more than %d KiB in all", key, claudeEnvBytesMax>>10)
	}
	slices.Sort(env)
	return env, reserved
}

// checkEnv names the variables that have no effect. LoadClaudeEnv returns the others.
func (r *claudeReader) checkEnv(d *decoder, key string, n *yaml.Node) {
	if !r.isUser {
		r.out.Without = append(r.out.Without, "env (this file may come from anyone: set variables in "+claudeUserName+")")
		return
	}
	env, reserved := readVariables(d, key, n)
	r.out.HasEnv = len(env) > 0
	switch {
	case !r.out.Own && len(n.Content) > 0:
		r.out.Without = append(r.out.Without, "env of shell commands ("+ownRunsOnly+")")
	case len(reserved) > 0:
		r.out.Without = append(r.out.Without, "env."+clip.Names(reserved, namedMax)+" (troupe sets them, or they are for model providers: set those in the environment of troupe)")
	}
}

// ownRunsOnly says where the user's own file grants what it grants.
const ownRunsOnly = "it counts in runs that a command of yours starts, where they cannot change the file"
