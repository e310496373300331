package tool

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
)

// metricsBytesMax is how much of the file is read to which a command writes figures.
const metricsBytesMax = 64 << 10

// metricsFile is the file to which a command writes figures of its call.
type metricsFile struct{ path string }

func openMetricsFile() (metricsFile, error) {
	f, err := os.CreateTemp("", "troupe-metrics-")
	if err != nil {
		return metricsFile{}, fmt.Errorf("file for metrics: %w", err)
	}
	return metricsFile{f.Name()}, f.Close()
}

// reportTo reports the figures that the command has written, and removes the file. A line that is no figure
// counts as a report that broke a limit, and so does what follows metricsBytesMax. The command may have replaced
// the file: only a regular file is read.
func (m metricsFile) reportTo(c Call) {
	defer func() {
		if err := os.Remove(m.path); err != nil && !os.IsNotExist(err) {
			slog.Warn("the file for metrics of a command stays", "path", m.path, "error", err)
		}
	}()
	if st, err := os.Lstat(m.path); err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return
	}
	f, err := os.Open(m.path)
	if err != nil {
		c.Metric("", 0)
		return
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, metricsBytesMax))
	for lines.Scan() {
		name, value := parseMetric(lines.Text())
		c.Metric(name, value)
	}
	if rest, _ := f.Read(make([]byte, 1)); rest > 0 || lines.Err() != nil {
		c.Metric("", 0)
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
