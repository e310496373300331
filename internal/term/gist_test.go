package term

import "testing"

func TestQuestionGistSaysWhatTheCallWouldDo(t *testing.T) {
	for question, want := range map[string]string{
		"May this run?\n$ ls\nrm x\n(no rule)":                                            "$ ls ⏎ rm x ⏎ (no rule)",
		"May this run?\n--- /dev/null\n+++ a.md (new file)\n@@ -0,0 +1 @@\n+x\n(no rule)": "write a.md (new file)",
		"May this run?\n--- a.md\n+++ a.md\n@@ -1 +1 @@\n-x\n+y":                          "write a.md",
		"May this run?\n$ echo\n+++ b":                                                    "$ echo ⏎ +++ b",
		"May this run?":                                                                   "May this run?",
		"Which colour?\n+++ c":                                                            "Which colour? ⏎ +++ c",
		"--- a\n+++ May this run?\n+++ c":                                                 "--- a ⏎ +++ May this run? ⏎ +++ c",
		"":                                                                                "",
	} {
		if got := QuestionGist(question); got != want {
			t.Errorf("%q: %q, not %q", question, got, want)
		}
	}
}
