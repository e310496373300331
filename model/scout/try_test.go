package scout_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	dir := os.Getenv("TRY")
	if dir == "" {
		return
	}
	prompt := os.Getenv("PROMPT")
	if prompt == "" {
		prompt = "Investigate this repository and write report.md"
	}
	d := newDriver(t, directoryTools(dir))
	at := time.Now()
	text := d.run("coordinator", prompt)
	fmt.Println(text)
	for n, v := range d.tokens {
		fmt.Printf("%s tokens=%d turns=%d resultbytes=%d\n", n, v, d.turns[n], d.peak[n])
	}
	fmt.Println("total", d.total(), time.Since(at))
	if os.Getenv("CHILDREN") != "" {
		for n, s := range d.texts {
			fmt.Println("==", n, len(s))
			fmt.Println(s)
		}
	}
}
