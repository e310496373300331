// Package npm installs programs of other people that tests are judged by, from
// the npm registry, as a package-lock.json pins them: once for each lock file,
// in the user's cache directory.
package npm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// InstallTimeout bounds one installation.
const InstallTimeout = 10 * time.Minute

const stopTimeout = 5 * time.Second

// ErrTool means that a required program is missing.
var ErrTool = errors.New("npm: needs Node.js 20 or later with npm on PATH")

var manifest = []string{"package.json", "package-lock.json"}

// Install installs the packages that two files, package.json and
// package-lock.json, define, and returns the directory node_modules. It runs no script of a
// package.
func Install(ctx context.Context, name string, files fs.FS) (string, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%w: %v", ErrTool, err)
		}
	}
	lock, err := fs.ReadFile(files, manifest[1])
	if err != nil {
		return "", fmt.Errorf("npm: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("npm: %w", err)
	}
	sum := sha256.Sum256(lock)
	root := filepath.Join(cache, "troupe", "e2e")
	dir := filepath.Join(root, name+"-"+hex.EncodeToString(sum[:6]))
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("npm: %w", err)
	}
	// Installed in a temporary place and renamed, so that two tests can install at once
	// and neither sees a partial installation.
	aside, err := os.MkdirTemp(root, "installing-")
	if err != nil {
		return "", fmt.Errorf("npm: %w", err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if err := install(ctx, aside, files); err != nil {
		return "", err
	}
	if err := os.Rename(aside, dir); err != nil {
		if _, there := os.Stat(modules); there != nil {
			return "", fmt.Errorf("npm: %w", err)
		}
	}
	return modules, nil
}

func install(ctx context.Context, dir string, files fs.FS) error {
	for _, name := range manifest {
		data, err := fs.ReadFile(files, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("npm: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, InstallTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	cmd.WaitDelay = stopTimeout
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm: npm ci: %w\n%s", err, out)
	}
	return nil
}
