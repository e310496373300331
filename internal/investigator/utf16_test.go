package investigator_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestLogsInUTF16AreRead: Windows programs write logs in UTF-16, with a byte-order mark.
func TestLogsInUTF16AreRead(t *testing.T) {
	text := strings.Repeat("2026-01-02 03:04:05 ERROR disk is full: Größe\r\n2026-01-02 03:04:05 INFO ok\r\n", 50)
	for name, order := range map[string]binary.AppendByteOrder{"little endian": binary.LittleEndian, "big endian": binary.BigEndian} {
		var raw []byte
		for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
			raw = order.AppendUint16(raw, unit)
		}
		dir := t.TempDir()
		writeFile(t, dir, "app.log", string(raw))
		newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
		if md := readFile(t, dir, "report.md"); !strings.Contains(md, "50×: ERROR disk is full: Größe") || strings.Contains(md, "binary") {
			t.Errorf("%s:\n%s", name, md)
		}
	}
}
