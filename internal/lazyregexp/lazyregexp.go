// Package lazyregexp has regular expressions of package variables that are compiled at their first use: a command that
// needs none does not wait for hundreds of them. Its methods do what those of regexp.Regexp do.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// isTest is true in programs of `go test`, which are to find patterns that cannot be compiled.
var isTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

// Regexp is a regular expression that is compiled once, at its first use. Any goroutine may use it.
type Regexp struct {
	pattern string
	once    sync.Once
	regexp  *regexp.Regexp
}

// New returns an expression. A pattern that cannot be compiled panics at its first use, in tests at once.
func New(pattern string) *Regexp {
	r := &Regexp{pattern: pattern}
	if isTest {
		r.compiled()
	}
	return r
}

// compiled panics at each use of a pattern that cannot be compiled.
func (r *Regexp) compiled() *regexp.Regexp {
	r.once.Do(func() { r.regexp = regexp.MustCompile(r.pattern) })
	if r.regexp == nil {
		panic("lazyregexp: no expression: " + r.pattern)
	}
	return r.regexp
}

func (r *Regexp) String() string { return r.compiled().String() }

func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

func (r *Regexp) ReplaceAllString(s, by string) string { return r.compiled().ReplaceAllString(s, by) }

func (r *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, by)
}

func (r *Regexp) FindIndex(b []byte) []int { return r.compiled().FindIndex(b) }

func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

func (r *Regexp) FindSubmatchIndex(b []byte) []int { return r.compiled().FindSubmatchIndex(b) }

func (r *Regexp) FindAllIndex(b []byte, n int) [][]int { return r.compiled().FindAllIndex(b, n) }

func (r *Regexp) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return r.compiled().FindAllSubmatchIndex(b, n)
}

func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.compiled().FindAllSubmatch(b, n)
}

func (r *Regexp) Split(s string, n int) []string { return r.compiled().Split(s, n) }

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}
