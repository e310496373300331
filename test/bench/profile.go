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
	allocs, err := os.Create(filepath.Join(p.dir, p.name+".allocs"))
	if err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	runtime.GC()
	return errors.Join(p.cpu.Close(), pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close())
}
