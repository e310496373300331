package run

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/internal/workdir"
)

// copyLink copies a link. One that names the original by its path leads into the copy.
func (c *dirCopy) copyLink(path string) error {
	to, err := c.source.Readlink(path)
	if c.isLeftOut(path, err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case filepath.Clean(to) == to && filepath.IsAbs(to) && workdir.IsBelow(c.from, to):
		to = c.to + strings.TrimPrefix(to, c.from)
	case filepath.IsAbs(to), hasParent(to):
		c.links = append(c.links, path)
	}
	return c.target.Symlink(to, path)
}

// hasParent reports whether a path goes to a directory above.
func hasParent(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// turnLinks turns the links that end in the original: they lead into the copy. It names those that lead elsewhere.
func (c *dirCopy) turnLinks() error {
	for _, path := range c.links {
		to, err := c.target.Readlink(path)
		if err != nil {
			return err
		}
		end := followLink(filepath.Join(c.partial, filepath.Dir(path)), to)
		switch {
		case workdir.IsBelow(c.partial, end), workdir.IsBelow(c.to, end):
		case workdir.IsBelow(c.from, end):
			if err := c.target.Remove(path); err != nil {
				return err
			}
			if err := c.target.Symlink(c.to+strings.TrimPrefix(end, c.from), path); err != nil {
				return err
			}
		default:
			c.warn("the link %s leads out of the copy, to %s: what is written there is no fork's own", path, to)
		}
	}
	return nil
}

// followLink returns where a link in a directory ends, or would end.
func followLink(dir, to string) string {
	if !filepath.IsAbs(to) {
		to = dir + string(filepath.Separator) + to // not cleaned: a part before /../ may be a link
	}
	if end, err := filepath.EvalSymlinks(to); err == nil {
		return end
	}
	return trust.ResolvePath(filepath.Clean(to))
}

const (
	gitName    = ".git"
	gitFileMax = 1 << 20 // no more of a file of git is read
)

// leadsGitAway reports whether git in the copy would write elsewhere because of a file, which is left out then.
func (c *dirCopy) leadsGitAway(path string, info fs.FileInfo) bool {
	name, why := filepath.Base(path), ""
	switch {
	case name == gitName && info.Mode()&fs.ModeSymlink != 0:
		if to, err := c.source.Readlink(path); err == nil && !workdir.IsBelow(c.from, followLink(filepath.Join(c.from, filepath.Dir(path)), to)) {
			why = "it is a link to a repository elsewhere"
		}
	case name == gitName && info.Mode().IsRegular():
		if dir, found := strings.CutPrefix(c.readStart(path), "gitdir:"); found && c.isAway(filepath.Dir(path), strings.TrimSpace(dir)) {
			why = "its repository is elsewhere"
		}
	case (name == "config" || name == "config.worktree") && hasGitAbove(path) && info.Mode().IsRegular():
		if isAway := namesWorktree(c.readStart(path), filepath.IsAbs); isAway {
			why = "core.worktree names a directory by its whole path"
		}
	}
	if why != "" {
		c.warn("not copied: %s: %s, and git in the copy would write there", path, why)
	}
	return why != ""
}

// isAway reports whether a path in a file of git leads out of the copy.
func (c *dirCopy) isAway(dir, to string) bool {
	return filepath.IsAbs(to) || !workdir.IsBelow(c.from, followLink(filepath.Join(c.from, dir), to))
}

// hasGitAbove reports whether a path is in a directory of git.
func hasGitAbove(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(path)), "/") {
		if part == gitName {
			return true
		}
	}
	return false
}

// namesWorktree reports whether a configuration of git has a worktree that is so.
func namesWorktree(config string, is func(string) bool) bool {
	for line := range strings.Lines(config) {
		key, value, found := strings.Cut(line, "=")
		if _, after, section := strings.Cut(key, "]"); section { // the key may follow the section
			key = after
		}
		if found && strings.EqualFold(strings.TrimSpace(key), "worktree") && is(strings.Trim(strings.TrimSpace(value), `"`)) {
			return true
		}
	}
	return false
}

// readStart returns the start of a file; "": it cannot be read, and copying it says why.
func (c *dirCopy) readStart(path string) string {
	f, err := c.source.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data := make([]byte, gitFileMax)
	n, _ := f.Read(data) // "" if it fails
	return string(data[:n])
}
