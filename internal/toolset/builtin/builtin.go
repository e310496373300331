// Package builtin holds the tools that come with troupe: those that read one
// directory and its git history, write_file and edit_file. All are confined to the
// directory by os.Root: no "..", symbolic link or absolute path leads out of it.
//
// The output formats are a contract, documented at each tool: other programs parse
// them. Lines that begin with "[" at the end of a result are about the result.
// Text that looks like a secret is replaced by redact.Replacement, in place; grep matches
// the redacted text, so that a pattern cannot be used to guess a secret.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Config configures the tools of one directory.
type Config struct {
	// Writable are the paths that write_file and edit_file may write, as doublestar
	// patterns relative to the directory: "report.md", "docs/**". Default: none.
	// edit_file changes files that troupe did not write only if a pattern is "**".
	Writable []string
	// Owned reports whether a file may be overwritten although it does not have the
	// mark of a generated file (see isGenerated). Default: no such file.
	Owned func(path string) bool
	// Without are subdirectories that these tools must not see: a recording of the run
	// that uses them, files that the node trusts. Default: none.
	Without []string
	// Hidden reports whether these tools must not see a path of the directory, and Guarded whether they must not follow
	// a link to it: a permission for such a path counts only if it is named. Default: none.
	Hidden, Guarded func(path string) bool
	// Within reports whether a tool may use a path of the directory: one that links lead to, for the paths that are named
	// are decided about before. Default: any.
	Within func(tool, path string) bool
	// Exact forbids links on the way to the directory: the path was resolved before, and a link that is put there
	// later must not lead the tools elsewhere. Default: links are followed, once.
	Exact bool
	// Mask hides secrets. Default: by shape, and the values of the .env files at the top
	// of the directory.
	Mask *redact.Masker
}

// fileTools are the tools that list, read and search files.
type fileTools struct {
	ws    *toolWorkspace
	mask  *redact.Masker
	files *listingQueue
}

// Directory is a directory that is held open, and its tools: list_dir, read_file,
// grep, glob, git_log, git_show, git_blame, git_numstat, write_file and edit_file.
type Directory struct {
	Tools []tool.Tool
	named string
	root  *os.Root
}

// Current reports whether the name of the directory still leads to it. A directory that
// was removed and created again is not current. One that is only removed is: there is no other.
func (d *Directory) Current() bool {
	now, err := os.Stat(d.named)
	if err != nil {
		return true
	}
	then, err := d.root.Stat(".")
	return err == nil && os.SameFile(now, then)
}

// Removed reports whether the directory was deleted: a directory with its name is a new one. A directory that was
// moved is not removed.
func (d *Directory) Removed() bool {
	info, err := d.root.Stat(".")
	return err == nil && workdir.IsRemoved(info)
}

// Close closes the directory: later calls fail. Without Close the directory is closed
// when none of its tools is in use.
func (d *Directory) Close() error { return d.root.Close() }

// Dir makes the tools of a directory, see Directory. It stays open as long as one
// of the tools is in use.
func Dir(root string, cfg Config) ([]tool.Tool, error) {
	d, err := Open(root, cfg)
	if err != nil {
		return nil, err
	}
	return d.Tools, nil
}

// Open opens a directory and makes its tools.
func Open(root string, cfg Config) (*Directory, error) {
	named, err := filepath.Abs(root)
	abs := named
	if err == nil && !cfg.Exact {
		abs, err = filepath.EvalSymlinks(named)
	}
	if err != nil {
		return nil, fmt.Errorf("builtin: directory: %w", err)
	}
	r, _, err := workdir.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("builtin: directory: %w", err)
	}
	w := &toolWorkspace{root: r, dir: abs, hidden: cfg.Hidden, guarded: cfg.Guarded, within: cfg.Within}
	for _, name := range cfg.Without {
		if rel := excludedPath(abs, name); rel != "" {
			w.excluded = append(w.excluded, rel)
		}
	}
	mask := cfg.Mask
	if mask == nil {
		mask = redact.New(redact.Config{Values: w.readSecrets()})
	}
	files, git := &fileTools{w, mask, &listingQueue{list: (&fileIndex{w}).listFiles}}, &gitTools{w, mask}
	write := &fileWriter{ws: w, writable: cfg.Writable, owned: cfg.Owned, written: map[string]bool{}}
	d := &Directory{named: named, root: r}
	for _, make := range []func() (tool.Tool, error){
		files.listDir, files.readFile, files.grepTool, files.globTool, git.gitLog, git.gitShow, git.gitBlame, git.gitNumstat, write.writeFile, write.editFile,
	} {
		t, err := make()
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		d.Tools = append(d.Tools, t)
	}
	return d, nil
}

// excludedPath returns the path of a directory relative to one above it; "" if it does not lie below that one.
func excludedPath(dir, name string) string {
	if name == "" {
		return ""
	}
	abs, err := filepath.Abs(name)
	if real, bad := filepath.EvalSymlinks(abs); bad == nil { // a path that does not exist yet may be created later
		abs = real
	}
	rel, ok := workdir.Below(dir, abs)
	if err != nil || !ok || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

// newReadTool makes a tool of the class read.
func newReadTool[In any](name, description string, call func(ctx context.Context, in In) (string, error)) (tool.Tool, error) {
	return tool.New(name, description, model.Read, func(ctx context.Context, in In, _ tool.Call) (string, error) {
		return call(ctx, in)
	}, tool.MasksItself())
}

// Secrets returns the values of the .env files at the top of a directory, which are to
// be masked everywhere. Give them, with the configured ones, to one Masker for
// Config.Mask and for tool.Set.Masked, so that tools of other packages hide them too. The path of the directory has no
// links (workdir.Open).
func Secrets(root string) ([]string, error) {
	r, _, err := workdir.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("builtin: directory: %w", err)
	}
	defer func() { _ = r.Close() }()
	return (&toolWorkspace{root: r}).readSecrets(), nil
}
