package agentfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/safefile"
)

// ProjectFile is the file of the user's rules for one directory. It is in the user's configuration, never in the
// directory: what a repository brings must not allow anything.
func ProjectFile(configDir, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(configDir, "projects", hex.EncodeToString(sum[:8])+".yaml")
}

// projectRules is the form of such a file.
type projectRules struct {
	Dir         string `yaml:"dir"`
	Permissions struct {
		Allow []string `yaml:"allow,omitempty"`
		Ask   []string `yaml:"ask,omitempty"`
		Deny  []string `yaml:"deny,omitempty"`
		// The others are kept by who adds a rule.
		AllowTainted []string `yaml:"allow_tainted,omitempty"`
		Approvals    int      `yaml:"approvals,omitempty"`
		Taint        string   `yaml:"taint,omitempty"`
		TaintFiles   bool     `yaml:"taint_files,omitempty"`
	} `yaml:"permissions"`
}

// LoadProject reads the user's rules for a directory. configDir is the directory of the user's settings.
func LoadProject(configDir, dir string) (spec.Permissions, error) {
	file := ProjectFile(configDir, dir)
	data, err := safefile.Read(file, FileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return spec.Permissions{}, nil
	}
	if err != nil {
		return spec.Permissions{}, fmt.Errorf("agentfile: rules for %s: %w", dir, err)
	}
	root, err := parseDocument(data)
	if err != nil || root.Kind != yaml.MappingNode {
		return spec.Permissions{}, fmt.Errorf("%s: %w: it must have the keys dir and permissions", file, ErrField)
	}
	var p spec.Permissions
	d := newDecoder(file, &Definition{})
	d.strict = true
	shiftLinesUp(root)
	d.readFields(root, "", map[string]fieldReader{
		"dir": func(d *decoder, k string, n *yaml.Node) {
			if d.readText(n, k) != dir {
				d.addProblem(n.Line+1, "the file is about another directory")
			}
		},
		"permissions": func(d *decoder, k string, n *yaml.Node) { d.readPermissions(k, n, &p) },
	})
	return p, errors.Join(d.problems...)
}

// AllowInProject adds a rule that allows to the user's rules for a directory, and returns the file.
func AllowInProject(configDir, dir, rule string) (file string, err error) {
	file = ProjectFile(configDir, dir)
	if _, err := ParseRule(rule, file, true); err != nil {
		return file, err
	}
	if _, err := LoadProject(configDir, dir); err != nil { // the user must fix a broken file
		return file, err
	}
	p := projectRules{Dir: dir}
	data, err := safefile.Read(file, FileBytesMax)
	if err == nil {
		err = yaml.Unmarshal(data, &p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, fmt.Errorf("agentfile: rules for %s: %w", dir, err)
	}
	if slices.Contains(p.Permissions.Allow, rule) {
		return file, nil
	}
	p.Permissions.Allow = append(p.Permissions.Allow, rule)
	var text strings.Builder
	text.WriteString("# Your rules for one directory. `troupe answer` adds to them; remove what you no longer want.\n")
	body, err := yaml.Marshal(p)
	if err != nil {
		return file, fmt.Errorf("agentfile: rules for %s: %w", dir, err)
	}
	text.Write(body)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return file, fmt.Errorf("agentfile: rules for %s: %w", dir, err)
	}
	if err := safefile.Replace(file, []byte(text.String())); err != nil {
		return file, fmt.Errorf("agentfile: rules for %s: %w", dir, err)
	}
	return file, nil
}
