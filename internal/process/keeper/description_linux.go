package keeper

import (
	"errors"
	"syscall"
)

// Description says how a keeper starts its program.
type Description struct {
	Files int // further descriptors of the program, from 3
	Attr  *syscall.SysProcAttr
}

// errDescription is a text that is no description.
var errDescription = errors.New("not the numbers of a program")

// Numbers is the text form of a description. It has only the attributes that the sandbox and process groups need.
// ParseDescription leaves all other attributes unset.
func (d Description) Numbers() string {
	attr := d.Attr
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	list := []int64{int64(d.Files), numberOf(attr.Setsid), numberOf(attr.Setpgid), int64(attr.Cloneflags), int64(len(attr.AmbientCaps))}
	for _, c := range attr.AmbientCaps {
		list = append(list, int64(c))
	}
	for _, ids := range [][]syscall.SysProcIDMap{attr.UidMappings, attr.GidMappings} {
		list = append(list, int64(len(ids)))
		for _, m := range ids {
			list = append(list, int64(m.ContainerID), int64(m.HostID), int64(m.Size))
		}
	}
	text := ""
	for i, n := range list {
		if i > 0 {
			text += " "
		}
		text += formatNumber(n)
	}
	return text
}

func numberOf(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// numberReader reads the numbers of a description. failed is true once one was missing.
type numberReader struct {
	text   string
	failed bool
}

func (r *numberReader) next() int {
	n, rest, ok := nextNumber(r.text)
	r.text, r.failed = rest, r.failed || !ok
	return int(n)
}

// count returns a number of numbers that follow.
func (r *numberReader) count() int {
	n := r.next()
	if n < 0 || n > len(r.text) {
		r.failed = true
	}
	if r.failed {
		return 0
	}
	return n
}

func (r *numberReader) idMaps() (list []syscall.SysProcIDMap) {
	for range r.count() {
		list = append(list, syscall.SysProcIDMap{ContainerID: r.next(), HostID: r.next(), Size: r.next()})
	}
	return list
}

// ParseDescription is the inverse of Numbers.
func ParseDescription(numbers string) (Description, error) {
	r := &numberReader{text: numbers}
	d := Description{Files: r.next(), Attr: &syscall.SysProcAttr{Setsid: r.next() == 1, Setpgid: r.next() == 1, Cloneflags: uintptr(r.next())}}
	for range r.count() {
		d.Attr.AmbientCaps = append(d.Attr.AmbientCaps, uintptr(r.next()))
	}
	d.Attr.UidMappings, d.Attr.GidMappings = r.idMaps(), r.idMaps()
	if r.failed || r.text != "" || d.Files < 0 {
		return Description{}, errDescription
	}
	return d, nil
}
