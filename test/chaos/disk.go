package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// disk is an ext4 file system in a file that can lose its power: then data that the kernel has not
// written is lost, also from its journal.
type disk struct {
	image, mount string
	mounted      bool
}

var (
	// errMissing means that this machine or user lacks what a scenario needs.
	errMissing = errors.New("not run: this needs")
	// errNoDisks means that it cannot mount file systems.
	errNoDisks = fmt.Errorf("%w root, loop devices and mkfs.ext4 on Linux", errMissing)
)

// diskBytes is the size of a disk. The file is sparse: only written blocks take space.
const diskBytes = 16 << 30

// newDisk makes a disk and mounts it at a directory.
func newDisk(image, mount string) (*disk, error) {
	d := &disk{image: image, mount: mount}
	f, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskBytes), f.Close(), os.MkdirAll(mount, 0o755)); err != nil {
		return nil, err
	}
	if err := do("mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisks, err)
	}
	if err := d.on(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisks, err)
	}
	return d, nil
}

// do runs a command of the system.
func do(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// on mounts the disk; ext4 replays its journal as after any loss of power. The
// loop device goes with the mount.
func (d *disk) on() error {
	err := do("mount", "-o", "loop", d.image, d.mount)
	d.mounted = err == nil
	return err
}

// cut cuts the power.
func (d *disk) cut() error {
	f, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	return errors.Join(shutdown(f), f.Close())
}

// off unmounts the disk, once its users are gone.
func (d *disk) off() error {
	if !d.mounted {
		return nil
	}
	var err error
	for range 50 {
		if err = do("umount", d.mount); err == nil {
			d.mounted = false
			return nil
		}
		time.Sleep(poll)
	}
	return errors.Join(err, do("umount", "-l", d.mount))
}

// mountDisks gives each server its own disk, before any is started.
func (s *servers) mountDisks() error {
	s.disks = map[string]*disk{}
	for _, one := range s.list {
		d, err := newDisk(filepath.Join(s.dir, one.name+".img"), one.store)
		if err != nil {
			return err
		}
		s.disks[one.name] = d
	}
	return nil
}

// unmountDisks unmounts the mounted disks.
func (s *servers) unmountDisks() error {
	var errs []error
	for _, d := range s.disks {
		errs = append(errs, d.off())
	}
	return errors.Join(errs...)
}

// lose cuts the power of some servers at once, and restores it.
func (s *servers) lose(some ...*natsServer) error {
	var errs []error
	for _, one := range some {
		errs = append(errs, s.disks[one.name].cut())
	}
	for _, one := range some {
		errs = append(errs, s.kill(one))
	}
	for _, one := range some {
		errs = append(errs, s.disks[one.name].off(), s.disks[one.name].on())
	}
	return errors.Join(errs...)
}
