package request

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/supervisor"
)

// completePolicy reads the policy of the user: the file of --policy, of TROUPE_POLICY or of the user's settings, or the
// rules that stand in the settings. The node adds those of the directory.
func (r *Flags) completePolicy(c *cobra.Command) error {
	if c.Flags().Changed("policy") && r.policyFile == "" {
		return exit.UsageError("name a file, or leave it out", "--policy is empty")
	}
	if r.Resume != "" {
		if c.Flags().Changed("policy") {
			return exit.UsageError("troupe policy set "+r.Resume+" FILE replaces the policy of a live run",
				"a run that is resumed has its policy already")
		}
		return nil
	}
	p, err := r.userPolicy()
	where := ""
	if err != nil && c.Flags().Changed("policy") {
		where = "--policy "
	}
	if err == nil {
		err = checkDirectoryPolicy(r.Request.Dir)
	}
	if err != nil {
		return exit.UsageError("`troupe policy test FILE` checks a policy; docs/policy.md has its form", "%s%s", where, strings.TrimPrefix(err.Error(), "policy: "))
	}
	if len(p.Rules) > 0 {
		r.Request.Policy = &p
	}
	return nil
}

func (r *Flags) userPolicy() (p supervisor.Policy, err error) {
	if r.policyFile != "" {
		return policy.Read(r.policyFile)
	}
	file := config.UserFile()
	user, err := agentfile.LoadShared(file)
	if err != nil || user.Policy == "" {
		return p, err
	}
	return policy.Parse(file, []byte(user.Policy))
}

// checkDirectoryPolicy reports errors in the policy of the settings of the directory: a node names only the
// place.
func checkDirectoryPolicy(dir string) error {
	if dir == "" {
		return nil
	}
	s, err := agentfile.LoadDirShared(dir, config.FileName)
	if err != nil {
		return err
	}
	_, err = policy.ReadSettings(filepath.Join(dir, config.FileName), workdir.Real(dir), s.Policy, s.PolicyFile)
	return err
}
