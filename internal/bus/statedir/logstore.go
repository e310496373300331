package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
)

// The stores that may hold the logs of a state directory. The file "log-store" in the directory
// names its store; without it the logs are in JetStream.
const (
	LogsInJetStream = "jetstream" // streams of the embedded server
	LogsInFiles     = "local"     // files of package internal/logstore/local
	DefaultLogStore = LogsInFiles

	logStoreFileName = "log-store"
	// logsDirName is the directory of the logs in LogsInFiles, jetStreamDirName that of the
	// embedded server's store.
	logsDirName      = "logs"
	jetStreamDirName = "jetstream"
	logStoreBytesMax = 64
)

// ErrLogStore says that the logs of a state directory are not in the store that was asked for.
var ErrLogStore = errors.New("statedir: the logs are in another store")

// CheckLogStore refuses names of stores that do not exist; "" is the choice of the directory.
func CheckLogStore(name string) error {
	switch name {
	case "", LogsInJetStream, LogsInFiles:
		return nil
	}
	return fmt.Errorf("statedir: no log store is called %q: it is %s or %s", name, LogsInJetStream, LogsInFiles)
}

// LogsDir is the directory of the logs in LogsInFiles.
func LogsDir(dir string) string { return filepath.Join(dir, logsDirName) }

// ClaimLogStore returns the store that holds the logs of a state directory. A new directory gets
// the one that is asked for, or DefaultLogStore, and remembers it. The caller holds the lock of the
// directory, and nothing has been stored in it yet since it was locked.
func ClaimLogStore(dir, want string) (string, error) {
	if err := CheckLogStore(want); err != nil {
		return "", err
	}
	have, err := readLogStore(dir)
	switch {
	case err != nil:
		return "", err
	case have == "":
		have = want
		if have == "" {
			have = DefaultLogStore
		}
		return have, writeLogStore(dir, have)
	case want != "" && want != have:
		return "", fmt.Errorf("%w: the state directory %s keeps its logs in %s, not in %s: leave --log-store (log_store) out, or name another directory with --store-dir",
			ErrLogStore, dir, have, want)
	}
	return have, nil
}

// readLogStore returns the store that a directory names; "": it is new.
func readLogStore(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, logStoreFileName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(filepath.Join(dir, jetStreamDirName)); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return LogsInJetStream, nil // of a release that knew no other
	}
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(data[:min(len(data), logStoreBytesMax)]))
	if err := CheckLogStore(name); err != nil || name == "" {
		return "", fmt.Errorf("%s names no log store that this program knows: %.40q", filepath.Join(dir, logStoreFileName), data)
	}
	return name, nil
}

// writeLogStore remembers the store of a new directory. Logs outside of JetStream need the newer
// form of the directory, and first: an older program would not find the logs.
func writeLogStore(dir, name string) error {
	if name != LogsInJetStream {
		if err := safefile.Replace(filepath.Join(dir, formFileName), fmt.Appendln(nil, StateForm)); err != nil {
			return err
		}
	}
	return safefile.Replace(filepath.Join(dir, logStoreFileName), []byte(name+"\n"))
}
