package local

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// crashSector is how much of a file a power cut keeps or loses as a whole.
const crashSector = 512

// crashDisk is a disk in memory that can lose its power and can fail. Names are lost too, unless
// their directory was synced.
type crashDisk struct {
	mu     sync.Mutex
	files  map[string]*crashFile // as the process sees them
	synced map[string]*crashFile // the names that survive a power cut
	fail   error                 // of every write, sync and allocation
	full   error                 // of every write
}

type crashFile struct {
	disk    *crashDisk
	data    []byte
	durable []byte
}

func newCrashDisk() *crashDisk {
	return &crashDisk{files: map[string]*crashFile{}, synced: map[string]*crashFile{}}
}

func (d *crashDisk) setFailure(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

func (d *crashDisk) setWriteFailure(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = err
}

// cutPower returns the disk as it is after a loss of power, as the files of a directory: each sector that was not synced is
// there, is not there, or is garbage.
func (d *crashDisk) cutPower(random *rand.Rand, dir string) *crashDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newCrashDisk()
	for name, f := range d.synced {
		data := append([]byte(nil), f.durable...)
		for at := 0; at < len(data); at += crashSector {
			end := min(at+crashSector, len(data))
			if string(data[at:end]) == string(f.data[at:end]) {
				continue
			}
			switch random.IntN(4) {
			case 0, 1:
				copy(data[at:end], f.data[at:end])
			case 2:
				for i := at; i < end; i++ {
					data[i] = byte(random.Uint32())
				}
			}
		}
		g := &crashFile{disk: after, data: data, durable: append([]byte(nil), data...)}
		path := filepath.Join(dir, filepath.Base(name))
		after.files[path], after.synced[path] = g, g
	}
	return after
}

func (d *crashDisk) makeDir(dir string) error { return os.MkdirAll(dir, dirMode) } // of the table

func (d *crashDisk) list(string) (names []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.files {
		names = append(names, filepath.Base(path))
	}
	return names, nil
}

func (d *crashDisk) read(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	if f == nil {
		return nil, os.ErrNotExist
	}
	return append([]byte(nil), f.data...), nil
}

func (d *crashDisk) allocate(path string, size int64) (walFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, d.fail
	}
	f := &crashFile{disk: d, data: make([]byte, size), durable: make([]byte, size)}
	d.files[path] = f
	return f, nil
}

func (d *crashDisk) reopen(path string) (walFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[path]; f != nil {
		return f, nil
	}
	return nil, os.ErrNotExist
}

func (d *crashDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[from]
	if f == nil {
		return os.ErrNotExist
	}
	delete(d.files, from)
	d.files[to] = f
	return nil
}

func (d *crashDisk) remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, path)
	return nil
}

func (d *crashDisk) syncDir(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = map[string]*crashFile{}
	for name, f := range d.files {
		d.synced[name] = f
	}
	return nil
}

func (f *crashFile) WriteAt(p []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := cmp.Or(f.disk.fail, f.disk.full); err != nil {
		half := len(p) / 2
		copy(f.data[at:], p[:half])
		return half, err
	}
	if at+int64(len(p)) > int64(len(f.data)) {
		return 0, errors.New("the segment is too small")
	}
	return copy(f.data[at:], p), nil
}

func (f *crashFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.fail != nil {
		return f.disk.fail
	}
	copy(f.durable, f.data)
	return nil
}

func (f *crashFile) Close() error { return nil }

var errDiskFull = &os.PathError{Op: "write", Path: "wal", Err: syscall.ENOSPC}
