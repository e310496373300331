package agentfile

import (
	"path/filepath"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/safefile"
)

// DirectorySettings is the content of a directory's settings file, read once. Each part has
// its own error: a broken one does not hide the other.
type DirectorySettings struct {
	File      string
	Shared    SharedSettings
	SharedErr error
	Hooks     []spec.Hook
	HooksErr  error
}

// ReadDirectorySettings reads the file of settings of a directory whose path has no links (workdir.Open): see LoadDirShared.
func ReadDirectorySettings(dir, name string) DirectorySettings {
	s := DirectorySettings{File: filepath.Join(dir, name)}
	data, err := safefile.ReadBelow(dir, name, FileBytesMax)
	s.Shared, s.SharedErr = parseDirShared(s.File, dir, data, err)
	s.Hooks, _, s.HooksErr = parseHooks(s.File, data, err)
	return s
}
