package builtin

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

// wantMatch is what doublestar says, which compileGlob shortens.
func wantMatch(pattern, name string, base bool) bool {
	if base && !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(pattern, name)
}

func checkGlob(t rapid.TB, pattern string, names ...string) {
	for _, base := range []bool{false, true} {
		match, err := compileGlob(pattern, base)
		if (err == nil) != doublestar.ValidatePattern(pattern) {
			t.Fatalf("%q: %v", pattern, err)
		}
		for _, name := range names {
			if err == nil && match(name) != wantMatch(pattern, name, base) {
				t.Fatalf("%q matches %q: %v, doublestar says %v (base %v)", pattern, name, match(name), !match(name), base)
			}
		}
	}
}

// TestGlobAgreesWithDoublestar compares globs with the package that defines what they mean, at the places where an
// expansion of braces, a match of the last element or of bytes could differ.
func TestGlobAgreesWithDoublestar(t *testing.T) {
	names := []string{"a", "b", "x", "ab", "a.go", ".go", "a/.go", "a/b", "a/b.go", "a/b/c.go", "go", "a/go", "ü.go", "a/ü", "aü.go", "a/b/x", "x/a", "axb", "a,b", "a]b", "[", "{a}", "*", "a/*", "\xff", "a\xfe", "a/b\xff.go"}
	for _, pattern := range []string{
		"", "a", "*", "**", "**/*", "**/**", "*/**", "a/**", "a/**/", "**/", "/**", "**/*.go", "*.go", "**/*[^t].go", "**/*[^/].go", "*[^x].go", "?.go", "**/?", "**/[!a]", "[^a]*", "**/*[b-d].go",
		"{a,b}", "**/*.{go,ts}", "**/{*.go,x}", "{a,b}/**", "a/{**,b}", "a*{,x}", "*{*/,x}b", "**{/b,x}", "*{*,x}", "{**/*.go,x}", "**/{a,b}/*.go", "a{,x}", "a{,x}{,b}", "a{,x}b{,y}", "{,a}", "{,a}/b", "{a,{b,x}}", "**/*{.,b}{go,x}",
		"{[ab],x}", "{[a,b],x}", "[{a}]", "{[}],a}", `\*`, `a/\*`, `{a\,b,x}`, `[\]]`, "a]b", "a,b", "**/a]b", "**b", "a**b", "***", "a*b*", "*x*", "**/*x*", "**/ü.go", "*ü*", "ü", "**/*ü.go", "[ü].go", "[^ü]*", "\xff", "*\xff", "**/*\xff.go",
		"{", "[a", "}", "a{b", "[]", "[]a]", "[^]a]", "{}", "{,}", "**/{,}", "./a", " a",
	} {
		checkGlob(t, strings.TrimPrefix(strings.TrimSpace(pattern), "./"), names...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"*", "**", "**/", "/", "?", "a", "b", ".go", "[ab]", "[^a]", "[!a-b]", "{", "}", ",", "{a,b}", "{*,b}", "{/a,b}", "{,a}", `\`, "ü", "[", "]", "-"}), 1, 8)
		pattern := strings.Join(parts.Draw(rt, "pattern"), "")
		elements := rapid.SliceOfN(rapid.StringMatching(`[abü]{0,3}(\.go)?[ab]?`), 1, 4).Draw(rt, "name")
		name := strings.Join(slices.DeleteFunc(elements, func(e string) bool { return e == "" }), "/")
		if name != "" {
			checkGlob(rt, pattern, name)
		}
	})
}

// TestGlobOfUsualFormsIsCompiled requires the form that costs least for the globs that models write.
func TestGlobOfUsualFormsIsCompiled(t *testing.T) {
	for _, pattern := range []string{"**/*.go", "**/*.{ts,js}", "**/{*[ng].go,*_test.{js,ts}}", "{**/*.go,**/Makefile*}"} {
		expanded, ok := expandBraces(pattern)
		if !ok {
			t.Errorf("%s is not expanded", pattern)
		}
		for _, text := range expanded {
			if a := compileAlternative(text, false); !a.base || a.bytes == nil {
				t.Errorf("%s of %s is compiled to %+v", text, pattern, a)
			}
		}
	}
}

// BenchmarkGlob matches 3,000 names with a glob of eleven alternatives.
func BenchmarkGlob(b *testing.B) {
	match, err := compileGlob("**/{*[ngNG1].go,*[ngNG1].js,*[ngNG1].tsx,*[ngNG1].env,.env*[ngNG1],*[ngNG1].yml,*[ngNG1].yaml,*[ngNG1].properties,*[ngNG1].toml,*[ngNG1].ini,*[ngNG1].tf}", true)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 1000 {
			_ = match("internal/toolset/builtin/globmatch.go")
			_ = match("internal/toolset/builtin/string.go")
			_ = match("internal/cli/run/testdata/a.txt")
		}
	}
}
