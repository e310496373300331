package sandbox

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// BenchmarkStart runs `true` from a process of a few megabytes, and from one of a gigabyte that is written to. A start
// that copies the page tables of the process costs more the larger it is: 30 and 285 ms when the process started the
// helper itself, 60 and 48 ms since its keeper does.
func BenchmarkStart(b *testing.B) {
	for _, megabytes := range []int{0, 1000} {
		b.Run(fmt.Sprintf("%dMB", megabytes), func(b *testing.B) {
			defer writePages(make([]byte, megabytes<<20+1))()
			dir := b.TempDir()
			for b.Loop() {
				if _, err := Run(b.Context(), Spec{Command: "true", Dir: dir}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// writePages touches all pages, and then 200 of them each millisecond until stop.
func writePages(memory []byte) (stop func()) {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			for range 200 {
				memory[rand.Intn(len(memory))]++
			}
		}
	}()
	return func() { close(end); <-ended }
}
