package lazyregexp

import "testing"

func TestAPatternThatCannotBeCompiledPanicsInTests(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New accepted (")
		}
	}()
	New("(")
}

func TestAnExpressionIsCompiledAtItsFirstUse(t *testing.T) {
	isTest = false
	defer func() { isTest = true }()
	broken := New("(")
	if !New("^a+$").MatchString("aaa") {
		t.Error("^a+$ does not match aaa")
	}
	defer func() {
		if recover() == nil {
			t.Error("( was compiled")
		}
	}()
	broken.MatchString("a")
}
