package agentfile

import (
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readPaths reads absolute paths; ~ expands to the home directory of the user whose process
// reads them.
func (d *decoder) readPaths(n *yaml.Node, key string) []string {
	list := d.readList(n, key)
	for i, p := range list {
		if rest, ok := strings.CutPrefix(p, "~/"); ok || p == "~" {
			home, err := os.UserHomeDir()
			if err != nil {
				d.addProblem(n.Line, "%s: %q: %v", key, p, err)
				continue
			}
			p = filepath.Join(home, rest)
			if list[i] == "~" {
				p = home
			}
		}
		if !filepath.IsAbs(p) {
			d.rejectValue(n, key, "absolute paths, such as /opt/go or ~/go")
		}
		list[i] = p
	}
	return list
}
