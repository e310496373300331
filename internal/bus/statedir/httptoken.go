package statedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
)

// HTTPTokenName is the file with the token of the HTTP server. It stays the same for all owners of
// the directory, so that the settings of a monitor remain right.
const HTTPTokenName = "http.token"

// httpTokenMax is the most bytes of the file that are read.
const httpTokenMax = 4 << 10

// HTTPTokenPath is the file with the token of the HTTP server of a state directory.
func HTTPTokenPath(dir string) string { return filepath.Join(dir, HTTPTokenName) }

// ErrHTTPToken says that this user's troupe did not write the token of the HTTP server, or that
// others can read it.
var ErrHTTPToken = errors.New("statedir: the HTTP token cannot be trusted")

// ReadHTTPToken reads the token of a state directory; "" if there is none yet.
func ReadHTTPToken(dir string) (string, error) {
	path := HTTPTokenPath(dir)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = checkNodeFile(info)
	}
	if err == nil {
		err = CheckPrivate(dir)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s %w: remove it, and the next node writes another", ErrHTTPToken, path, err)
	}
	raw, err := safefile.Read(path, httpTokenMax)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrHTTPToken, err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// NewHTTPToken makes a token that cannot be guessed.
func NewHTTPToken() string { return rand.Text() }

// WriteHTTPToken writes the token of a state directory that this process owns.
func WriteHTTPToken(dir, token string) error {
	if err := safefile.Replace(HTTPTokenPath(dir), []byte(token+"\n")); err != nil {
		return fmt.Errorf("statedir: write %s: %w", HTTPTokenName, err)
	}
	return nil
}
