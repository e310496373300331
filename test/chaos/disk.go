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

// lossyDisk is an ext4 file system in a file that can lose its power: then data that the kernel has not
// written is lost, also from its journal.
type lossyDisk struct {
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
func newDisk(image, mount string) (*lossyDisk, error) {
	d := &lossyDisk{image: image, mount: mount}
	f, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskBytes), f.Close(), os.MkdirAll(mount, 0o755)); err != nil {
		return nil, err
	}
	if err := runCommand("mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisks, err)
	}
	if err := d.mountDisk(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDisks, err)
	}
	return d, nil
}

// runCommand runs a command of the system.
func runCommand(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// mountDisk mounts the disk; ext4 replays its journal as after any loss of power. The
// loop device goes with the mount.
func (d *lossyDisk) mountDisk() error {
	err := runCommand("mount", "-o", "loop", d.image, d.mount)
	d.mounted = err == nil
	return err
}

// cutPower cuts the power.
func (d *lossyDisk) cutPower() error {
	f, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	return errors.Join(shutdownFS(f), f.Close())
}

// unmountDisk unmounts the disk, once its users are gone.
func (d *lossyDisk) unmountDisk() error {
	if !d.mounted {
		return nil
	}
	var err error
	for range 50 {
		if err = runCommand("umount", d.mount); err == nil {
			d.mounted = false
			return nil
		}
		time.Sleep(poll)
	}
	return errors.Join(err, runCommand("umount", "-l", d.mount))
}

// mountDisks gives each server its own disk, before any is started.
func (s *servers) mountDisks() error {
	s.disks = map[string]*lossyDisk{}
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
		errs = append(errs, d.unmountDisk())
	}
	return errors.Join(errs...)
}

// losePower cuts the power of some servers at once, and restores it.
func (s *servers) losePower(some ...*natsServer) error {
	var errs []error
	for _, one := range some {
		errs = append(errs, s.disks[one.name].cutPower())
	}
	for _, one := range some {
		errs = append(errs, s.killServer(one))
	}
	for _, one := range some {
		errs = append(errs, s.disks[one.name].unmountDisk(), s.disks[one.name].mountDisk())
	}
	return errors.Join(errs...)
}
