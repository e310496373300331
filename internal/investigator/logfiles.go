package investigator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/jsonlog"
)

const (
	checkedMax    = 8 // files whose lines are looked at
	logNamesShown = 3 // names in a limit
)

// logFiles are the files of a directory that look like logs.
type logFiles struct {
	candidates []string // only their lines show whether they are logs
	confirmed  []string // of the candidates: their lines are those of a log
	refuted    []string // of the candidates: files of JSON lines that are no logs
	packed     []string // compressed
	// more tells that there are files whose names the list of all files left out.
	more bool
}

// textLogLine matches lines of a text log: they begin with a time or with a level.
const textLogLine = `^\W?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|^\W?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL)\b`

// lookLogs lists the files that look like logs where the list of all files is too long to name them.
var lookLogs = wantedCall{name: toolGlob, args: map[string]any{"pattern": "{**/*.log*,**/log/*,**/logs/*,**/*.jsonl,**/*.ndjson}"}, label: "the list of logs"}

// askLogLine asks whether a file has a line that only a log has.
func askLogLine(p string) wantedCall {
	return wantedCall{name: toolGrep, args: map[string]any{"pattern": jsonlog.LinePattern + "|" + textLogLine, "path": p, "limit": 1}, label: p + " (may be a log)"}
}

// logChecks lists the calls that tell which files are logs. A source tree is not searched for logs.
func (p directoryProfile) logChecks() []wantedCall {
	if p.kind == directoryUnseen || p.kind == directoryEmpty || p.source > len(p.logs)+len(p.logFiles.candidates) {
		return nil
	}
	var wants []wantedCall
	if p.tree.files > len(p.tree.paths) {
		wants = append(wants, lookLogs)
	}
	for _, c := range p.logFiles.candidates[:min(len(p.logFiles.candidates), checkedMax)] {
		wants = append(wants, askLogLine(c))
	}
	return wants
}

// findLogs finds the log files, the largest first as far as their sizes are known, and returns the size of all.
func (p *directoryProfile) findLogs(t *conversation, reportName string) int64 {
	size := map[string]int64{}
	var names []string
	for _, e := range p.entries {
		if !e.dir && !e.link {
			size[e.name] = e.size
			names = append(names, e.name)
		}
	}
	listed, _ := t.resultOf(lookLogs)
	logs := parseGlob(listed)
	for _, s := range slices.Concat(p.tree.largest, logs.largest) {
		size[s.path] = s.size
		names = append(names, s.path)
	}
	p.logFiles.more = p.tree.files > len(p.tree.paths) && (!logs.complete || logs.files > len(logs.paths))
	seen := map[string]bool{}
	for _, n := range slices.Concat(names, p.tree.paths, logs.paths) {
		if !seen[n] && !isOwnReport(n, reportName) {
			seen[n] = true
			p.addLogFile(t, n)
		}
	}
	for _, n := range p.logs {
		p.logSize += size[n]
	}
	bySize := func(a, b string) int { return int(size[b] - size[a]) }
	slices.SortStableFunc(p.logs, bySize)
	p.logs = p.logs[:min(len(p.logs), logsMax)]
	logBytes := p.logSize
	for _, e := range p.tree.exts {
		if e.ext == ".log" {
			logBytes = max(logBytes, e.bytes)
		}
	}
	return logBytes
}

// addLogFile sorts a file in by its name and, if they were looked at, by its lines.
func (p *directoryProfile) addLogFile(t *conversation, name string) {
	switch {
	case isLog(name):
		p.logs = append(p.logs, name)
	case isPackedLog(name):
		p.logFiles.packed = append(p.logFiles.packed, name)
	case mayBeLog(name):
		p.logFiles.candidates = append(p.logFiles.candidates, name)
		check, ok := t.grepOf(askLogLine(name))
		switch {
		case ok && check.matches > 0:
			p.logFiles.confirmed = append(p.logFiles.confirmed, name)
			p.logs = append(p.logs, name)
		case ok && check.searched > 0 && isJSONLines(name):
			p.logFiles.refuted = append(p.logFiles.refuted, name)
		}
	}
}

// unreadLogs lists, for the limits of a report, the files that look like logs and were not read as logs.
func (p directoryProfile) unreadLogs() (limits []string) {
	if n := len(p.logFiles.packed); n > 0 {
		limits = append(limits, formatCount(n, "compressed log")+" not read: "+nameSome(p.logFiles.packed))
	}
	if p.kind == directoryCode {
		beside := slices.Clone(p.logs)
		for _, c := range p.logFiles.candidates {
			if isJSONLines(c) && originOf(c) == ownFile {
				beside = append(beside, c)
			}
		}
		if len(beside) > 0 {
			limits = append(limits, formatCount(len(beside), "log file")+" beside the code: not analysed: "+nameSome(beside))
		}
		return limits
	}
	for _, name := range p.logFiles.refuted {
		limits = append(limits, name+": no line has a level, or a time and a message: not read as a log")
	}
	if n := len(p.logFiles.candidates) - checkedMax; n > 0 {
		limits = append(limits, formatCount(n, "file")+" that may be logs not looked at: "+nameSome(p.logFiles.candidates[checkedMax:]))
	}
	if p.logFiles.more && len(p.logs) > 0 {
		limits = append(limits, fmt.Sprintf("logs without a name of a log: only the first %d names of %s were looked at", len(p.tree.paths), formatThousands(int64(p.tree.files))))
	}
	return limits
}

// nameSome lists the first few names.
func nameSome(names []string) string {
	shown := names[:min(len(names), logNamesShown)]
	if len(shown) < len(names) {
		return strings.Join(shown, ", ") + ", …"
	}
	return strings.Join(shown, ", ")
}
