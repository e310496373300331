package main

import (
	"strings"
	"testing"
)

// On a terminal of 80 columns the texts of the help are filled: the terminal breaks no line of them.
func TestTheHelpIsFilledForTheTerminal(t *testing.T) {
	t.Parallel()
	screen := openScreen(t, newTestHome(t, nil).command("undo", "--help"), 80, 80)
	if code := screen.leave(); code != 0 {
		t.Fatalf("exit %d\n%s", code, screen)
	}
	const want = "Take back what the tools of a finished run changed in the files of its\ndirectory: each file gets the content and the mode that it had before. All of\n"
	text := strings.ReplaceAll(screen.String(), "\r\n", "\n")
	for strings.Contains(text, " \n") {
		text = strings.ReplaceAll(text, " \n", "\n")
	}
	if !strings.Contains(text, want) {
		t.Errorf("no %q:\n%s", want, text)
	}
}
