package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profiler writes the profiles of a measurement to a directory; "" writes none.
type profiler struct {
	dir, name string
	cpu       *os.File
}

func (p *profiler) begin() error {
	if p.dir == "" {
		return nil
	}
	var err error
	if p.cpu, err = os.Create(filepath.Join(p.dir, p.name+".cpu")); err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	return pprof.StartCPUProfile(p.cpu)
}

func (p *profiler) end() error {
	if p.dir == "" {
		return nil
	}
	pprof.StopCPUProfile()
	return errors.Join(p.cpu.Close(), p.write("allocs"))
}

// heap writes what is in use, and what the goroutines do.
func (p *profiler) heap() error {
	if p.dir == "" {
		return nil
	}
	return errors.Join(p.write("heap"), p.write("goroutine"))
}

func (p *profiler) write(kind string) error {
	file, err := os.Create(filepath.Join(p.dir, p.name+"."+kind))
	if err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	runtime.GC()
	return errors.Join(pprof.Lookup(kind).WriteTo(file, 0), file.Close())
}
