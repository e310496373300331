package scout_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// directoryTools are the tools that scout knows, over a real directory, in the
// agreed output formats.
func directoryTools(root string) map[string]toolFunc {
	d := directory{root}
	return map[string]toolFunc{"list_dir": d.list, "read_file": d.read, "grep": d.grep, "glob": d.glob,
		"git_log": d.log, "git_numstat": d.numstat, "write_file": d.write}
}

type directory struct{ root string }

func str(args map[string]any, name string) string { s, _ := args[name].(string); return s }
func num(args map[string]any, name string, def int) int {
	if f, ok := args[name].(float64); ok {
		return int(f)
	}
	return def
}

func (d directory) list(args map[string]any) (string, bool) {
	entries, err := os.ReadDir(filepath.Join(d.root, str(args, "path")))
	if err != nil {
		return err.Error(), true
	}
	var b strings.Builder
	for _, e := range entries {
		info, _ := e.Info()
		if e.IsDir() {
			fmt.Fprintf(&b, "%s/\n", e.Name())
		} else {
			fmt.Fprintf(&b, "%s\t%d\n", e.Name(), info.Size())
		}
	}
	return b.String(), false
}

func (d directory) read(args map[string]any) (string, bool) {
	data, err := os.ReadFile(filepath.Join(d.root, str(args, "path")))
	if err != nil {
		return err.Error(), true
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	from := max(num(args, "offset", 1), 1)
	to := min(from+num(args, "limit", 200)-1, len(lines))
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%d\t%s\n", i, clipLine(lines[i-1]))
	}
	fmt.Fprintf(&b, "[lines %d-%d of %d]", from, to, len(lines))
	return b.String(), false
}

func clipLine(s string) string {
	if len(s) > 400 {
		return strings.ToValidUTF8(s[:400], "") + " …[line clipped]"
	}
	return s
}

func (d directory) files() (all []string) {
	_ = filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules") {
			return fs.SkipDir
		}
		rel, _ := filepath.Rel(d.root, p)
		if e.Type().IsRegular() && rel != "report.md" && rel != "report.json" {
			all = append(all, rel)
		}
		return nil
	})
	return all
}

func (d directory) grep(args map[string]any) (string, bool) {
	re, err := regexp.Compile(str(args, "pattern"))
	if err != nil {
		return err.Error(), true
	}
	pattern := str(args, "glob")
	if pattern == "" {
		pattern = "**"
	}
	var b strings.Builder
	matches, in, searched := 0, 0, 0
	for _, f := range d.files() {
		if ok, err := doublestar.Match(pattern, f); err != nil || !ok {
			if err != nil {
				return err.Error(), true
			}
			continue
		}
		searched++
		data, _ := os.ReadFile(filepath.Join(d.root, f))
		before := matches
		for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if !re.MatchString(line) {
				continue
			}
			if matches++; matches <= 100 {
				fmt.Fprintf(&b, "%s:%d:%s\n", f, i+1, clipLine(line))
			}
		}
		if matches > before {
			in++
		}
	}
	more := ""
	if matches > 100 {
		more = "; first 100 shown"
	}
	fmt.Fprintf(&b, "[%d matches in %d files; %d files searched%s]", matches, in, searched, more)
	return b.String(), false
}

func (d directory) glob(args map[string]any) (string, bool) {
	type stat struct {
		name        string
		files, size int64
	}
	var b strings.Builder
	exts := map[string]*stat{}
	var sizes []stat
	var total int64
	for _, f := range d.files() {
		if ok, err := doublestar.Match(str(args, "pattern"), f); err != nil || !ok {
			if err != nil {
				return err.Error(), true
			}
			continue
		}
		info, _ := os.Stat(filepath.Join(d.root, f))
		e := path.Ext(f)
		if exts[e] == nil {
			exts[e] = &stat{name: e}
		}
		exts[e].files++
		exts[e].size += info.Size()
		total += info.Size()
		sizes = append(sizes, stat{f, 1, info.Size()})
		if len(sizes) <= 100 {
			b.WriteString(f + "\n")
		}
	}
	fmt.Fprintf(&b, "[%d files, %d bytes]\n", len(sizes), total)
	var byExt, largest []string
	var all []*stat
	for _, e := range exts {
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].size > all[j].size || all[i].size == all[j].size && all[i].name < all[j].name
	})
	for _, e := range all {
		name := e.name
		if name == "" {
			name = "(none)"
		}
		byExt = append(byExt, fmt.Sprintf("%s %d %d", name, e.files, e.size))
	}
	sort.SliceStable(sizes, func(i, j int) bool { return sizes[i].size > sizes[j].size })
	for _, s := range sizes[:min(len(sizes), 10)] {
		largest = append(largest, fmt.Sprintf("%s %d", s.name, s.size))
	}
	fmt.Fprintf(&b, "[extensions: %s]\n[largest: %s]", strings.Join(byExt, "; "), strings.Join(largest, "; "))
	return b.String(), false
}

func (d directory) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", d.root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

func (d directory) log(args map[string]any) (string, bool) {
	if _, err := os.Stat(filepath.Join(d.root, ".git")); err != nil {
		return "[not a git repository]", false
	}
	cmd := []string{"log", "--format=%H%x09%as%x09%an%x09%s", "-n", fmt.Sprint(num(args, "limit", 20))}
	if p := str(args, "path"); p != "" {
		cmd = append(cmd, "--", p)
	}
	out, err := d.git(cmd...)
	if err != nil {
		return "[no commits]", false
	}
	total, _ := d.git("rev-list", "--count", "HEAD")
	return fmt.Sprintf("%s\n[%d commits shown of %s]", out, strings.Count(out, "\n")+1, total), false
}

func (d directory) numstat(map[string]any) (string, bool) {
	if _, err := os.Stat(filepath.Join(d.root, ".git")); err != nil {
		return "[not a git repository]", false
	}
	out, err := d.git("log", "--numstat", "--no-renames", "--format=@%H%x09%as%x09%an%x09%s", "-n", "500")
	if err != nil {
		return "[no commits]", false
	}
	return summarize(out), false
}

func (d directory) write(args map[string]any) (string, bool) {
	name := filepath.Join(d.root, str(args, "path"))
	if old, err := os.ReadFile(name); err == nil && !strings.Contains(string(old), "generated by troupe") && !strings.Contains(string(old), `"generator":"troupe"`) {
		return str(args, "path") + " exists and was not made by troupe", true
	}
	if err := os.WriteFile(name, []byte(str(args, "content")), 0o644); err != nil {
		return err.Error(), true
	}
	return fmt.Sprintf("wrote %d bytes", len(str(args, "content"))), false
}

// summarize turns git log --numstat into the form of git_numstat.
func summarize(out string) string {
	type file struct {
		path                string
		commits, add, minus int
		authors             map[string]bool
	}
	files, authors := map[string]*file{}, map[string]int{}
	var large []string
	var head []string
	commits, add, minus, n := 0, 0, 0, 0
	flush := func() {
		if head != nil && add+minus > 1000 {
			large = append(large, fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%s", head[0], head[1], head[2], add, minus, n, head[3]))
		}
		add, minus, n = 0, 0, 0
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "@"); ok {
			flush()
			head = strings.SplitN(rest, "\t", 4)
			commits++
			authors[head[2]]++
			continue
		}
		f := strings.SplitN(line, "\t", 3)
		if len(f) < 3 {
			continue
		}
		var x, y int
		fmt.Sscan(f[0], &x)
		fmt.Sscan(f[1], &y)
		if files[f[2]] == nil {
			files[f[2]] = &file{path: f[2], authors: map[string]bool{}}
		}
		v := files[f[2]]
		v.commits, v.add, v.minus, v.authors[head[2]] = v.commits+1, v.add+x, v.minus+y, true
		add, minus, n = add+x, minus+y, n+1
	}
	flush()
	var all []*file
	for _, v := range files {
		all = append(all, v)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].commits > all[j].commits || all[i].commits == all[j].commits && all[i].path < all[j].path
	})
	var b strings.Builder
	b.WriteString("# files\n")
	for _, v := range all[:min(len(all), 20)] {
		fmt.Fprintf(&b, "%d\t%d\t%d\t%d\t%s\n", v.commits, v.add, v.minus, len(v.authors), v.path)
	}
	b.WriteString("# authors\n")
	var names []string
	for name := range authors {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		return authors[names[i]] > authors[names[j]] || authors[names[i]] == authors[names[j]] && names[i] < names[j]
	})
	for _, name := range names[:min(len(names), 20)] {
		fmt.Fprintf(&b, "%d\t%s\n", authors[name], name)
	}
	b.WriteString("# large commits\n" + strings.Join(large[:min(len(large), 10)], "\n") + "\n")
	fmt.Fprintf(&b, "[%d commits]", commits)
	return b.String()
}
