package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// disk is the file system of the write-ahead log.
type disk interface {
	makeDir(dir string) error
	// list returns the names of the files of a directory.
	list(dir string) ([]string, error)
	read(path string) ([]byte, error)
	// allocate creates a file with room for size bytes. It overwrites an existing one.
	allocate(path string, size int64) (walFile, error)
	// reopen opens an existing file for writing.
	reopen(path string) (walFile, error)
	rename(from, to string) error
	remove(path string) error
	// syncDir makes the names in a directory durable.
	syncDir(dir string) error
}

// walFile is a file of the write-ahead log. Sync makes what was written durable.
type walFile interface {
	io.WriterAt
	Sync() error
	Close() error
}

// osDisk is the file system of the machine.
type osDisk struct{}

const dirMode, fileMode = 0o700, 0o600

func (osDisk) makeDir(dir string) error { return os.MkdirAll(dir, dirMode) }

func (osDisk) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (osDisk) read(path string) ([]byte, error) { return os.ReadFile(filepath.Clean(path)) }

func (osDisk) allocate(path string, size int64) (walFile, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_TRUNC|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	err = allocateBlocks(f, size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return dataFile{f}, nil
}

func (osDisk) reopen(path string) (walFile, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	return dataFile{f}, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error { return os.Remove(path) }

// dataFile is a file whose Sync leaves out what a read does not need, as the time of the last
// change.
type dataFile struct{ *os.File }

func (f dataFile) Sync() error { return syncData(f.File) }
