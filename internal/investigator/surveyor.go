package investigator

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
)

// surveyor looks at a folder that is neither code nor logs.
var surveyor = childJob{name: "surveyor", listCalls: surveyorWants, buildAnswer: surveyorAnswer}

const (
	peekLines = 6
	peekFiles = 5
	peekShown = 80
	fileFacts = 6
)

var askNotes = wantedCall{name: toolGrep, label: "open points in texts", args: map[string]any{
	"pattern": `\b(TODO|FIXME|TBD|XXX)\b|(?i:password|secret|api[_-]?key)["']?\s*[:=]\s*\S{6,}|-----BEGIN [A-Z ]*PRIVATE KEY-----`,
	"glob":    "**/*.{md,txt,rst,adoc,csv,json,yaml,yml,toml,ini,cfg,conf,env,properties,html,xml,tex,org}"}}

var textExts = []string{".md", ".txt", ".rst", ".adoc", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".tex", ".org", ".xml", ".html", ""}

func surveyorWants(t *conversation) []wantedCall {
	wants := []wantedCall{lookTop, lookTree, askNotes}
	for _, p := range peekPaths(t) {
		wants = append(wants, askPeek(p))
	}
	return wants
}

func askPeek(p string) wantedCall {
	return wantedCall{name: toolRead, args: map[string]any{"path": p, "limit": peekLines}, label: p, quiet: true}
}

// peekPaths chooses texts that describe the folder: readme files first, then those nearest
// to the top.
func peekPaths(t *conversation) []string {
	all, _ := t.resultOf(lookTree)
	var paths []string
	for _, p := range parseGlob(all).paths {
		if slices.Contains(textExts, extOf(p)) && !isOwnReport(p, reportName(t.asked)) && !strings.HasPrefix(path.Base(p), ".") && originOf(p) != foreignFile {
			paths = append(paths, p)
		}
	}
	slices.SortStableFunc(paths, func(x, y string) int {
		return 10*(readmeRank(x)-readmeRank(y)) + strings.Count(x, "/") - strings.Count(y, "/")
	})
	return paths[:min(len(paths), peekFiles)]
}

func readmeRank(p string) int {
	if strings.HasPrefix(strings.ToLower(path.Base(p)), "readme") {
		return 0
	}
	return 1
}

func surveyorAnswer(t *conversation) agentAnswer {
	var a agentAnswer
	list, _ := t.resultOf(lookTop)
	all, _ := t.resultOf(lookTree)
	tree := parseGlob(all)
	dirs := topDirectories(list)
	a.Summary = fmt.Sprintf("surveyor: %s in %d directories at the top", formatCount(tree.files, "file"), len(dirs))
	if len(dirs) > 0 {
		a.addFact("Directories", "%s", strings.Join(dirs[:min(len(dirs), fileFacts)], ", "))
	}
	var forms []string
	for _, e := range tree.exts {
		if len(forms) < fileFacts {
			forms = append(forms, fmt.Sprintf("%s %d (%s)", e.ext, e.files, formatSize(e.bytes)))
		}
	}
	if len(forms) > 0 {
		a.addFact("Forms of file", "%s", strings.Join(forms, ", "))
	}
	for i, f := range tree.largest {
		if i < 3 {
			a.addFact("Largest", "`%s`, %s", f.path, formatSize(f.size))
		}
	}
	reportTextFiles(t, &a)
	reportOpenPoints(t, &a)
	return a
}

func topDirectories(list string) []string {
	entries, _ := parseList(list)
	var dirs []string
	for _, e := range entries {
		if e.dir && e.name != ".git" {
			dirs = append(dirs, e.name+"/")
		}
	}
	return dirs
}

// reportTextFiles quotes the first informative line of a few texts.
func reportTextFiles(t *conversation, a *agentAnswer) {
	for _, p := range peekPaths(t) {
		text, ok := t.resultOf(askPeek(p))
		if !ok {
			continue
		}
		page := parseRead(p, text)
		for _, l := range page.lines {
			if title := strings.Trim(l.text, "#=-* \t\""); len(title) > 2 && isQuotable(l.text) {
				a.addFinding(finding{Kind: textKind(p), Severity: info, Title: fmt.Sprintf("%s (%s) begins: %s", p, formatCount(page.total, "line"), clip.Marked(title, peekShown, "…")),
					Evidence: []evidence{l.asEvidence()}})
				break
			}
		}
	}
}

// textKind returns the kind of a text file by its name.
func textKind(p string) string {
	switch extOf(p) {
	case ".csv", ".tsv", ".json", ".xml":
		return kindData
	case ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf":
		return kindConfig
	}
	return kindDocument
}

// reportOpenPoints reports secrets and open points in texts.
func reportOpenPoints(t *conversation, a *agentAnswer) {
	text, ok := t.resultOf(askNotes)
	if !ok {
		return
	}
	s := parseGrep(text)
	addSearchLimits(a, "open points in texts", s)
	var secrets, open []fileLine
	for _, h := range s.hits {
		switch {
		case isOwnReport(h.path, reportName(t.asked)) || !isQuotable(h.text) || originOf(h.path) == foreignFile:
		case strings.Contains(h.text, "TODO") || strings.Contains(h.text, "FIXME") || strings.Contains(h.text, "TBD") || strings.Contains(h.text, "XXX"):
			open = append(open, h)
		case !placeholder.MatchString(h.text):
			secrets = append(secrets, h)
		}
	}
	note := func(kind string, sev severity, title string, hits []fileLine) {
		f := finding{Kind: kind, Severity: sev, Title: title + " in " + formatCount(len(hits), "place")}
		for _, h := range spreadByFile(hits) {
			f.Evidence = append(f.Evidence, h.asEvidence())
		}
		a.addFinding(f)
	}
	note(kindSecret, high, "Line that looks like a secret", secrets)
	note(kindMarker, low, "Open point (TODO, FIXME, TBD)", open)
}
