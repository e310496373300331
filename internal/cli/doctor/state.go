package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// checkState checks the state directory, its owner and what the owner wrote.
func (cs *Commands) checkState() []checkup {
	dir := statedir.StateDir(cs.Sessions.StateDir)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []checkup{{"state directory", unproven, dir + " does not exist yet", "the first run creates it"}}
	case err != nil:
		return []checkup{{"state directory", broken, err.Error(), "choose another with --store-dir"}}
	case !info.IsDir():
		return []checkup{{"state directory", broken, dir + " is not a directory", "choose another with --store-dir"}}
	}
	c := checkup{"state directory", proven, fmt.Sprintf("%s, mode %#o", dir, info.Mode().Perm()), ""}
	if info.Mode().Perm()&0o077 != 0 {
		c.Status, c.Detail, c.Remedy = unproven, c.Detail+": other users of this machine can read it", "chmod 700 "+dir
	}
	list := []checkup{c, checkWritable(dir)}
	owned, err := statedir.IsOwned(dir)
	switch {
	case err != nil:
		list = append(list, checkup{"owner", broken, err.Error(), "change the owner of the directory to your user"})
	case owned:
		list = append(list, checkOwner(dir))
	default:
		list = append(list, checkup{"owner", proven, "no process owns it; the next command can", ""})
	}
	return list
}

// checkOwner checks what the owner of a directory reports about itself.
func checkOwner(dir string) checkup {
	file, err := statedir.ReadNodeFile(dir)
	if errors.Is(err, statedir.ErrStateDir) {
		return checkup{"owner", broken, exit.PlainText(err), "chmod 700 " + dir + ", if no other user can have written to it"}
	}
	if errors.Is(err, statedir.ErrNodeFile) {
		return checkup{"owner", broken, exit.PlainText(err), "if it belongs to a node of yours, chmod 600 " + statedir.NodeFilePath(dir) + "; otherwise stop the process that owns the directory, and remove the file"}
	}
	if err != nil {
		return checkup{"owner", broken, "a process owns the directory, and " + err.Error(), "it may be starting or hanging: stop it, then try again"}
	}
	return checkup{"owner", proven, fmt.Sprintf("process %d, at %s", file.PID, cmp.Or(file.Address, file.Socket)), ""}
}

// checkWritable writes a small file to the disk and removes it.
func checkWritable(dir string) checkup {
	began := time.Now()
	if err := statedir.ProbeDisk(dir); err != nil {
		return checkup{"writing", broken, exit.PlainText(err), statedir.DiskRemedy(dir, err) + ", or choose another with --store-dir"}
	}
	return checkup{"writing", proven, "a file was written and synced in " + time.Since(began).Round(10*time.Microsecond).String(), ""}
}

// checkDisk looks at the room that is left.
func (cs *Commands) checkDisk() []checkup {
	if cs.Sessions.Conn.NamesServer() {
		return nil
	}
	dir := statedir.StateDir(cs.Sessions.StateDir)
	for {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := statedir.DiskFree(dir)
	switch {
	case err != nil:
		return []checkup{{"disk", unproven, err.Error(), "check with df"}}
	case free < 2*localserver.StoreMin:
		return []checkup{{"disk", broken, fmt.Sprintf("%d MiB are free, %d are needed", free>>20, 2*localserver.StoreMin>>20), "free some space, or choose another --store-dir"}}
	case free < 2*localserver.DiskMargin:
		return []checkup{{"disk", unproven, fmt.Sprintf("%d MiB are free: enough for now", free>>20), "free some space: troupe does not use the last GiB"}}
	}
	return []checkup{{"disk", proven, fmt.Sprintf("%.1f GiB are free", float64(free)/(1<<30)), ""}}
}
