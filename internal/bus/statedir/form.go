package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// StateForm is the newest form of a state directory that this program knows. The file
// "form" in the directory names its form; a directory without one has form 1.
const StateForm = 1

const formFileName = "form"

// ErrNewer says that data has a form that this program does not know.
var ErrNewer = errors.New("written by a newer troupe: upgrade this one")

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
		return fmt.Errorf("the state directory %s has form %d, and this program knows forms up to %d: %w", dir, form, StateForm, ErrNewer)
	}
	return nil
}

// WriteForm records the form of a directory that has no form file yet.
func WriteForm(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, formFileName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = fmt.Fprintln(f, StateForm)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return err
	}
	return nil
}
