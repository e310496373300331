package rule

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of the command lines that rules are compared with. Longer ones are never
// allowed by a rule, and it is unknown whether a deny rule fits them.
const (
	parseBytesMax = 64 << 10
	parseDepthMax = 64 // of parentheses, braces and quotes
)

// variants are the languages that /bin/sh may speak. Where they differ, a command
// line is understood in both.
var variants = []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}

// parseCommand parses a command line as one language; ok is false if it is not text, or
// not a command line.
func parseCommand(command string, as syntax.LangVariant) (file *syntax.File, ok bool) {
	odd := func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f }
	if len(command) > parseBytesMax || !utf8.ValidString(command) || strings.ContainsFunc(command, odd) || isTooDeep(command) {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(as), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	return file, err == nil
}

// openingWords are the reserved words that open a compound command.
var openingWords = strings.Fields("if while until for case select function coproc time")

// isTooDeep reports whether a command line opens more than the parser, which recurses,
// should follow.
func isTooDeep(command string) bool {
	opens := 0
	for _, open := range []string{"(", "{", "`", "!"} {
		opens += strings.Count(command, open)
	}
	for word := range strings.FieldsFuncSeq(command, isBreak) {
		if slices.Contains(openingWords, word) {
			opens++
		}
	}
	return opens > parseDepthMax
}

// plainCommands returns the words of the simple commands of a command line that consists
// only of simple commands of literal words, one after the other (; && || or a
// line break). ok is false for anything else: pipes, redirections, substitutions,
// expansions, assignments, comments, background jobs, functions, compound commands,
// builtins that assign or evaluate what an argument names.
func plainCommands(command string, as syntax.LangVariant) (list [][]string, ok bool) {
	file, ok := parseCommand(command, as)
	if !ok || len(file.Last) > 0 {
		return nil, false
	}
	for _, stmt := range file.Stmts {
		if list, ok = plainStmt(list, stmt); !ok {
			return nil, false
		}
	}
	return list, len(list) > 0
}

func plainStmt(list [][]string, s *syntax.Stmt) ([][]string, bool) {
	if s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 || len(s.Comments) > 0 {
		return nil, false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		words, ok := literalWords(c)
		return append(list, words), ok && isPlainBuiltin(words)
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt {
			return nil, false
		}
		list, ok := plainStmt(list, c.X)
		if !ok {
			return nil, false
		}
		return plainStmt(list, c.Y)
	}
	return nil, false
}

// literalWords are the words of a simple command that the shell takes as they are
// written, but for plain quotes.
func literalWords(c *syntax.CallExpr) (words []string, ok bool) {
	if len(c.Assigns) > 0 || len(c.Args) == 0 {
		return nil, false
	}
	for _, w := range c.Args {
		text, ok := wordText(w, false)
		if !ok {
			return nil, false
		}
		words = append(words, text)
	}
	return words, true
}

// wordText returns the value that the shell gives a word; ok is false if that depends on more
// than the word. Backslashes count only if the caller asks for them.
func wordText(w *syntax.Word, backslashes bool) (text string, ok bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text, ok = plainText(p.Value, backslashes)
		case *syntax.SglQuoted:
			text, ok = p.Value, !p.Dollar
		case *syntax.DblQuoted:
			text, ok = quotedText(p, backslashes)
		default:
			ok = false
		}
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}

// expanding are the characters by which a shell makes something else of a word that
// is not quoted.
const expanding = "*?[]{}$`"

func plainText(text string, backslashes bool) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && backslashes && i+1 < len(text):
			if i++; text[i] != '\n' { // with a line break it is nothing
				b.WriteByte(text[i])
			}
		case c == '\\', strings.IndexByte(expanding, c) >= 0:
			return "", false
		case c == '~' && (i == 0 || text[i-1] == ':' || text[i-1] == '='):
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

func quotedText(q *syntax.DblQuoted, backslashes bool) (string, bool) {
	var b strings.Builder
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || q.Dollar || strings.ContainsAny(lit.Value, "$`") && !backslashes || strings.Contains(lit.Value, `\`) && !backslashes {
			return "", false
		}
		text := lit.Value
		for i := 0; i < len(text); i++ {
			if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
				if i++; text[i] == '\n' {
					continue
				}
			}
			b.WriteByte(text[i])
		}
	}
	return b.String(), true
}
