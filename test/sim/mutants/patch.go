package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// siteName returns the name of the site of an edit.
func siteName(m Mutant, e Edit) string { return cmp.Or(e.Site, m.Name) }

// changesOf returns what a mutant changes in each file.
func changesOf(m Mutant, sites map[string]*site) (map[*source][]splice, error) {
	changes := map[*source][]splice{}
	for _, e := range m.Edits {
		name := siteName(m, e)
		s := sites[name]
		if s == nil {
			return nil, fmt.Errorf("no line is marked //mutant:%s: put the marker at the rule that the mutant drops", name)
		}
		list, err := e.Do(s)
		if err != nil {
			return nil, fmt.Errorf("%s, //mutant:%s: %w", s.position(), name, err)
		}
		changes[s.file] = append(changes[s.file], list...)
	}
	return changes, nil
}

// patch returns the texts of the files that a mutant changes, by their paths.
func patch(m Mutant, sites map[string]*site) (map[string][]byte, error) {
	changes, err := changesOf(m, sites)
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for f, list := range changes {
		text, err := f.splice(list)
		if err != nil {
			return nil, err
		}
		texts[f.path] = text
	}
	return texts, nil
}

// splice returns the text of the file with the changes.
func (f *source) splice(changes []splice) ([]byte, error) {
	return f.spliceWithin(0, len(f.text), changes)
}

// spliceWithin returns the bytes from..to of the file with the changes, which are all in them.
func (f *source) spliceWithin(from, to int, changes []splice) ([]byte, error) {
	slices.SortStableFunc(changes, func(a, b splice) int { return cmp.Compare(a.from, b.from) })
	var b bytes.Buffer
	at := from
	for _, c := range changes {
		if c.from < at {
			return nil, fmt.Errorf("%s: two edits change the same bytes", f.path)
		}
		b.Write(f.text[at:c.from])
		b.WriteString(c.text)
		at = c.to
	}
	b.Write(f.text[at:to])
	if bytes.Equal(b.Bytes(), f.text[from:to]) {
		return nil, fmt.Errorf("%s: the edits change nothing", f.path)
	}
	return b.Bytes(), nil
}

// writeOverlay writes changed files, and the overlay that puts them in place.
func writeOverlay(root, dir string, texts map[string][]byte) (overlay string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range texts {
		name := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = name
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o644)
}
