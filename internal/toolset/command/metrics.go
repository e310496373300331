package command

import (
	"bufio"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/tool"
)

// metricsBytesMax is how much of the file is read to which a command writes figures.
const metricsBytesMax = 64 << 10

// metricsFile is the file to which a command writes figures of its call; path is "" if none could be made.
type metricsFile struct{ path string }

// openMetricsFile makes the file. Where no file can be made, the command runs without one.
func openMetricsFile() metricsFile {
	f, err := os.CreateTemp("", "troupe-metrics-")
	if err != nil {
		return metricsFile{}
	}
	_ = f.Close() // nothing was written
	return metricsFile{f.Name()}
}

// environment names the file to the command.
func (m metricsFile) environment() []string {
	if m.path == "" {
		return nil
	}
	return []string{"TROUPE_METRICS=" + m.path}
}

// reportTo reports the figures that the command has written, and removes the file. A line that is no figure
// counts as a report that broke a limit, and so does what follows metricsBytesMax. Another process may have put
// something else in its place: only a regular file is read, and no link is followed.
func (m metricsFile) reportTo(c tool.Call) {
	if m.path == "" {
		return
	}
	defer func() {
		if err := os.Remove(m.path); err != nil && !os.IsNotExist(err) {
			slog.Warn("the file for metrics of a command stays", "path", m.path, "error", err)
		}
	}()
	root, err := os.OpenRoot(filepath.Dir(m.path))
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	f, info, err := safefile.OpenIn(root, filepath.Base(m.path))
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, metricsBytesMax))
	for lines.Scan() {
		c.Metric(parseMetric(lines.Text()))
	}
	if info.Size() > metricsBytesMax || lines.Err() != nil {
		c.Metric("", math.NaN()) // counted as lost
	}
}

// parseMetric reads a line "NAME VALUE". The value of any other line is no number, so that it is counted as lost.
func parseMetric(line string) (name string, value float64) {
	name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		value = math.NaN()
	}
	return name, value
}
