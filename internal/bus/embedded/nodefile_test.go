package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// Whoever may write node.json decides where prompts go. One that comes with a
// repository, from another user, or that leads off this machine is not followed.
//
//behaviour:shows C2
func TestANodeFileThatIsNotOursIsNotFollowed(t *testing.T) {
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	said := func(address string) string {
		return fmt.Sprintf(`{"address":%q,"socket":"/nowhere","user":"client","password":"x","pid":1}`, address)
	}
	for _, address := range []string{"nats://evil.example:4222", "nats://10.0.0.7:4222", "nats://0.0.0.0:4222", e.URL() + ",nats://10.0.0.7:4222",
		"ws://127.0.0.1:4222", "nats://127.0.0.1@10.0.0.7:4222", "nats://127.0.0.1.evil.example:4222", "127.0.0.1:4222"} {
		dir := privateDir(t)
		if err := os.WriteFile(statedir.NodeFilePath(dir), []byte(said(address)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNodeFile) || !strings.Contains(err.Error(), statedir.NodeFilePath(dir)) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if runtime.GOOS == "windows" {
		return // no modes, and links need a right
	}
	for says, put := range map[string]func(path string) error{
		"accessible to other users": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(said(e.URL())), 0o600), os.Chmod(path, 0o644))
		},
		"not a regular file": func(path string) error {
			there := filepath.Join(filepath.Dir(path), "there")
			return errors.Join(os.WriteFile(there, []byte(said(e.URL())), 0o600), os.Symlink(there, path))
		},
		"another user": func(path string) error {
			if os.Geteuid() != 0 { // only root can give a file away
				return errors.ErrUnsupported
			}
			return errors.Join(os.WriteFile(path, []byte(said(e.URL())), 0o600), os.Chown(path, 12345, -1))
		},
	} {
		dir := privateDir(t)
		if err := put(statedir.NodeFilePath(dir)); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNodeFile) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// privateDir is a directory as an owner makes it.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
