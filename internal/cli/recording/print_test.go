package recording

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/runfile"
)

// TestAttackADumpDoesNotTurnATerminalRound: the result of a run has the words of a model. A terminal shows its hidden
// characters, and a file has them as they are.
func TestAttackADumpDoesNotTurnATerminalRound(t *testing.T) {
	const hidden = "\u202e"
	f := runfile.File{Header: runfile.Header{Troupe: runfile.Kind, Version: 1, Run: "r", Result: json.RawMessage(`{"text":"pay ` + hidden + `001"}`)}}
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer terminal.Close()
	dumped := make(chan error, 1)
	go func() { dumped <- (&Commands{Console: &console.Console{Out: terminal}}).writeDump(f, "") }()
	shown, err := bufio.NewReader(screen).ReadString('\n')
	if err != nil || strings.Contains(shown, hidden) || !strings.Contains(shown, `pay \u202e001`) {
		t.Errorf("%q, %v", shown, err)
	}
	if err := <-dumped; err != nil {
		t.Error(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "dump"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := (&Commands{Console: &console.Console{Out: file}}).writeDump(f, ""); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file.Name()); err != nil || !strings.Contains(string(data), hidden) {
		t.Errorf("%q, %v", data, err)
	}
}
