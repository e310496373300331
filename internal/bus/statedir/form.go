package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
)

// StateForm is the newest form of a state directory that this program knows: one whose logs may be
// in another store than JetStream. The file "form" in the directory names its form; a directory
// without one has firstForm.
const (
	StateForm = 2
	firstForm = 1
)

const formFileName = "form"

// ErrNewerForm says that data has a form that this program does not know.
var ErrNewerForm = errors.New("written by a newer troupe: upgrade this one")

// CheckForm refuses a state directory of a newer form, before anything in it is touched.
func CheckForm(dir string) error {
	path := filepath.Join(dir, formFileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	form, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("%s does not say which form the state directory has: %.40q", path, data)
	}
	if form > StateForm {
		return fmt.Errorf("the state directory %s has form %d, and this program knows forms up to %d: %w", dir, form, StateForm, ErrNewerForm)
	}
	return nil
}

// WriteForm records firstForm in a directory that has no form file yet. The caller holds the
// lock of the directory; CheckForm of another program, which does not, sees the whole file or
// none.
func WriteForm(dir string) error {
	path := filepath.Join(dir, formFileName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return safefile.Replace(path, fmt.Appendln(nil, firstForm))
}
