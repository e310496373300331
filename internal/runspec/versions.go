package runspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"

	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// versionBytes is how many bytes of a hash identify a version.
const versionBytes = 8

// HashVersion returns the hash of any value that has a JSON form.
func HashVersion(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // no version: a value that cannot be encoded never counts as changed
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:versionBytes])
}

// recordedVersions are the hashes of the configuration that a run begins with.
type recordedVersions struct {
	hashes      map[string]string
	definitions []supervisor.Definition // with the hashes of their prompts
}

// recordVersions records the configuration that a run begins with, before its prompts are
// composed: a node that takes the run over compares (F4).
func (b *Builder) recordVersions(req acceptedRequest, p supervisor.Policy, run spec.Model, t toolGrants, defs []supervisor.Definition) (r recordedVersions, err error) {
	var restricted []string
	for _, name := range toolset.NamedOnly {
		if toolset.IndexTool(t.tools, name) >= 0 && !toolset.IsCommand(t.commands, name) {
			restricted = append(restricted, name)
		}
	}
	if r.hashes, err = toolVersions(b, req.workspace, restricted); err != nil {
		return r, err
	}
	r.definitions = slices.Clone(defs)
	r.hashes[spec.HooksVersion], r.hashes[spec.PolicyVersion] = HashVersion(b.cfg.Hooks), HashVersion(p)
	r.hashes[spec.RouteOf(run.Name)] = HashVersion(baseModel(run))
	for i, d := range r.definitions {
		if d.Hash == "" {
			r.definitions[i].Hash = HashVersion(d.System)
		}
		if d.Model != nil {
			r.hashes[spec.RouteOf(d.Model.Name)] = HashVersion(baseModel(*d.Model))
		}
	}
	return r, nil
}

// baseModel returns the model of a route, without the options of a particular agent.
func baseModel(m spec.Model) spec.Model {
	m.Price.Allowed = false // an option, too
	return spec.Model{Name: m.Name, Window: m.Window, Price: m.Price, Output: m.Output}
}

// toolVersions returns the versions of the tools that this node has in a directory, each
// with the class that the operator's settings give it. The directory's own file does not
// count: an agent that may write there could hide a difference, or make one. further are
// the tools that were named.
func toolVersions(b *Builder, dir string, further []string) (map[string]string, error) {
	specs, err := b.cfg.Tools.DirectorySpecs(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range further {
		t, err := b.cfg.Tools.MakeTool(name, dir, "")
		if err != nil {
			return nil, err
		}
		specs = append(specs, t.Spec())
	}
	if specs, _, err = b.cfg.Tools.ClassifyTools(specs, nil); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, s := range specs {
		versions[spec.ToolVersion+s.Name] = toolVersion(s)
	}
	return versions, nil
}

func toolVersion(s model.ToolSpec) string { return string(s.Class) + ":" + HashVersion(s) }
