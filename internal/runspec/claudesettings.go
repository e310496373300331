package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
)

// claudeSettings reads the settings of Claude Code: the user's own, if this node reads them, then those of the
// directory. The user's own only take trust away in a run that no command of the user starts.
func (b *Builder) claudeSettings(workspace string, isOwn bool) ([]agentfile.ClaudeSettings, error) {
	list, err := agentfile.ReadClaudeSettings(b.cfg.ClaudeHome, workspace, func(path, digest string) bool {
		return isOwn && b.cfg.Trust.TrustsFile(path, digest, workspace)
	})
	if err != nil {
		return nil, refuse.Bad("`troupe config validate` in the directory shows all errors; docs/permissions.md#settings-of-claude-code says which rules count", "settings of Claude Code: %s", b.cfg.Trust.DescribeErrors(err))
	}
	return list, nil
}

// withClaudeRules adds the rules of files of Claude Code, and the modes of those that only take trust away.
func withClaudeRules(p spec.Permissions, files []agentfile.ClaudeSettings) spec.Permissions {
	for _, f := range files {
		own := f.Permissions
		p.Allow, p.Ask, p.Deny = slices.Concat(p.Allow, own.Allow), slices.Concat(p.Ask, own.Ask), slices.Concat(p.Deny, own.Deny)
		if !f.Own && own.Mode != "" {
			p.Mode = permission.StricterMode(own.Mode, p.Mode)
		}
	}
	return p
}

// claudeMode returns the mode of the user's own file, which counts if troupe's own settings have none.
func claudeMode(files []agentfile.ClaudeSettings) spec.PermissionMode {
	if len(files) > 0 && files[0].Own {
		return files[0].Permissions.Mode
	}
	return ""
}

// noteClaudeSettings names what of the settings of Claude Code does not hold, once for a run.
func noteClaudeSettings(files []agentfile.ClaudeSettings) (warnings []string) {
	for _, f := range files {
		if len(f.Without) == 0 {
			continue
		}
		p := f.Permissions
		note := f.Name + ": without effect here: " + strings.Join(f.Without, "; ")
		if n := len(p.Allow) + len(p.Ask) + len(p.Deny); n > 0 {
			note += fmt.Sprintf(" (%d of its permission rules hold)", n)
		}
		warnings = append(warnings, note)
	}
	return warnings
}
