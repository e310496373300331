package jetstream

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestAckerTakesItsOwnStreamOnly(t *testing.T) {
	for _, row := range []struct {
		domain, data string
		want         uint64
	}{
		{"", `{"stream":"X","seq":12}`, 12},
		{"", `{"stream":"X", "seq": 18446744073709551615}`, 18446744073709551615},
		{"hub", `{"stream":"X","domain":"hub","seq":7}`, 7},
		{"hub", `{"stream":"X", "seq":7, "domain":"hub"}`, 7},
		{"hub", `{"stream":"X","seq":7}`, 0},
		{"hub", `{"stream":"X","domain":"leaf","seq":7}`, 0},
		{"", `{"stream":"X","domain":"hub","seq":7}`, 0},
		{"", `{"stream":"Y","seq":7}`, 0},
		{"", `{"stream":"X","seq":7,"duplicate":true}`, 0},
		{"", `{"stream":"X","seq":0}`, 0},
		{"", `{"stream":"X","seq":7} `, 0},
		{"", ``, 0},
	} {
		a := newAcker("X", row.domain)
		got, err := a.parseAck(&nats.Msg{Data: []byte(row.data)})
		if got != row.want || (row.want == 0) != errors.Is(err, errForeign) {
			t.Errorf("%s: %d, %v", row.data, got, err)
		}
	}
}
